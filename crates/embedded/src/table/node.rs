//! Nodes as rows.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Columns, age_of, column, wide};
use crate::object::{at, items, name, text};

pub(super) const COLUMNS: Columns = Columns {
    columns: &[
        column("Name"),
        column("Status"),
        column("Roles"),
        column("Age"),
        column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    cells,
};

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = |key: &str| text(node, &["status", "nodeInfo", key]);
    let known = |key: &str| match info(key) {
        "" => "<unknown>",
        value => value,
    };
    vec![
        json!(name(node)),
        json!(status(node)),
        json!(roles(node)),
        age_of(node, now),
        json!(info("kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        json!(known("osImage")),
        json!(known("kernelVersion")),
        json!(known("containerRuntimeVersion")),
    ]
}

fn status(node: &Value) -> String {
    let conditions = items(node, &["status", "conditions"]).iter();
    let ready = conditions
        .rev()
        .find(|condition| text(condition, &["type"]) == "Ready");
    let status = match ready.map(|ready| text(ready, &["status"])) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    if *at(node, &["spec", "unschedulable"]) == json!(true) {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(node: &Value) -> String {
    let labels = at(node, &["metadata", "labels"])
        .as_object()
        .into_iter()
        .flatten();
    let mut roles: Vec<_> = labels
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = items(node, &["status", "addresses"]).iter();
    let found = addresses
        .into_iter()
        .find(|address| text(address, &["type"]) == kind);
    found.map_or("<none>", |address| text(address, &["address"]))
}
