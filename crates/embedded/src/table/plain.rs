//! The other kinds as rows.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Columns, age_of, column};
use crate::object::{items, name, text};

/// The columns of a kind that has no file of its own.
pub(super) fn columns_of(storage: &str) -> Columns {
    match storage {
        "configmaps" => Columns {
            columns: const { &[column("Name"), column("Data"), column("Age")] },
            cells: |object, now| {
                let count = count(object, "data") + count(object, "binaryData");
                with_age(object, now, vec![json!(count)])
            },
        },
        "leases" => Columns {
            columns: const { &[column("Name"), column("Holder"), column("Age")] },
            cells: |object, now| {
                let holder = text(object, &["spec", "holderIdentity"]);
                with_age(object, now, vec![json!(holder)])
            },
        },
        "namespaces" => Columns {
            columns: const { &[column("Name"), column("Status"), column("Age")] },
            cells: |object, now| {
                let phase = text(object, &["status", "phase"]);
                with_age(object, now, vec![json!(phase)])
            },
        },
        "pods" => Columns {
            columns: const {
                &[
                    column("Name"),
                    column("Ready"),
                    column("Status"),
                    column("Restarts"),
                    column("Age"),
                ]
            },
            cells: |object, now| {
                let containers = items(object, &["spec", "containers"]).len();
                let phase = text(object, &["status", "phase"]);
                let cells = vec![json!(format!("0/{containers}")), json!(phase), json!("0")];
                with_age(object, now, cells)
            },
        },
        "secrets" => Columns {
            columns: const {
                &[
                    column("Name"),
                    column("Type"),
                    column("Data"),
                    column("Age"),
                ]
            },
            cells: |object, now| {
                let kind = text(object, &["type"]);
                with_age(object, now, vec![json!(kind), json!(count(object, "data"))])
            },
        },
        _ => Columns {
            columns: const { &[column("Name"), column("Age")] },
            cells: |object, now| with_age(object, now, Vec::new()),
        },
    }
}

fn with_age(object: &Value, now: Timestamp, mut between: Vec<Value>) -> Vec<Value> {
    let mut cells = vec![json!(name(object))];
    cells.append(&mut between);
    cells.push(age_of(object, now));
    cells
}

fn count(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, serde_json::Map::len)
}
