//! What the service controller reports in `/status`.

use cloudkeel_api::HealthState;
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::report::{BalancerReport, BalancerState, TargetUse};
use cloudkeel_testkit::simulated_cloud::wire::ReportedHealth;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND};

fn reported(lab: &Lab) -> BalancerReport {
    let mut all = lab.controller().report().managed.balancers;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn targets(report: &BalancerReport) -> Vec<(&str, TargetUse)> {
    let targets = report.targets.iter();
    targets
        .map(|target| (target.node.as_str(), target.role))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn balancers_are_reported_with_their_targets_and_without_a_call() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.forget();
    let report = reported(&lab);
    assert_eq!(report.service, "default/svc-0");
    assert_eq!(report.state, BalancerState::Settled);
    let roles = targets(&report).into_iter().map(|(_, role)| role);
    assert_eq!(roles.collect::<Vec<_>>(), [TargetUse::Serving; 2]);
    assert_eq!(lab.cloud.calls().total(), 0, "no cloud was asked");
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE).await;
    assert!(lab.controller().report().managed.balancers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_balancer_waits_for_is_reported_until_it_is_settled() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::ListBalancers, Fault::MalformedJson);
    faults.always(Operation::GetBalancer, Fault::MalformedJson);
    lab.add_node("late");
    lab.pass(SECOND * 10).await;
    let report = reported(&lab);
    assert_eq!(report.state, BalancerState::Failing);
    let why = report.waits_for.clone().unwrap();
    assert!(why.starts_with("failed to ensure load balancer: "), "{why}");
    for part in ["next try in", "(request req-", "it begins with"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(targets(&report).len(), 1, "it has what it had");
    let waits_for = lab.controller().report().waits_for;
    assert_eq!(waits_for, [format!("default/svc-0: {why}")]);
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 5).await;
    let report = reported(&lab);
    assert_eq!(
        (report.state, report.waits_for.as_deref()),
        (BalancerState::Settled, None)
    );
    assert_eq!(targets(&report).len(), 2);
    assert!(lab.controller().report().waits_for.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_never_came_to_its_cloud_is_reported_with_the_reason() {
    let lab = Lab::with_nodes(1).await;
    let broken = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": "soon"}}});
    lab.api.world().create_service("broken", &broken);
    lab.pass(SECOND * 5).await;
    let report = reported(&lab);
    assert_eq!(report.service, "default/broken");
    assert_eq!(report.state, BalancerState::Failing);
    let why = report.waits_for.unwrap();
    assert!(why.contains("cloudkeel.dev/lb-drain-seconds"), "{why}");
    assert_eq!(lab.cloud.calls().mutations(), 0, "nothing was asked for");
    lab.api.world().delete_service("broken");
    lab.pass(MINUTE).await;
    assert!(lab.controller().report().managed.balancers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_controller_is_named_and_not_waited_for() {
    let lab = Lab::with_nodes(1).await;
    let other = json!({"spec": {"loadBalancerClass": "example.com/other"}});
    lab.api.world().create_service("other", &other);
    lab.pass(SECOND * 5).await;
    let managed = lab.controller().report().managed;
    assert_eq!(managed.unserved_services, ["default/other"]);
    assert!(managed.balancers.is_empty());
    assert!(lab.controller().report().waits_for.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_target_serves_only_if_its_machine_is_known_and_runs_and_its_node_is_ready() {
    let mut lab = Lab::with_nodes(1).await;
    for name in ["off", "tainted", "silent"] {
        lab.add_node(name);
    }
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let new = json!({"status": {"conditions": ready}});
    lab.api.world().create("new", &new);
    lab.pass(SECOND * 2).await;
    lab.serve(1).await;
    let tainted =
        json!([{"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}]);
    let silent = json!([{"type": "Ready", "status": "Unknown"}]);
    lab.api
        .world()
        .change("tainted", &json!({"spec": {"taints": tainted}}));
    lab.api
        .world()
        .change("silent", &json!({"status": {"conditions": silent}}));
    lab.cloud.power_off(lab.machines[1].id).unwrap();
    lab.pass(MINUTE).await;
    lab.list_machines().await;
    assert_eq!(
        targets(&reported(&lab)),
        [
            ("new", TargetUse::NoProviderId),
            ("off", TargetUse::ShutDown),
            ("tainted", TargetUse::ShutDown),
            ("silent", TargetUse::NotReady),
            ("node-000", TargetUse::Serving),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_health_of_targets_is_followed_until_it_has_settled() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    let balancer = lab.balancer("svc-0").unwrap();
    let health = |states: [HealthState; 2]| {
        let targets = balancer.targets.iter().zip(states);
        let reported = targets.map(|(target, health)| ReportedHealth {
            at: target.at,
            port: 80,
            health,
        });
        lab.cloud
            .note_health(balancer.id, reported.collect())
            .unwrap();
    };
    let summary = || {
        let health = reported(&lab).health;
        health.map(|it| (it.summary.healthy, it.summary.unhealthy))
    };
    assert_eq!(summary(), None, "nothing checks the targets");
    health([HealthState::Unknown, HealthState::Healthy]);
    for _ in 0..60 {
        if summary().is_none() {
            lab.pass(SECOND * 30).await;
        }
    }
    assert_eq!(summary(), Some((1, 0)), "as of the drift check");
    health([HealthState::Unhealthy, HealthState::Healthy]);
    lab.pass(MINUTE).await;
    assert_eq!(summary(), Some((1, 1)), "new targets are checked soon");
    let unhealthy = &reported(&lab).targets[0];
    assert_eq!(
        unhealthy.health,
        Some(HealthState::Unhealthy),
        "under its Node: {unhealthy:?}"
    );
    health([HealthState::Healthy; 2]);
    lab.pass(MINUTE).await;
    assert_eq!(summary(), Some((2, 0)));
    lab.cloud.reset_calls();
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.calls().total(), 0, "while all are healthy");
}
