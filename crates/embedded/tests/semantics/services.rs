//! Services: defaults, addresses, ports.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn services_agree() {
    agree(
        "services",
        cases![
            defaults_of_each_type,
            affinity_has_a_timeout,
            headless_services,
            families,
            a_node_port_may_be_asked_for,
            a_taken_node_port_is_refused,
            a_released_node_port_is_free_again,
            node_ports_survive_changes,
            a_port_shared_by_two_protocols,
            balancers_without_node_ports,
            a_health_check_port_for_local_traffic,
            a_cluster_address_may_be_asked_for,
            ports_are_checked,
            fields_of_balancers_are_checked,
            a_class_is_a_qualified_name,
            a_class_changes_by_way_of_another_type,
            traffic_policies_are_checked,
            a_put_creates,
            a_service_as_kubectl_sends_it_again,
        ],
    )
    .await;
}

async fn add(b: &Bench, name: &str, spec: Value) -> Value {
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": name}, "spec": spec}),
    )
    .await
}

async fn defaults_of_each_type(b: &Bench) {
    add(b, "plain", json!({"ports": [{"port": 80}]})).await;
    add(b, "empty", json!({})).await;
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "nothing"}}),
    )
    .await;
    for kind in ["ClusterIP", "NodePort", "LoadBalancer"] {
        let ports = json!([{"name": "http", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
        add(
            b,
            &kind.to_lowercase(),
            json!({"type": kind, "ports": ports, "selector": {"app": "x"}}),
        )
        .await;
    }
    add(
        b,
        "external",
        json!({"type": "ExternalName", "externalName": "a.example"}),
    )
    .await;
    add(b, "odd", json!({"type": "Odd", "ports": [{"port": 80}]})).await;
}

async fn affinity_has_a_timeout(b: &Bench) {
    add(
        b,
        "a",
        json!({"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}),
    )
    .await;
    let config = json!({"clientIP": {"timeoutSeconds": 30}});
    add(b, "b", json!({"ports": [{"port": 80}], "sessionAffinity": "ClientIP", "sessionAffinityConfig": config})).await;
    add(b, "c", json!({"ports": [{"port": 80}], "sessionAffinity": "None", "sessionAffinityConfig": config})).await;
    add(
        b,
        "d",
        json!({"ports": [{"port": 80}], "sessionAffinity": "Odd"}),
    )
    .await;
}

async fn headless_services(b: &Bench) {
    add(
        b,
        "selected",
        json!({"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}),
    )
    .await;
    add(
        b,
        "unselected",
        json!({"clusterIP": "None", "ports": [{"port": 80}]}),
    )
    .await;
    add(
        b,
        "portless",
        json!({"clusterIP": "None", "selector": {"a": "b"}}),
    )
    .await;
    add(
        b,
        "balancer",
        json!({"type": "LoadBalancer", "clusterIP": "None", "ports": [{"port": 80}]}),
    )
    .await;
}

async fn families(b: &Bench) {
    let ports = json!([{"port": 80}]);
    add(
        b,
        "single",
        json!({"ports": ports, "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}),
    )
    .await;
    add(
        b,
        "prefer",
        json!({"ports": ports, "ipFamilyPolicy": "PreferDualStack"}),
    )
    .await;
    add(
        b,
        "require",
        json!({"ports": ports, "ipFamilyPolicy": "RequireDualStack"}),
    )
    .await;
    add(b, "six", json!({"ports": ports, "ipFamilies": ["IPv6"]})).await;
}

async fn a_node_port_may_be_asked_for(b: &Bench) {
    add(
        b,
        "a",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30061}]}),
    )
    .await;
    add(
        b,
        "b",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
    )
    .await;
    add(
        b,
        "c",
        json!({"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30062}]}),
    )
    .await;
}

async fn a_taken_node_port_is_refused(b: &Bench) {
    add(
        b,
        "a",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30063}]}),
    )
    .await;
    add(
        b,
        "b",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30063}]}),
    )
    .await;
    add(b, "c", json!({"type": "NodePort", "ports": [{"port": 80}]})).await;
    b.merge(
        &b.here("services/c"),
        json!({"spec": {"ports": [{"port": 80, "nodePort": 30063}]}}),
    )
    .await;
}

async fn a_released_node_port_is_free_again(b: &Bench) {
    add(
        b,
        "a",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30064}]}),
    )
    .await;
    b.delete(&b.here("services/a"), json!({})).await;
    add(
        b,
        "b",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30064}]}),
    )
    .await;
    b.merge(
        &b.here("services/b"),
        json!({"spec": {"type": "ClusterIP"}}),
    )
    .await;
    add(
        b,
        "c",
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30064}]}),
    )
    .await;
}

async fn node_ports_survive_changes(b: &Bench) {
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 443}]);
    add(b, "s", json!({"type": "LoadBalancer", "ports": ports})).await;
    let path = b.here("services/s");
    b.merge(
        &path,
        json!({"spec": {"ports": [{"name": "b", "port": 443}, {"name": "a", "port": 80}]}}),
    )
    .await;
    b.merge(
        &path,
        json!({"spec": {"ports": [{"name": "a", "port": 8080}]}}),
    )
    .await;
    b.merge(&path, json!({"spec": {"type": "NodePort"}})).await;
    b.merge(&path, json!({"spec": {"type": "LoadBalancer"}}))
        .await;
}

async fn a_port_shared_by_two_protocols(b: &Bench) {
    let ports = json!([{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]);
    add(b, "s", json!({"type": "NodePort", "ports": ports})).await;
}

async fn balancers_without_node_ports(b: &Bench) {
    let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}], "allocateLoadBalancerNodePorts": false});
    add(b, "s", spec).await;
    b.merge(
        &b.here("services/s"),
        json!({"spec": {"allocateLoadBalancerNodePorts": true}}),
    )
    .await;
    b.merge(
        &b.here("services/s"),
        json!({"spec": {"allocateLoadBalancerNodePorts": false}}),
    )
    .await;
}

async fn a_health_check_port_for_local_traffic(b: &Bench) {
    let spec =
        json!({"type": "LoadBalancer", "ports": [{"port": 80}], "externalTrafficPolicy": "Local"});
    add(b, "s", spec).await;
    let path = b.here("services/s");
    b.merge(&path, json!({"spec": {"healthCheckNodePort": null}}))
        .await;
    b.merge(&path, json!({"spec": {"healthCheckNodePort": 30065}}))
        .await;
    b.merge(&path, json!({"spec": {"externalTrafficPolicy": "Cluster"}}))
        .await;
    b.merge(
        &path,
        json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30066}}),
    )
    .await;
    b.merge(&path, json!({"spec": {"type": "NodePort"}})).await;
    let spec =
        json!({"type": "LoadBalancer", "ports": [{"port": 80}], "healthCheckNodePort": 30067});
    add(b, "odd", spec).await;
}

async fn a_cluster_address_may_be_asked_for(b: &Bench) {
    add(
        b,
        "a",
        json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.77"}),
    )
    .await;
    add(
        b,
        "b",
        json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.77"}),
    )
    .await;
    add(
        b,
        "c",
        json!({"ports": [{"port": 80}], "clusterIP": "nonsense"}),
    )
    .await;
    b.merge(
        &b.here("services/a"),
        json!({"spec": {"clusterIP": "10.0.0.78", "clusterIPs": ["10.0.0.78"]}}),
    )
    .await;
}

async fn ports_are_checked(b: &Bench) {
    for (name, ports) in [
        ("zero", json!([{"port": 0}])),
        ("large", json!([{"port": 70000}])),
        ("protocol", json!([{"port": 80, "protocol": "ICMP"}])),
        ("nameless", json!([{"port": 80}, {"port": 81}])),
        (
            "same-name",
            json!([{"name": "a", "port": 80}, {"name": "a", "port": 81}]),
        ),
        ("bad-name", json!([{"name": "A_b", "port": 80}])),
        ("target", json!([{"port": 80, "targetPort": 70000}])),
    ] {
        add(b, name, json!({"ports": ports})).await;
    }
    let same = json!([{"name": "a", "port": 80, "nodePort": 30068}, {"name": "b", "port": 81, "nodePort": 30068}]);
    add(
        b,
        "same-node-port",
        json!({"type": "NodePort", "ports": same}),
    )
    .await;
}

async fn fields_of_balancers_are_checked(b: &Bench) {
    let ports = json!([{"port": 80}]);
    add(
        b,
        "a",
        json!({"type": "LoadBalancer", "ports": ports, "loadBalancerSourceRanges": ["nonsense"]}),
    )
    .await;
    add(
        b,
        "b",
        json!({"type": "NodePort", "ports": ports, "loadBalancerSourceRanges": ["192.0.2.0/24"]}),
    )
    .await;
    add(
        b,
        "c",
        json!({"type": "NodePort", "ports": ports, "loadBalancerClass": "x.io/c"}),
    )
    .await;
    add(
        b,
        "d",
        json!({"ports": ports, "allocateLoadBalancerNodePorts": true}),
    )
    .await;
    add(
        b,
        "e",
        json!({"type": "LoadBalancer", "ports": ports, "loadBalancerClass": "x.io/c"}),
    )
    .await;
    b.merge(
        &b.here("services/e"),
        json!({"spec": {"loadBalancerClass": "x.io/d"}}),
    )
    .await;
    b.merge(
        &b.here("services/e"),
        json!({"spec": {"loadBalancerClass": null}}),
    )
    .await;
}

async fn a_class_is_a_qualified_name(b: &Bench) {
    let long = "x".repeat(64);
    let classes = ["", "x", "a b", "x.io/", "/c", "X.io/c", "x.io/c/d", &long];
    for (index, class) in classes.into_iter().enumerate() {
        let spec =
            json!({"type": "LoadBalancer", "ports": [{"port": 80}], "loadBalancerClass": class});
        add(b, &format!("s{index}"), spec).await;
    }
}

async fn a_class_changes_by_way_of_another_type(b: &Bench) {
    let spec =
        json!({"type": "LoadBalancer", "ports": [{"port": 80}], "loadBalancerClass": "x.io/c"});
    add(b, "s", spec).await;
    let path = b.here("services/s");
    for spec in [
        json!({"type": "ClusterIP"}),
        json!({"type": "LoadBalancer", "loadBalancerClass": "x.io/d"}),
        json!({"type": "NodePort"}),
        json!({"type": "LoadBalancer"}),
    ] {
        b.merge(&path, json!({"spec": spec})).await;
    }
}

async fn traffic_policies_are_checked(b: &Bench) {
    let ports = json!([{"port": 80}]);
    add(
        b,
        "a",
        json!({"ports": ports, "externalTrafficPolicy": "Local"}),
    )
    .await;
    add(
        b,
        "b",
        json!({"type": "NodePort", "ports": ports, "externalTrafficPolicy": "Odd"}),
    )
    .await;
    add(
        b,
        "c",
        json!({"type": "NodePort", "ports": ports, "externalTrafficPolicy": "Local"}),
    )
    .await;
    add(
        b,
        "d",
        json!({"ports": ports, "internalTrafficPolicy": "Odd"}),
    )
    .await;
    add(
        b,
        "e",
        json!({"ports": ports, "externalIPs": ["192.0.2.1"]}),
    )
    .await;
}

async fn a_put_creates(b: &Bench) {
    let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    b.put(&b.here("services/s"), body.clone()).await;
    b.put(&b.here("services/s"), body).await;
}

async fn a_service_as_kubectl_sends_it_again(b: &Bench) {
    let spec = json!({"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}], "selector": {"a": "b"}});
    let first = add(b, "s", spec.clone()).await;
    let mut again = json!({"metadata": {"name": "s"}, "spec": spec});
    again["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    b.put(&b.here("services/s"), again).await;
}
