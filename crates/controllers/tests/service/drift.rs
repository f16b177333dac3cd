//! A restart touches nothing that is right, and what is no longer right is found.

use cloudkeel_api::DriftPolicy;
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND};

#[tokio::test(start_paused = true)]
async fn a_restart_costs_a_few_reads_and_neither_a_write_nor_an_event() {
    let mut lab = Lab::with_nodes(5).await;
    lab.serve(60).await;
    for _ in 0..3 {
        lab.restart().await;
        lab.pass(MINUTE).await;
    }
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0, "{calls:?}");
    // Two lists of two pages each, thrice: one look at all, one for left-overs.
    assert_eq!(calls.total(), 12, "{calls:?}");
    assert_eq!(lab.api.writes(), []);
    for reason in ["EnsuringLoadBalancer", "EnsuredLoadBalancer"] {
        assert_eq!(lab.events("svc-7", reason), [""; 0]);
    }
    assert_eq!(lab.remembered(), 60);
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_no_manager_ran_is_reconciled_and_the_rest_is_left_alone() {
    let mut lab = Lab::with_nodes(2).await;
    lab.serve(3).await;
    lab.stop().await;
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 81, "nodePort": 30080}]);
    lab.api
        .world()
        .change_service("svc-1", &json!({"spec": {"ports": ports}}));
    lab.start();
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.balancer("svc-1").unwrap().listeners[0].port, 81);
    assert_eq!(lab.cloud.calls().mutations(), 1);
    assert_eq!(lab.events("svc-1", "EnsuredLoadBalancer").len(), 1);
    assert_eq!(lab.events("svc-0", "EnsuredLoadBalancer"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_came_while_no_manager_ran_become_targets() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(2).await;
    lab.stop().await;
    lab.add_node("late");
    lab.start();
    lab.pass(SECOND * 10).await;
    for service in ["svc-0", "svc-1"] {
        assert_eq!(lab.targets(service), ["late", "node-000"]);
    }
    assert_eq!(lab.cloud.calls().mutations(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_cloud_and_status_is_made_up_for() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    // The balancer is right, but the status still says what was before.
    let stale = json!([{"ip": "198.51.100.1", "ipMode": "VIP"}]);
    lab.stop().await;
    let status = json!({"status": {"loadBalancer": {"ingress": stale}}});
    lab.api.world().change_service("svc-0", &status);
    lab.start();
    lab.pass(SECOND * 5).await;
    let balancer = lab.balancer("svc-0").unwrap();
    assert_eq!(
        lab.address("svc-0"),
        Some(balancer.addresses[0].to_string())
    );
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_at_the_start_is_asked_again_for_all_at_once() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(40).await;
    lab.stop().await;
    let fault = Fault::too_many_calls(Some(420));
    lab.cloud.faults().times(Operation::ListBalancers, 2, fault);
    lab.forget();
    lab.start();
    lab.pass(MINUTE * 16).await;
    let calls = lab.cloud.calls();
    assert!(calls.total() <= 4, "{calls:?}");
    assert_eq!(lab.remembered(), 40);
    assert_eq!(lab.events("svc-3", "SyncLoadBalancerFailed"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn drift_is_reported_and_repaired_and_nothing_else_is_touched() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(5).await;
    let id = lab.balancer("svc-3").unwrap().id;
    lab.cloud.drop_listener(id, 80).unwrap();
    lab.pass(MINUTE * 25).await;
    assert_eq!(lab.balancer("svc-3").unwrap().listeners.len(), 1);
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 1, "{calls:?}");
    assert_eq!(*lab.observed.drifts.lock().unwrap(), 1);
    let events = lab.events("svc-3", "LoadBalancerDrifted");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].contains("listener") && events[0].contains("cloudkeel repairs it now"),
        "{events:?}"
    );
    for other in ["svc-0", "svc-4"] {
        assert_eq!(lab.events(other, "LoadBalancerDrifted"), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_deleted_by_hand_is_made_again_with_its_new_address_published() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let id = lab.balancer("svc-0").unwrap().id;
    lab.cloud.drop_balancer(id).unwrap();
    lab.pass(MINUTE * 25).await;
    let again = lab.balancer("svc-0").unwrap();
    assert_ne!(again.id, id);
    assert_eq!(lab.address("svc-0"), Some(again.addresses[0].to_string()));
}

#[tokio::test(start_paused = true)]
async fn drift_is_only_reported_or_not_checked_if_so_configured() {
    for (drift, events) in [(DriftPolicy::Report, 1), (DriftPolicy::Off, 0)] {
        let settings = ServiceSettings {
            drift,
            ..ServiceSettings::default()
        };
        let lab = Lab::with(1, Settings::default(), settings).await;
        lab.serve(1).await;
        let id = lab.balancer("svc-0").unwrap().id;
        lab.cloud.drop_listener(id, 80).unwrap();
        lab.pass(MINUTE * 23).await;
        assert_eq!(lab.cloud.calls().mutations(), 0, "{drift:?}");
        assert_eq!(
            lab.events("svc-0", "LoadBalancerDrifted").len(),
            events,
            "{drift:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_changes_costs_a_handful_of_reads() {
    let lab = Lab::with_nodes(3).await;
    lab.serve(30).await;
    lab.pass(MINUTE * 60).await;
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    assert!(calls.total() <= 8, "{calls:?}");
    assert_eq!(lab.api.writes(), []);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_another_client_cleared_is_written_again() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let address = lab.address("svc-0");
    let cleared = json!({"status": {"loadBalancer": {"ingress": null}}});
    lab.api.world().change_service("svc-0", &cleared);
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.address("svc-0"), address);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_without_a_service_is_reported_and_left_alone() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(2).await;
    lab.stop().await;
    lab.api.world().delete_service("svc-0");
    let by_hand = json!({"metadata": {"finalizers": null}});
    lab.api.world().change_service("svc-0", &by_hand);
    lab.start();
    lab.pass(MINUTE * 50).await;
    assert_eq!(lab.cloud.balancers().len(), 2);
    assert_eq!(*lab.observed.left_over.lock().unwrap(), 1);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}
