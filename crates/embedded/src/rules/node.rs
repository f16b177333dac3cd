//! Nodes: kubelets register them with their status, and two fields are written once.

use std::collections::BTreeSet;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Part, Rules, Surroundings, keep_apart};
use crate::kinds::LabelName;
use crate::object::{at, fields, items, put, put_default, text, texts};
use crate::refusal::Fault;

pub(crate) struct Nodes;

impl Rules for Nodes {
    fn fill_in(&self, object: &mut Value) {
        for part in ["spec", "status"] {
            if object[part].is_null() {
                put(object, &[part], json!({}));
            }
        }
        let status = &object["status"];
        let capacity = status["capacity"].clone();
        if status["allocatable"].is_null() && !capacity.is_null() {
            put(object, &["status", "allocatable"], capacity);
        }
        let endpoint = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
        if at(object, &endpoint).is_null() {
            put(object, &endpoint, 0);
        }
        for field in NODE_INFO {
            let path = ["status", "nodeInfo", *field];
            if at(object, &path).is_null() {
                put(object, &path, "");
            }
        }
        match_cidrs(object);
        if *at(object, &["spec", "unschedulable"]) == json!(false) {
            fields(crate::object::child(object, "spec")).remove("unschedulable");
        }
    }

    fn create(&self, new: &mut Value, _around: &mut Surroundings<'_>) -> Result<(), Vec<Fault>> {
        taint_until_ready(new);
        Ok(())
    }

    fn update(
        &self,
        part: Part,
        new: &mut Value,
        old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        keep_apart(part, new, old);
        Ok(())
    }

    fn faults(&self, _part: Part, new: &Value, old: Option<&Value>) -> Vec<Fault> {
        let mut faults = faults_of_taints(new);
        faults.extend(faults_of_cidrs(new));
        if let Some(old) = old {
            faults.extend(faults_of_addresses(new));
            faults.extend(faults_of_change(new, old));
        }
        faults
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let unschedulable = *at(object, &["spec", "unschedulable"]) == json!(true);
        vec![("spec.unschedulable", unschedulable.to_string())]
    }
}

/// No Pod comes to a new Node before it was seen ready.
fn taint_until_ready(node: &mut Value) {
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    let is_there = |taint: &Value| {
        text(taint, &["key"]) == NOT_READY && text(taint, &["effect"]) == "NoSchedule"
    };
    if !taints.iter().any(is_there) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        put(node, &["spec", "taints"], taints);
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What the Go type writes down even when it is empty.
const NODE_INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

/// `podCIDR` is the first of `podCIDRs`; who writes only the one means both.
fn match_cidrs(object: &mut Value) {
    let single = text(object, &["spec", "podCIDR"]).to_owned();
    let many = texts(object, &["spec", "podCIDRs"]);
    match many.first() {
        None if !single.is_empty() => put(object, &["spec", "podCIDRs"], vec![single]),
        Some(first) if single.is_empty() => {
            put_default(object, &["spec", "podCIDR"], first.as_str());
        }
        Some(first) if *first != single => put(object, &["spec", "podCIDRs"], vec![single]),
        _ => {}
    }
}

fn faults_of_taints(node: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in items(node, &["spec", "taints"]).iter().enumerate() {
        // The API server itself names these fields after the metadata.
        let field = format!("metadata.taints[{index}]");
        let (key, effect) = (text(taint, &["key"]), text(taint, &["effect"]));
        if !LabelName::is_key(key) {
            let why = "name part must be non-empty";
            faults.push(Fault::invalid(format!("{field}.key"), &taint["key"], why));
        }
        if !EFFECTS.contains(&effect) {
            faults.push(if effect.is_empty() {
                Fault::required(format!("{field}.effect"), "")
            } else {
                Fault::not_supported(format!("{field}.effect"), &json!(effect), EFFECTS)
            });
        }
        if !seen.insert((key, effect)) {
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":null}}: taints must be unique by key and effect pair",
                json!(key),
                json!(text(taint, &["value"])),
                json!(effect),
            );
            faults.push(Fault::duplicate(field, &shown));
        }
    }
    faults
}

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn faults_of_cidrs(node: &Value) -> Vec<Fault> {
    let cidrs = texts(node, &["spec", "podCIDRs"]);
    let parsed: Vec<Option<IpNet>> = cidrs.iter().map(|cidr| cidr.parse().ok()).collect();
    let mut faults = Vec::new();
    for (index, cidr) in cidrs.iter().enumerate() {
        if parsed.get(index).is_some_and(Option::is_none) {
            let field = format!("spec.podCIDRs[{index}]");
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            faults.push(Fault::invalid(field, &json!(cidr), why));
        }
    }
    let v4 = parsed
        .iter()
        .flatten()
        .filter(|net| net.addr().is_ipv4())
        .count();
    if faults.is_empty() && (v4 > 1 || parsed.len() - v4 > 1) {
        let why = "may specify no more than one CIDR for each IP family";
        faults.push(Fault::invalid("spec.podCIDRs", &json!(cidrs), why));
    }
    faults
}

fn faults_of_addresses(node: &Value) -> Vec<Fault> {
    let mut seen = BTreeSet::new();
    let addresses = items(node, &["status", "addresses"]).iter().enumerate();
    addresses
        .filter(|(_, address)| {
            !seen.insert((text(address, &["type"]), text(address, &["address"])))
        })
        .map(|(index, address)| {
            let (kind, value) = (&address["type"], &address["address"]);
            let shown = format!("{{\"Type\":{kind},\"Address\":{value}}}");
            Fault::duplicate(format!("status.addresses[{index}]"), &shown)
        })
        .collect()
}

fn faults_of_change(new: &Value, old: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let before = texts(old, &["spec", "podCIDRs"]);
    if !before.is_empty() && before != texts(new, &["spec", "podCIDRs"]) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        faults.push(Fault::forbidden("spec.podCIDRs", why));
    }
    let before = text(old, &["spec", "providerID"]);
    if !before.is_empty() && before != text(new, &["spec", "providerID"]) {
        let why = "node updates may not change providerID except from \"\" to valid";
        faults.push(Fault::forbidden("spec.providerID", why));
    }
    faults
}
