//! The fixed defaults of a Service.

use serde_json::{Value, json};

use super::{is_reached_from_outside, kind};
use crate::object::{at, child, fields, is_unset, put, put_default, text};

const CLIENT_IP_SECONDS: u32 = 10_800;

pub(super) fn fill_in(service: &mut Value) {
    if at(service, &["status", "loadBalancer"]).is_null() {
        put(service, &["status", "loadBalancer"], json!({}));
    }
    put_default(service, &["spec", "sessionAffinity"], "None");
    fill_in_affinity(service);
    put_default(service, &["spec", "type"], "ClusterIP");
    for port in ports(service) {
        put_default(port, &["protocol"], "TCP");
        if is_unset(&port["targetPort"]) {
            let number = port["port"].clone();
            put(port, &["targetPort"], number);
        }
        drop_if(port, "nodePort", &json!(0));
    }
    if is_reached_from_outside(service) {
        put_default(service, &["spec", "externalTrafficPolicy"], "Cluster");
    }
    let inside = ["spec", "internalTrafficPolicy"];
    match kind(service) {
        "ExternalName" => put(service, &inside, Value::Null),
        _ => put_default(service, &inside, "Cluster"),
    }
    if kind(service) == "LoadBalancer" {
        put_default(service, &["spec", "allocateLoadBalancerNodePorts"], true);
        fill_in_modes(service);
    }
    let spec = child(service, "spec");
    drop_if(spec, "healthCheckNodePort", &json!(0));
    drop_if(spec, "publishNotReadyAddresses", &json!(false));
    for field in [
        "clusterIP",
        "externalName",
        "loadBalancerIP",
        "externalTrafficPolicy",
    ] {
        drop_if(spec, field, &json!(""));
    }
}

/// What Go leaves out because it has its type's zero value.
fn drop_if(value: &mut Value, field: &str, zero: &Value) {
    if value[field] == *zero {
        fields(value).remove(field);
    }
}

fn fill_in_affinity(service: &mut Value) {
    match text(service, &["spec", "sessionAffinity"]) {
        "None" => put(service, &["spec", "sessionAffinityConfig"], Value::Null),
        "ClientIP" => put_default(
            service,
            &[
                "spec",
                "sessionAffinityConfig",
                "clientIP",
                "timeoutSeconds",
            ],
            CLIENT_IP_SECONDS,
        ),
        _ => {}
    }
}

/// An address of a balancer without a mode is one that the balancer answers for.
fn fill_in_modes(service: &mut Value) {
    let status = child(child(service, "status"), "loadBalancer");
    let ingress = status.get_mut("ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten() {
        if !text(entry, &["ip"]).is_empty() {
            put_default(entry, &["ipMode"], "VIP");
        }
    }
}

pub(super) fn ports(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    let spec = child(service, "spec");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten()
}
