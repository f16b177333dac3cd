use serde_json::{Value, json};

use super::*;
use crate::service::fixtures::{lone, owner, service};

fn changed(before: Value, after: Value) -> bool {
    needs_update(&service(before), &service(after), &lone())
}

fn port(over: &Value) -> Value {
    let mut port = json!({"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080});
    let (Some(port_fields), Some(over)) = (port.as_object_mut(), over.as_object()) else {
        panic!("{over} is no object");
    };
    port_fields.extend(over.clone());
    json!({"spec": {"ports": [port]}})
}

#[test]
fn every_field_that_matters_is_noticed() {
    let rows = [
        (
            "source ranges",
            json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
        ),
        ("affinity", json!({"spec": {"sessionAffinity": "ClientIP"}})),
        ("address", json!({"spec": {"loadBalancerIP": "192.0.2.1"}})),
        (
            "external IPs",
            json!({"spec": {"externalIPs": ["192.0.2.1"]}}),
        ),
        (
            "annotation",
            json!({"metadata": {"annotations": {"any.io/thing": "x"}}}),
        ),
        ("uid", json!({"metadata": {"uid": "u-2"}})),
        (
            "traffic policy",
            json!({"spec": {"externalTrafficPolicy": "Local"}}),
        ),
        (
            "health check port",
            json!({"spec": {"healthCheckNodePort": 32000}}),
        ),
        (
            "families 1 to 2",
            json!({"spec": {"ipFamilies": ["IPv4", "IPv6"]}}),
        ),
        ("type", json!({"spec": {"type": "ClusterIP"}})),
        (
            "deletion",
            json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}),
        ),
        ("port name", port(&json!({"name": "web"}))),
        ("port protocol", port(&json!({"protocol": "UDP"}))),
        ("port number", port(&json!({"port": 81}))),
        ("node port", port(&json!({"nodePort": 30081}))),
        ("target port", port(&json!({"targetPort": 8081}))),
        ("target port by name", port(&json!({"targetPort": "8080"}))),
        ("app protocol set", port(&json!({"appProtocol": "http"}))),
        ("no ports", json!({"spec": {"ports": []}})),
    ];
    for (case, other) in rows {
        assert!(changed(json!({}), other.clone()), "{case}");
        assert!(changed(other.clone(), json!({})), "{case}, and back");
        assert!(!changed(other.clone(), other), "{case}, but the same");
    }
}

#[test]
fn changes_of_what_is_set_already_are_noticed() {
    let affinity = |seconds| {
        json!({"spec": {
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}},
        }})
    };
    let ranges = |list: &[&str]| json!({"spec": {"loadBalancerSourceRanges": list}});
    let external = |list: &[&str]| json!({"spec": {"externalIPs": list}});
    let two_ports = |first, second| json!({"spec": {"ports": [{"port": first}, {"port": second}]}});
    for (case, before, after) in [
        ("affinity timeout", affinity(60), affinity(61)),
        (
            "app protocol changed",
            port(&json!({"appProtocol": "http"})),
            port(&json!({"appProtocol": "https"})),
        ),
        (
            "range order",
            ranges(&["10.0.0.0/8", "11.0.0.0/8"]),
            ranges(&["11.0.0.0/8", "10.0.0.0/8"]),
        ),
        (
            "external IP order",
            external(&["192.0.2.1", "192.0.2.2"]),
            external(&["192.0.2.2", "192.0.2.1"]),
        ),
        ("port order", two_ports(80, 443), two_ports(443, 80)),
        (
            "annotation value",
            json!({"metadata": {"annotations": {"a": "1"}}}),
            json!({"metadata": {"annotations": {"a": "2"}}}),
        ),
    ] {
        assert!(changed(before, after), "{case}");
    }
}

#[test]
fn what_says_nothing_about_the_balancer_is_no_reason() {
    for (case, other) in [
        ("labels", json!({"metadata": {"labels": {"a": "b"}}})),
        ("finalizers", json!({"metadata": {"finalizers": ["x"]}})),
        (
            "resource version",
            json!({"metadata": {"resourceVersion": "2"}}),
        ),
        ("selector", json!({"spec": {"selector": {"app": "web"}}})),
        ("cluster IP", json!({"spec": {"clusterIP": "10.96.0.1"}})),
        (
            "internal policy",
            json!({"spec": {"internalTrafficPolicy": "Local"}}),
        ),
        (
            "family policy",
            json!({"spec": {"ipFamilyPolicy": "PreferDualStack"}}),
        ),
        (
            "node port allocation",
            json!({"spec": {"allocateLoadBalancerNodePorts": false}}),
        ),
        (
            "not ready addresses",
            json!({"spec": {"publishNotReadyAddresses": true}}),
        ),
        (
            "distribution",
            json!({"spec": {"trafficDistribution": "PreferClose"}}),
        ),
        (
            "status",
            json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
        ),
    ] {
        assert!(!changed(json!({}), other), "{case}");
    }
    let families = |list: &[&str]| json!({"spec": {"ipFamilies": list}});
    assert!(!changed(
        families(&["IPv4", "IPv6"]),
        families(&["IPv6", "IPv4"])
    ));
}

#[test]
fn services_of_others_may_change_as_they_like() {
    for over in [
        json!({"spec": {"type": "NodePort"}}),
        json!({"spec": {"loadBalancerClass": "foreign"}}),
        json!({"spec": {"loadBalancerClass": ""}}),
    ] {
        let before = service(over.clone());
        let mut after = service(over);
        after.source_ranges = vec!["10.0.0.0/8".to_owned()];
        assert!(!needs_update(&before, &after, &lone()));
    }
}

#[test]
fn a_service_that_moves_to_another_cloud_is_noticed() {
    let classes = Classes::new(vec![
        owner("fsn", true, None),
        owner("dc1", false, Some("vsphere")),
    ]);
    let before = service(json!({}));
    let after = service(json!({"spec": {"loadBalancerClass": "vsphere"}}));
    assert!(needs_update(&before, &after, &classes));
}
