//! Events as rows.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Columns, age, column, wide};
use crate::object::{name, text};

pub(super) const COLUMNS: Columns = Columns {
    columns: &[
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        wide("Subobject"),
        wide("Source"),
        column("Message"),
        wide("First Seen"),
        wide("Count"),
        wide("Name"),
    ],
    cells,
};

fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let first = match text(event, &["firstTimestamp"]) {
        "" => text(event, &["eventTime"]),
        first => first,
    };
    let series = &event["series"];
    let (last, count) = if series.is_null() {
        let last = match text(event, &["lastTimestamp"]) {
            "" => first,
            last => last,
        };
        (
            last,
            event["count"]
                .as_u64()
                .filter(|count| *count > 0)
                .unwrap_or(1),
        )
    } else {
        let count = series["count"].as_u64().unwrap_or_default();
        (text(series, &["lastObservedTime"]), count)
    };
    vec![
        json!(age(last, now)),
        json!(text(event, &["type"])),
        json!(text(event, &["reason"])),
        json!(subject(event)),
        json!(text(event, &["involvedObject", "fieldPath"])),
        json!(source(event)),
        json!(text(event, &["message"]).trim()),
        json!(age(first, now)),
        json!(count),
        json!(name(event)),
    ]
}

fn subject(event: &Value) -> String {
    let kind = text(event, &["involvedObject", "kind"]).to_lowercase();
    match text(event, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let first = |paths: [&[&str]; 2]| {
        let texts = paths.map(|path| text(event, path));
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let component = first([&["source", "component"], &["reportingComponent"]]);
    match first([&["source", "host"], &["reportingInstance"]]) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
