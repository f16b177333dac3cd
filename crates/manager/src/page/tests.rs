use cloudkeel_api::SystemClock;
use cloudkeel_controllers::view::{NodeView, ServiceView, View as _};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::health::CloudStatus;

fn node(name: &str, ready: &str, taint: Option<&str>) -> Arc<NodeView> {
    let taints: Vec<_> = taint
        .map(|key| json!({"key": key, "effect": "NoSchedule"}))
        .into_iter()
        .collect();
    let node = json!({
        "metadata": {"name": name},
        "spec": {"taints": taints, "providerID": format!("local://demo/{name}")},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ],
        },
    });
    Arc::new(NodeView::of(&serde_json::from_value(node).unwrap()))
}

#[test]
fn nodes_are_told_by_name_with_their_state() {
    let uninitialised = "node.cloudprovider.kubernetes.io/uninitialized";
    let nodes = [
        node("c", "Unknown", None),
        node("b", "True", Some(uninitialised)),
        node("a", "True", None),
    ];
    let rows = rows::nodes(&nodes, &rows::Machines::of(&[]));
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.state.as_str(), row.level))
        .collect();
    assert_eq!(
        told,
        [
            ("a", "Ready", Level::Good),
            ("b", "not initialised", Level::Warning),
            ("c", "Unknown", Level::Bad),
        ]
    );
    assert_eq!(rows[0].machine, "local://demo/a");
    assert_eq!(rows[0].machine_state, "not seen yet");
    assert_eq!(rows[0].addresses, ["10.0.0.1"]);
}

#[test]
fn services_that_want_a_balancer_are_told_with_their_ports() {
    let service = |name: &str, kind: &str, ingress: serde_json::Value| {
        let service = json!({
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"type": kind, "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        });
        Arc::new(ServiceView::of(&serde_json::from_value(service).unwrap()))
    };
    let rows = rows::balancers(&[
        service("web", "LoadBalancer", json!([{"hostname": "lb.test"}])),
        service("api", "LoadBalancer", json!([])),
        service("db", "ClusterIP", json!([])),
    ]);
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.service.as_str(), row.state.as_str()))
        .collect();
    assert_eq!(told, [("shop/api", "pending"), ("shop/web", "in service")]);
    assert_eq!(rows[1].addresses, ["lb.test"]);
    assert_eq!(rows[1].listeners, ["TCP 80 → 30080"]);
}

#[test]
fn a_cloud_that_was_never_seen_is_not_said_to_answer() {
    let status = CloudStatus {
        name: "fsn".to_owned(),
        provider: "quiet".to_owned(),
        last_sweep: None,
        last_failure: None,
        deletions: None,
    };
    let row = rows::cloud(&status);
    assert_eq!(
        (row.state.as_str(), row.level),
        ("not looked at yet", Level::Neutral)
    );
}

#[tokio::test]
async fn a_standby_says_where_to_look() {
    let health = Arc::new(Health::new(Timestamp::UNIX_EPOCH));
    let picture = Board::new(health, Arc::new(SystemClock)).picture().await;
    assert_eq!(picture.managers[0].state, "stands by");
    assert!(picture.notice.unwrap().contains("the one that leads"));
    assert!(picture.nodes.is_empty() && picture.actions.is_empty());
}
