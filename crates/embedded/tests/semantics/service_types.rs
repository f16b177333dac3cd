//! Services that change their type: what they lose and what they get.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn service_types_agree() {
    agree(
        "services that change their type",
        cases![
            from_balancer_to_each,
            from_cluster_ip_to_each,
            from_external_name_and_back,
            the_status_goes_with_the_balancer,
            what_a_client_asks_for_is_not_wiped,
            a_put_of_another_type,
        ],
    )
    .await;
}

async fn add(b: &Bench, name: &str, spec: Value) {
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": name}, "spec": spec}),
    )
    .await;
}

async fn retype(b: &Bench, name: &str, kind: &str) {
    b.merge(
        &b.here(&format!("services/{name}")),
        json!({"spec": {"type": kind}}),
    )
    .await;
}

fn balancer() -> Value {
    json!({
        "type": "LoadBalancer", "ports": [{"port": 80}], "externalTrafficPolicy": "Local",
        "loadBalancerClass": "x.io/c", "allocateLoadBalancerNodePorts": true,
    })
}

async fn from_balancer_to_each(b: &Bench) {
    for kind in ["NodePort", "ClusterIP"] {
        let name = kind.to_lowercase();
        add(b, &name, balancer()).await;
        retype(b, &name, kind).await;
    }
    add(b, "external", balancer()).await;
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
    b.merge(&b.here("services/external"), patch).await;
}

async fn from_cluster_ip_to_each(b: &Bench) {
    let kinds = ["NodePort", "LoadBalancer"];
    for kind in kinds {
        let name = kind.to_lowercase();
        add(b, &name, json!({"ports": [{"port": 80}]})).await;
        retype(b, &name, kind).await;
    }
    // A port that is given back may be given out again.
    for kind in kinds {
        retype(b, &kind.to_lowercase(), "ClusterIP").await;
    }
}

async fn from_external_name_and_back(b: &Bench) {
    add(
        b,
        "s",
        json!({"type": "ExternalName", "externalName": "a.example", "ports": [{"port": 80}]}),
    )
    .await;
    retype(b, "s", "ClusterIP").await;
    retype(b, "s", "ExternalName").await;
}

async fn the_status_goes_with_the_balancer(b: &Bench) {
    add(b, "s", balancer()).await;
    let ingress = json!([{"ip": "192.0.2.1"}]);
    b.merge(
        &b.here("services/s/status"),
        json!({"status": {"loadBalancer": {"ingress": ingress}}}),
    )
    .await;
    retype(b, "s", "ClusterIP").await;
}

async fn what_a_client_asks_for_is_not_wiped(b: &Bench) {
    add(b, "s", json!({"type": "NodePort", "ports": [{"port": 80}]})).await;
    let patch = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30069}]}});
    b.merge(&b.here("services/s"), patch).await;
}

async fn a_put_of_another_type(b: &Bench) {
    add(b, "s", balancer()).await;
    let body =
        json!({"metadata": {"name": "s"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    b.put(&b.here("services/s"), body).await;
}
