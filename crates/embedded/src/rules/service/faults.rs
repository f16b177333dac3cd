//! What is wrong with a Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{is_headless, is_reached_from_outside, kind, needs_health_check_port};
use crate::kinds::{LabelName, NameRule};
use crate::object::{at, items, text, texts};
use crate::refusal::Fault;
use crate::rules::meta::faults_of_labels;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const POLICIES: &[&str] = &["Cluster", "Local"];

pub(super) fn of_spec(new: &Value, old: Option<&Value>) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(old) = old {
        faults.extend(of_change(new, old));
    }
    let count = items(new, &["spec", "ports"]).len();
    if count == 0 && !is_headless(new) && kind(new) != "ExternalName" {
        faults.push(Fault::required("spec.ports", ""));
    }
    faults.extend(of_type(new));
    faults.extend(of_ports(new));
    faults.extend(faults_of_labels(
        at(new, &["spec", "selector"]),
        "spec.selector",
    ));
    let affinity = at(new, &["spec", "sessionAffinity"]);
    if !matches!(affinity.as_str(), Some("None" | "ClientIP")) {
        let known = &["ClientIP", "None"];
        faults.push(Fault::not_supported(
            "spec.sessionAffinity",
            affinity,
            known,
        ));
    }
    faults.extend(of_balancer_fields(new));
    faults.extend(of_traffic(new));
    faults
}

fn of_type(new: &Value) -> Option<Fault> {
    match kind(new) {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(new) => {
            let why = format!("may not be set to 'None' for {kind} services");
            Some(Fault::invalid("spec.clusterIPs[0]", &json!("None"), &why))
        }
        "ExternalName" => {
            let name = text(new, &["spec", "externalName"]).trim_end_matches('.');
            if name.is_empty() {
                return Some(Fault::required("spec.externalName", ""));
            }
            let why = NameRule::Subdomain.refuses(name)?;
            Some(Fault::invalid("spec.externalName", &json!(name), &why))
        }
        known if TYPES.contains(&known) => None,
        other => Some(Fault::not_supported("spec.type", &json!(other), TYPES)),
    }
}

fn of_ports(new: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let ports = items(new, &["spec", "ports"]);
    let (mut names, mut numbers, mut node_ports) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        let name = text(port, &["name"]);
        if name.is_empty() && ports.len() > 1 {
            faults.push(Fault::required(field("name"), ""));
        } else if let Some(why) = NameRule::Label.refuses(name).filter(|_| !name.is_empty()) {
            faults.push(Fault::invalid(field("name"), &json!(name), &why));
        } else if !name.is_empty() && !names.insert(name) {
            faults.push(Fault::duplicate(field("name"), &json!(name)));
        }
        if !is_port(&port["port"]) {
            let why = "must be between 1 and 65535, inclusive";
            faults.push(Fault::invalid(field("port"), &port["port"], why));
        }
        let protocol = text(port, &["protocol"]);
        if !PROTOCOLS.contains(&protocol) {
            faults.push(Fault::not_supported(
                field("protocol"),
                &json!(protocol),
                PROTOCOLS,
            ));
        }
        if port["targetPort"].is_number() && !is_port(&port["targetPort"]) {
            let why = "must be between 1 and 65535, inclusive";
            faults.push(Fault::invalid(
                field("targetPort"),
                &port["targetPort"],
                why,
            ));
        }
        let node_port = &port["nodePort"];
        if kind(new) == "ClusterIP" && !node_port.is_null() {
            let why = "may not be used when `type` is 'ClusterIP'";
            faults.push(Fault::forbidden(field("nodePort"), why));
        }
        if !node_port.is_null() && !node_ports.insert((protocol, node_port.as_u64())) {
            faults.push(Fault::duplicate(field("nodePort"), node_port));
        }
        if !numbers.insert((protocol, port["port"].as_u64())) {
            let shown = json!({"protocol": protocol, "port": port["port"]});
            faults.push(Fault::duplicate(format!("spec.ports[{index}]"), &shown));
        }
    }
    faults
}

fn is_port(number: &Value) -> bool {
    number
        .as_i64()
        .is_some_and(|number| (1..=65_535).contains(&number))
}

/// What only a balancer may have.
fn of_balancer_fields(new: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_balancer = kind(new) == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = texts(new, &["spec", "loadBalancerSourceRanges"]);
    // The API server itself spells this field with a capital letter.
    let field = "spec.LoadBalancerSourceRanges";
    if !ranges.is_empty() && !is_balancer {
        faults.push(Fault::forbidden(field, only));
    }
    for (index, range) in ranges.iter().enumerate() {
        if range.trim().parse::<IpNet>().is_err() {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            faults.push(Fault::invalid(
                format!("{field}[{index}]"),
                &json!(range),
                why,
            ));
        }
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !at(new, &["spec", field]).is_null() && !is_balancer {
            faults.push(Fault::forbidden(format!("spec.{field}"), only));
        }
    }
    if is_balancer && let Some(class) = at(new, &["spec", "loadBalancerClass"]).as_str() {
        let reported = LabelName::refuses(class).into_iter();
        faults.extend(
            reported.map(|why| Fault::invalid("spec.loadBalancerClass", &json!(class), &why)),
        );
    }
    faults
}

fn of_traffic(new: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let policy = text(new, &["spec", "externalTrafficPolicy"]);
    let field = "spec.externalTrafficPolicy";
    if !is_reached_from_outside(new) && !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        faults.push(Fault::invalid(field, &json!(policy), why));
    } else if !policy.is_empty() && !POLICIES.contains(&policy) {
        faults.push(Fault::not_supported(field, &json!(policy), POLICIES));
    }
    let port = at(new, &["spec", "healthCheckNodePort"]);
    if !port.is_null() && !needs_health_check_port(new) {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        faults.push(Fault::invalid("spec.healthCheckNodePort", port, why));
    }
    let inside = at(new, &["spec", "internalTrafficPolicy"]);
    if inside
        .as_str()
        .is_some_and(|inside| !POLICIES.contains(&inside))
    {
        faults.push(Fault::not_supported(
            "spec.internalTrafficPolicy",
            inside,
            POLICIES,
        ));
    }
    faults
}

/// What must stay as it is.
fn of_change(new: &Value, old: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let by_name = |service: &Value| kind(service) == "ExternalName";
    if !by_name(new) && !by_name(old) {
        let (before, after) = (
            at(old, &["spec", "clusterIPs"]),
            at(new, &["spec", "clusterIPs"]),
        );
        let (before, addresses) = (before.as_array(), after.as_array());
        let pairs = before
            .into_iter()
            .flatten()
            .zip(addresses.into_iter().flatten());
        for (index, (before, address)) in pairs.enumerate() {
            if before != address {
                let field = format!("spec.clusterIPs[{index}]");
                faults.push(Fault::invalid(field, after, "may not change once set"));
            }
        }
    }
    let both_balance = kind(new) == "LoadBalancer" && kind(old) == "LoadBalancer";
    let class = at(new, &["spec", "loadBalancerClass"]);
    if both_balance && *class != *at(old, &["spec", "loadBalancerClass"]) {
        let why = "may not change once set";
        faults.push(Fault::invalid("spec.loadBalancerClass", class, why));
    }
    let port = |service: &Value| at(service, &["spec", "healthCheckNodePort"]).clone();
    if needs_health_check_port(new) && needs_health_check_port(old) && port(new) != port(old) {
        let why = "field is immutable";
        faults.push(Fault::forbidden("spec.healthCheckNodePort", why));
    }
    faults
}

pub(super) fn of_status(new: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let ingress = items(new, &["status", "loadBalancer", "ingress"]);
    let field = "status.loadBalancer.ingress";
    if kind(new) != "LoadBalancer" && !ingress.is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![Fault::forbidden(field, why)];
    }
    for (index, entry) in ingress.iter().enumerate() {
        let field = |name: &str| format!("{field}[{index}].{name}");
        let (ip, mode) = (text(entry, &["ip"]), text(entry, &["ipMode"]));
        if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            faults.push(Fault::invalid(field("ip"), &json!(ip), why));
        }
        if !ip.is_empty() && mode.is_empty() {
            let why = "must be specified when `ip` is set";
            faults.push(Fault::required(field("ipMode"), why));
        } else if ip.is_empty() && !mode.is_empty() {
            let why = "may not be specified when `ip` is not set";
            faults.push(Fault::forbidden(field("ipMode"), why));
        } else if !matches!(mode, "" | "VIP" | "Proxy") {
            faults.push(Fault::not_supported(
                field("ipMode"),
                &json!(mode),
                &["Proxy", "VIP"],
            ));
        }
        let hostname = text(entry, &["hostname"]);
        if hostname.parse::<IpAddr>().is_ok() {
            let why = "must be a DNS name, not an IP address";
            faults.push(Fault::invalid(field("hostname"), &json!(hostname), why));
        } else if let Some(why) = NameRule::Subdomain
            .refuses(hostname)
            .filter(|_| !hostname.is_empty())
        {
            faults.push(Fault::invalid(field("hostname"), &json!(hostname), &why));
        }
    }
    faults
}
