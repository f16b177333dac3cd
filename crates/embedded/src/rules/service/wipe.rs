//! What a Service loses when its type changes and its author did not touch it.

use serde_json::{Value, json};

use super::fill_in::ports;
use super::{
    has_node_ports, is_reached_from_outside, kind, needs_cluster_ip, needs_health_check_port,
};
use crate::object::{at, fields, items, put};

pub(super) fn wipe(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, old, "clusterIP") && same(new, old, "clusterIPs") {
            drop_field(new, "clusterIP");
            drop_field(new, "clusterIPs");
        }
        drop_same(new, old, "ipFamilies");
        drop_same(new, old, "ipFamilyPolicy");
    }
    if has_node_ports(old) && !has_node_ports(new) && adds_no_node_port(new, old) {
        for port in ports(new) {
            fields(port).remove("nodePort");
        }
    }
    if needs_health_check_port(old) && !needs_health_check_port(new) {
        drop_same(new, old, "healthCheckNodePort");
    }
    if kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer" {
        drop_same(new, old, "allocateLoadBalancerNodePorts");
        drop_same(new, old, "loadBalancerClass");
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(new) {
        drop_same(new, old, "externalTrafficPolicy");
    }
    if kind(new) != "LoadBalancer" {
        put(new, &["status", "loadBalancer"], json!({}));
    }
}

fn same(new: &Value, old: &Value, field: &str) -> bool {
    *at(new, &["spec", field]) == *at(old, &["spec", field])
}

fn drop_field(new: &mut Value, field: &str) {
    put(new, &["spec", field], Value::Null);
}

fn drop_same(new: &mut Value, old: &Value, field: &str) {
    if same(new, old, field) {
        drop_field(new, field);
    }
}

fn adds_no_node_port(new: &Value, old: &Value) -> bool {
    let before = items(old, &["spec", "ports"]);
    let known = |port: &Value| before.iter().any(|old| old["nodePort"] == port["nodePort"]);
    let mut after = items(new, &["spec", "ports"]).iter();
    after.all(|port| port["nodePort"].is_null() || known(port))
}
