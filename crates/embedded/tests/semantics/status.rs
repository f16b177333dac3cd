//! The status subresources: what a write there may change.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn status_agrees() {
    agree(
        "status subresources",
        cases![
            the_status_of_a_node_is_written_apart,
            metadata_of_a_node_through_its_status,
            the_status_of_a_service_is_written_apart,
            metadata_of_a_service_through_its_status,
            an_ingress_has_a_mode,
            an_ingress_is_checked,
            an_ingress_is_for_balancers,
            a_status_may_be_replaced,
            conditions_of_a_service,
        ],
    )
    .await;
}

async fn node(b: &Bench) -> String {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    format!("/api/v1/nodes/{}", b.own("n"))
}

async fn balancer(b: &Bench) -> String {
    let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}]});
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "s"}, "spec": spec}),
    )
    .await;
    b.here("services/s")
}

async fn the_status_of_a_node_is_written_apart(b: &Bench) {
    let path = node(b).await;
    let both = json!({"spec": {"providerID": "x://1"}, "status": {"addresses": [{"type": "Hostname", "address": "h"}]}});
    b.merge(&format!("{path}/status"), both.clone()).await;
    b.merge(&path, both).await;
    b.merge(&path, json!({"status": {"addresses": null}})).await;
}

async fn metadata_of_a_node_through_its_status(b: &Bench) {
    let path = format!("{}/status", node(b).await);
    let metadata =
        json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.io/f"]});
    b.merge(&path, json!({"metadata": metadata})).await;
}

async fn the_status_of_a_service_is_written_apart(b: &Bench) {
    let path = balancer(b).await;
    let both = json!({
        "spec": {"loadBalancerIP": "192.0.2.5"},
        "status": {"loadBalancer": {"ingress": [{"hostname": "a.example"}]}},
    });
    b.merge(&format!("{path}/status"), both.clone()).await;
    b.merge(&path, both).await;
    b.merge(
        &path,
        json!({"status": {"loadBalancer": {"ingress": null}}}),
    )
    .await;
    b.merge(
        &format!("{path}/status"),
        json!({"status": {"loadBalancer": null}}),
    )
    .await;
}

async fn metadata_of_a_service_through_its_status(b: &Bench) {
    let path = format!("{}/status", balancer(b).await);
    let metadata =
        json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.io/f"]});
    b.merge(&path, json!({"metadata": metadata})).await;
    b.merge(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

async fn an_ingress_has_a_mode(b: &Bench) {
    let path = format!("{}/status", balancer(b).await);
    for ingress in [
        json!([{"ip": "192.0.2.1"}]),
        json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}, {"hostname": "a.example"}]),
        json!([{"ip": "192.0.2.1", "ports": [{"port": 80, "protocol": "TCP"}]}]),
        json!([]),
    ] {
        b.merge(
            &path,
            json!({"status": {"loadBalancer": {"ingress": ingress}}}),
        )
        .await;
    }
}

async fn an_ingress_is_checked(b: &Bench) {
    let path = format!("{}/status", balancer(b).await);
    for ingress in [
        json!([{"ip": "nonsense"}]),
        json!([{"hostname": "192.0.2.1"}]),
        json!([{"hostname": "Upper.example"}]),
        json!([{"hostname": "a.example", "ipMode": "VIP"}]),
        json!([{"ip": "192.0.2.1", "ipMode": "Odd"}]),
    ] {
        b.merge(
            &path,
            json!({"status": {"loadBalancer": {"ingress": ingress}}}),
        )
        .await;
    }
}

async fn an_ingress_is_for_balancers(b: &Bench) {
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    let patch = json!({"status": {"loadBalancer": {"ingress": [{"hostname": "a.example"}]}}});
    b.merge(&b.here("services/s/status"), patch).await;
}

async fn a_status_may_be_replaced(b: &Bench) {
    let path = balancer(b).await;
    let mut service = b.get(&path).await;
    service["status"]["loadBalancer"]["ingress"] = json!([{"ip": "192.0.2.1"}]);
    service["spec"]["type"] = json!("ClusterIP");
    b.put(&format!("{path}/status"), service.clone()).await;
    b.put(&format!("{path}/status"), service).await;
}

async fn conditions_of_a_service(b: &Bench) {
    let path = format!("{}/status", balancer(b).await);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    b.strategic(
        &path,
        json!({"status": {"conditions": [condition("A", "True")]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"status": {"conditions": [condition("B", "False")]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"status": {"conditions": [condition("A", "Unknown")]}}),
    )
    .await;
}
