//! Balancers follow the Nodes: all of them, once per burst, and never to nothing by accident.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND};
use crate::support::gate::What;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

fn taint(key: &str) -> Value {
    json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})
}

/// Services without patience for drained Nodes.
fn hasty() -> ServiceSettings {
    ServiceSettings {
        drain: Duration::ZERO,
        ..ServiceSettings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_nodes_is_one_change_of_targets_per_balancer() {
    for services in [0, 1, 3, 4] {
        let mut lab = Lab::with_nodes(2).await;
        lab.serve(services).await;
        let plain = json!({"spec": {"type": "ClusterIP"}});
        lab.api.world().create_service("plain", &plain);
        lab.add_node("late");
        lab.pass(SECOND * 5).await;
        let changes = lab.cloud.calls().of(Operation::ChangeTargets);
        assert_eq!(changes, services as u64);
        assert_eq!(lab.cloud.calls().mutations(), changes);
        for index in 0..services {
            let name = format!("svc-{index}");
            assert_eq!(lab.targets(&name), ["late", "node-000", "node-001"]);
            let events = lab.events(&name, "UpdatedLoadBalancer");
            assert_eq!(events, ["Updated load balancer with new hosts"]);
            assert_eq!(lab.events(&name, "EnsuringLoadBalancer"), [""; 0]);
        }
        assert_eq!(lab.observed.updates.lock().unwrap().len(), services);
        assert_eq!(lab.api.writes(), [], "no address has changed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_events_within_seconds_are_one_change_of_targets() {
    let mut lab = Lab::with_nodes(2).await;
    lab.serve(3).await;
    for index in 0..100 {
        lab.add_node(&format!("burst-{index:03}"));
        lab.pass(Duration::from_millis(50)).await;
    }
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 3);
    assert_eq!(lab.targets("svc-2").len(), 102);
}

#[tokio::test(start_paused = true)]
async fn an_endless_stream_of_events_is_followed_every_ten_seconds() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    for index in 0..80 {
        lab.add_node(&format!("burst-{index:03}"));
        lab.pass(SECOND / 2).await;
    }
    lab.pass(SECOND * 2).await;
    let changes = lab.cloud.calls().of(Operation::ChangeTargets);
    assert!((4..=5).contains(&changes), "{changes}");
    assert_eq!(lab.targets("svc-0").len(), 81);
}

#[tokio::test(start_paused = true)]
async fn only_what_decides_about_targets_counts() {
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let label = |value: &str| json!({"metadata": {"labels": {EXCLUDE: value}}});
    for (case, patch, leaves) in [
        ("not ready", not_ready, false),
        ("an unrelated taint", taint("example.com/other"), false),
        ("cordoned", json!({"spec": {"unschedulable": true}}), false),
        ("excluded", label("true"), true),
        ("excluded by an empty label", label(""), true),
        ("excluded by a strange label", label("foo"), true),
        ("not excluded", label("false"), false),
        (
            "an unrelated label",
            json!({"metadata": {"labels": {"a": "b"}}}),
            false,
        ),
    ] {
        let lab = Lab::with(2, Settings::default(), hasty()).await;
        lab.serve(1).await;
        lab.api.world().change("node-001", &patch);
        lab.pass(SECOND * 5).await;
        let expected: &[&str] = if leaves {
            &["node-000"]
        } else {
            &["node-000", "node-001"]
        };
        assert_eq!(lab.targets("svc-0"), expected, "{case}");
        assert_eq!(lab.cloud.calls().total() > 0, leaves, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_chooses_and_follows_labels() {
    let lab = Lab::with(3, Settings::default(), hasty()).await;
    let label = |value| json!({"metadata": {"labels": {"edge": value}}});
    lab.api.world().change("node-000", &label("yes"));
    let selecting = json!({"metadata": {"annotations": {
        "cloudkeel.dev/lb-node-selector": "edge=yes",
    }}});
    lab.api.world().create_service("web", &selecting);
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("web"), ["node-000"]);
    lab.api.world().change("node-002", &label("yes"));
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("web"), ["node-000", "node-002"]);
}

#[tokio::test(start_paused = true)]
async fn a_leaving_node_is_drained_and_then_removed() {
    let lab = Lab::with_nodes(3).await;
    lab.serve(1).await;
    let autoscaler = taint("ToBeDeletedByClusterAutoscaler");
    lab.api.world().change("node-001", &autoscaler);
    lab.pass(SECOND * 5).await;
    let draining = ["node-000", "node-001 (draining)", "node-002"];
    assert_eq!(lab.targets("svc-0"), draining);
    lab.pass(MINUTE * 5).await;
    assert_eq!(
        lab.targets("svc-0"),
        draining,
        "as long as the Node is there"
    );
    lab.api.world().remove("node-001");
    lab.pass(SECOND * 20).await;
    assert_eq!(lab.targets("svc-0"), draining);
    lab.pass(SECOND * 20).await;
    assert_eq!(lab.targets("svc-0"), ["node-000", "node-002"]);
    assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_vanishes_is_drained_for_the_time_that_its_service_asks_for() {
    let lab = Lab::with_nodes(2).await;
    let patient = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": "300"}}});
    lab.api.world().create_service("patient", &patient);
    lab.serve(1).await;
    lab.api.world().remove("node-001");
    lab.pass(SECOND * 5).await;
    for service in ["svc-0", "patient"] {
        let targets = lab.targets(service);
        assert_eq!(targets, ["node-000", "node-001 (draining)"], "{service}");
    }
    lab.pass(MINUTE).await;
    assert_eq!(lab.targets("svc-0"), ["node-000"]);
    assert_eq!(lab.targets("patient"), ["node-000", "node-001 (draining)"]);
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.targets("patient"), ["node-000"]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_outlives_the_leader_that_began_it() {
    let mut lab = Lab::with_nodes(3).await;
    lab.serve(2).await;
    lab.api.world().remove("node-001");
    lab.pass(SECOND * 25).await;
    let draining = ["node-000", "node-001 (draining)", "node-002"];
    assert_eq!(lab.targets("svc-0"), draining);
    lab.restart().await;
    lab.pass(SECOND * 20).await;
    assert_eq!(lab.targets("svc-0"), draining, "it is not cut short");
    lab.pass(SECOND * 20).await;
    for service in ["svc-0", "svc-1"] {
        assert_eq!(lab.targets(service), ["node-000", "node-002"], "{service}");
        assert_eq!(lab.events(service, "LoadBalancerDrifted"), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_cloud_cannot_drain_a_node_that_leaves_stays_for_that_time() {
    let out_of_service = taint("node.kubernetes.io/out-of-service");
    let shutting_down = json!({"status": {"conditions": [
        {"type": "Ready", "status": "False", "message": "node is shutting down"},
    ]}});
    for (case, leaves) in [
        ("autoscaler", taint("ToBeDeletedByClusterAutoscaler")),
        ("out of service", out_of_service),
        ("graceful shutdown", shutting_down),
    ] {
        let mut cloud = Settings::default();
        cloud.features.drain = false;
        let lab = Lab::with(3, cloud, ServiceSettings::default()).await;
        let hasty = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": "0"}}});
        lab.api.world().create_service("hasty", &hasty);
        lab.serve(1).await;
        lab.api.world().change("node-001", &leaves);
        lab.pass(SECOND * 20).await;
        assert_eq!(lab.targets("hasty"), ["node-000", "node-002"], "{case}");
        let all = ["node-000", "node-001", "node-002"];
        assert_eq!(lab.targets("svc-0"), all, "{case}");
        lab.pass(SECOND * 20).await;
        assert_eq!(lab.targets("svc-0"), ["node-000", "node-002"], "{case}");
        assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_cloud_cannot_drain_what_is_excluded_or_gone_goes_at_once() {
    let mut cloud = Settings::default();
    cloud.features.drain = false;
    let lab = Lab::with(3, cloud, ServiceSettings::default()).await;
    lab.serve(1).await;
    let exclude = json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}});
    lab.api.world().change("node-001", &exclude);
    lab.api.world().remove("node-002");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0"), ["node-000"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_nodes_serve_until_they_are_gone_and_then_there_is_an_event() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    for node in ["node-000", "node-001"] {
        lab.api
            .world()
            .change(node, &taint("ToBeDeletedByClusterAutoscaler"));
    }
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0"), ["node-000", "node-001"]);
    for node in ["node-000", "node-001"] {
        lab.api.world().remove(node);
    }
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0"), [""; 0]);
    let events = lab.events("svc-0", "UnAvailableLoadBalancer");
    assert_eq!(events, ["There are no available nodes for LoadBalancer"]);
    assert_eq!(lab.events("svc-0", "UpdatedLoadBalancer"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_is_reported_and_retried_but_not_by_the_next_change_of_nodes() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let fault = Fault::too_many_calls(Some(420));
    lab.cloud.faults().once(Operation::ChangeTargets, fault);
    lab.add_node("late");
    lab.pass(SECOND * 5).await;
    let events = lab.events("svc-0", "UpdateLoadBalancerFailed");
    let expected = "Error updating load balancer with new hosts [late node-000] [node names \
                    limited, total number of nodes: 2], error: ";
    assert!(events[0].starts_with(expected), "{events:?}");
    assert!(events[0].contains("HTTP 429"), "{events:?}");
    lab.add_node("later");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 1);
    lab.pass(MINUTE * 8).await;
    assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 2);
    assert_eq!(
        lab.targets("svc-0"),
        ["late", "later", "node-000"],
        "all that came meanwhile"
    );
    assert_eq!(*lab.observed.updates.lock().unwrap(), [true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_follows_its_nodes_while_its_status_cannot_be_written() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    for _ in 0..100 {
        lab.api.refuse(What::WriteService, 500);
    }
    let named =
        json!({"metadata": {"annotations": {"cloudkeel.dev/lb-hostname": "web.example.com"}}});
    lab.api.world().change_service("svc-0", &named);
    lab.pass(MINUTE * 11).await;
    lab.add_node("late");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0"), ["late", "node-000"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_tried_again_with_other_targets() {
    let mut lab = Lab::with_nodes(1).await;
    let refused = Fault::status(422);
    lab.cloud.faults().once(Operation::CreateBalancer, refused);
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 10).await;
    assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 1);
    assert_eq!(lab.address("web"), None);
    lab.add_node("late");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("web"), ["late", "node-000"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_while_its_balancer_fails_is_drained_and_removed_all_the_same() {
    let lab = Lab::with_nodes(2).await;
    let patient = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": "600"}}});
    lab.api.world().create_service("patient", &patient);
    lab.pass(SECOND * 5).await;
    let fault = Fault::too_many_calls(Some(420));
    lab.cloud.faults().once(Operation::ChangeTargets, fault);
    lab.api.world().remove("node-001");
    lab.pass(MINUTE * 8).await;
    let draining = ["node-000", "node-001 (draining)"];
    assert_eq!(lab.targets("patient"), draining);
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.targets("patient"), ["node-000"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_update_never_puts_an_old_set_back() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(2).await;
    // The first update hangs while another Node comes.
    let slow = Fault::Slow { by: SECOND * 8 };
    lab.cloud.faults().once(Operation::ChangeTargets, slow);
    lab.add_node("second");
    lab.pass(SECOND * 5).await;
    lab.add_node("third");
    lab.pass(SECOND * 60).await;
    for service in ["svc-0", "svc-1"] {
        assert_eq!(
            lab.targets(service),
            ["node-000", "second", "third"],
            "{service}"
        );
    }
    assert_eq!(lab.cloud.calls().of(Operation::ChangeTargets), 4);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_while_its_balancer_is_made_is_not_forgotten() {
    let cloud = Settings {
        action_duration: SECOND * 30,
        ..Settings::default()
    };
    let mut lab = Lab::with(1, cloud, ServiceSettings::default()).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 5).await;
    lab.add_node("second");
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.targets("web"), ["node-000", "second"]);
}

#[tokio::test(start_paused = true)]
async fn fewer_workers_than_services_still_reach_all_of_them() {
    let settings = ServiceSettings {
        workers: 2,
        ..ServiceSettings::default()
    };
    let mut lab = Lab::with(1, Settings::default(), settings).await;
    lab.serve(7).await;
    lab.add_node("late");
    lab.pass(SECOND * 10).await;
    for index in 0..7 {
        assert_eq!(lab.targets(&format!("svc-{index}")), ["late", "node-000"]);
    }
    let passes = lab.observed.passes.lock().unwrap().len();
    assert!(passes >= 1);
}
