use cloudkeel_api::{BudgetRecord, SystemClock};
use cloudkeel_controllers::report::{ControllerReport, QueueReport, WaitingNode};
use cloudkeel_controllers::view::{NodeView, View as _};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::health::{CloudStatus, ControllerStatus, LeaderStatus};
use crate::metrics::{BuildInfo, Metrics, Spent};

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
fn nodes_are_listed_by_name_with_their_state() {
    let uninitialised = "node.cloudprovider.kubernetes.io/uninitialized";
    let shut_down = "node.cloudprovider.kubernetes.io/shutdown";
    let nodes = [
        node("d", "False", Some(shut_down)),
        node("c", "Unknown", None),
        node("b", "True", Some(uninitialised)),
        node("a", "True", None),
    ];
    let waiting = [WaitingNode {
        node: "b".to_owned(),
        waits_for: "no machine has this name".to_owned(),
        seconds: 12,
    }];
    let rows = node_rows::nodes(&nodes, &node_rows::Machines::of(&[]), &waiting);
    let rendered: Vec<_> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.state.as_str(), row.level))
        .collect();
    assert_eq!(
        rendered,
        [
            ("a", "Ready", Level::Good),
            ("b", "not initialised", Level::Warning),
            ("c", "Unknown", Level::Bad),
            ("d", "shut down", Level::Warning),
        ]
    );
    assert_eq!(rows[0].machine, "local://demo/a");
    assert_eq!(rows[0].machine_state, "not seen yet");
    assert_eq!(rows[0].addresses, ["10.0.0.1"]);
    assert_eq!(rows[1].note.as_deref(), Some("no machine has this name"));
}

#[test]
fn a_controller_says_what_it_waits_for_or_that_it_has_nothing_to_do() {
    let status = |running, ready, waits_for: &[&str]| ControllerStatus {
        name: "service-lb-controller",
        running,
        report: ControllerReport {
            queue: QueueReport {
                ready,
                working: 0,
                delayed: 0,
                ..QueueReport::default()
            },
            waits_for: waits_for.iter().map(ToString::to_string).collect(),
            ..ControllerReport::default()
        },
    };
    for (status, state, note) in [
        (status(true, 0, &[]), "runs", Some("nothing to do")),
        (status(true, 3, &[]), "runs", None),
        (status(true, 0, &["a", "b"]), "runs", Some("a; b")),
        (status(false, 0, &[]), "stopped", None),
    ] {
        let row = node_rows::controller(&status);
        assert_eq!((row.state.as_str(), row.note.as_deref()), (state, note));
    }
}

#[test]
fn a_cloud_that_was_never_seen_is_not_said_to_answer() {
    let status = CloudStatus {
        unavailable: None,
        name: "fsn".to_owned(),
        provider: "quiet".to_owned(),
        last_list: None,
        last_failure: None,
        deletions: None,
    };
    let spent = Spent {
        calls: 9,
        changes: 2,
        budget: Some(BudgetRecord {
            limit: 3600,
            remaining: 3591,
        }),
    };
    let row = node_rows::cloud(&status, spent);
    assert_eq!(
        (row.state.as_str(), row.level),
        ("not listed yet", Level::Neutral)
    );
    assert_eq!(row.calls, Some((9, 2)));
    let budget = row.budget.map(|budget| (budget.left, budget.of));
    assert_eq!(budget, Some((3591, 3600)));
}

#[tokio::test]
async fn a_standby_says_where_to_look() {
    let health = Arc::new(Health::new(Timestamp::UNIX_EPOCH));
    let metrics = Metrics::new(&BuildInfo::of_version("1"), Timestamp::UNIX_EPOCH);
    let page = ManagerPage::new(Arc::clone(&health), metrics.clouds, Arc::new(SystemClock));
    let data = page.data().await;
    assert_eq!(data.summary.level, Level::Bad, "there is no leader yet");
    health.status_report().follow_election(|| LeaderStatus {
        holder: Some("pod-b".to_owned()),
        ..LeaderStatus::default()
    });
    let data = page.data().await;
    assert_eq!(data.managers[0].state, "stands by");
    assert_eq!(data.summary.level, Level::Neutral);
    let text = &data.summary.text;
    assert!(text.starts_with("This replica stands by"), "{text}");
    assert_eq!(data.leader.holder.as_deref(), Some("pod-b"));
    assert!(data.nodes.is_empty() && data.actions.is_empty());
}
