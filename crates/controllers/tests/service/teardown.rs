//! Services that go when no machine of their cluster is left.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Consistency, Fault, Operation, Settings};
use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND};

/// What a Node still shows when its machine is gone.
#[derive(Debug, Clone, Copy)]
enum Left {
    Ready,
    Unknown,
    Deleted,
}

/// A Service with its balancer, in a cluster whose machines are all destroyed after that.
async fn torn_down(settings: Settings, left: Left) -> Lab {
    let lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.pass(MINUTE).await;
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(MINUTE * 3).await;
    assert!(lab.address("svc-0").is_some());
    for machine in &lab.machines {
        lab.cloud.destroy(machine.id).unwrap();
        match left {
            Left::Ready => {}
            Left::Unknown => lab.api.world().change(&machine.name, &readiness("Unknown")),
            Left::Deleted => lab.api.world().remove(&machine.name),
        }
    }
    lab.pass(MINUTE).await;
    lab.forget();
    lab
}

fn readiness(status: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
}

fn slow(seconds: u32) -> Settings {
    Settings {
        action_duration: SECOND * seconds,
        ..Settings::default()
    }
}

fn lagging(seconds: u32) -> Settings {
    Settings {
        consistency: Consistency::both(SECOND * seconds),
        ..Settings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_the_cloud_agreed_to_remove_needs_no_machine_to_confirm_that() {
    for (case, settings, left, within) in [
        ("Nodes that look Ready", slow(0), Left::Ready, 2),
        ("Nodes without heartbeats", slow(0), Left::Unknown, 2),
        ("no Nodes", slow(0), Left::Deleted, 2),
        ("a removal that takes a while", slow(20), Left::Ready, 25),
        ("reads that lag", lagging(20), Left::Ready, 30),
    ] {
        for retyped in [false, true] {
            let lab = torn_down(settings.clone(), left).await;
            if retyped {
                let other = json!({"spec": {"type": "ClusterIP"}});
                lab.api.world().change_service("svc-0", &other);
            } else {
                lab.api.world().delete_service("svc-0");
            }
            lab.pass(SECOND * within).await;
            assert_eq!(lab.cloud.balancers(), [], "{case}, retyped: {retyped}");
            assert!(!lab.is_held("svc-0"), "{case}, retyped: {retyped}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_nodes_never_had_an_id_lets_its_service_go() {
    let lab = Lab::with_nodes(0).await;
    lab.api.world().create("nameless", &readiness("True"));
    lab.serve(1).await;
    lab.api.world().delete_service("svc-0");
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

/// The balancer was removed, and the process died before it could take the finalizer away.
async fn crashed(left: Left) -> Lab {
    let mut lab = torn_down(slow(0), left).await;
    lab.stop().await;
    let balancer = lab.cloud.balancers().remove(0);
    lab.cloud.drop_balancer(balancer.id).unwrap();
    lab.api.world().delete_service("svc-0");
    lab.start();
    lab
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_removal_holds_a_service_for_five_minutes_at_most() {
    let lab = crashed(Left::Unknown).await;
    lab.pass(MINUTE * 4).await;
    assert!(
        lab.has_finalizer("svc-0"),
        "nothing confirms that it is gone"
    );
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn without_any_node_a_crash_in_the_middle_of_a_removal_holds_a_service_for_two_minutes() {
    let lab = crashed(Left::Deleted).await;
    lab.pass(SECOND * 110).await;
    assert!(lab.has_finalizer("svc-0"), "it is looked for twice");
    lab.pass(SECOND * 20).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_ready_node_whose_machine_is_not_shown_contradicts_an_absence_until_it_falls_silent() {
    let lab = crashed(Left::Ready).await;
    lab.pass(MINUTE * 30).await;
    assert!(lab.has_finalizer("svc-0"), "it may be another project");
    let events = lab.events("svc-0", "PendingLoadBalancer");
    let why = "no machine of this cluster either";
    assert!(events.iter().any(|text| text.contains(why)), "{events:?}");
    for machine in &lab.machines {
        lab.api.world().change(&machine.name, &readiness("Unknown"));
    }
    lab.pass(MINUTE * 4).await;
    assert!(lab.has_finalizer("svc-0"), "not at once");
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_answer_was_lost_is_confirmed_by_a_machine_at_once() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    let faults = lab.cloud.faults();
    faults.once(Operation::DeleteBalancer, Fault::BrokenAfter);
    lab.api.world().delete_service("svc-0");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}
