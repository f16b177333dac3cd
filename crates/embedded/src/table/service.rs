//! Services as rows.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Columns, age_of, column, wide};
use crate::object::{at, items, name, text, texts};

pub(super) const COLUMNS: Columns = Columns {
    columns: &[
        column("Name"),
        column("Type"),
        column("Cluster-IP"),
        column("External-IP"),
        column("Port(s)"),
        column("Age"),
        wide("Selector"),
    ],
    cells,
};

fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    let cluster_ips = texts(service, &["spec", "clusterIPs"]);
    let cluster_ip = cluster_ips.first().map_or("<none>", String::as_str);
    vec![
        json!(name(service)),
        json!(text(service, &["spec", "type"])),
        json!(cluster_ip),
        json!(external_ip(service)),
        json!(ports(service)),
        age_of(service, now),
        json!(selector(service)),
    ]
}

fn external_ip(service: &Value) -> String {
    let mut addresses = texts(service, &["spec", "externalIPs"]);
    match text(service, &["spec", "type"]) {
        "ExternalName" => return text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = items(service, &["status", "loadBalancer", "ingress"]).iter();
            let known: BTreeSet<_> = ingress
                .map(|entry| match text(entry, &["ip"]) {
                    "" => text(entry, &["hostname"]),
                    ip => ip,
                })
                .filter(|address| !address.is_empty())
                .collect();
            let known = known.into_iter().map(str::to_owned);
            addresses = known.chain(addresses).collect();
            if addresses.is_empty() {
                return "<pending>".to_owned();
            }
        }
        _ if addresses.is_empty() => return "<none>".to_owned(),
        _ => {}
    }
    addresses.join(",")
}

fn ports(service: &Value) -> String {
    let ports = items(service, &["spec", "ports"]).iter();
    let shown: Vec<_> = ports
        .map(|port| {
            let (number, protocol) = (&port["port"], text(port, &["protocol"]));
            match port["nodePort"].as_u64() {
                Some(node_port) => format!("{number}:{node_port}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if shown.is_empty() {
        return "<none>".to_owned();
    }
    shown.join(",")
}

fn selector(service: &Value) -> String {
    let pairs = (*at(service, &["spec", "selector"]))
        .as_object()
        .into_iter()
        .flatten();
    let shown: Vec<_> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if shown.is_empty() {
        return "<none>".to_owned();
    }
    shown.join(",")
}
