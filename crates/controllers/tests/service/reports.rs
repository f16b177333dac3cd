//! What the controller tells to people who ask.

use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::report::{BalancerReport, BalancerState, TargetUse};
use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::lab::{Lab, MINUTE, SECOND};

fn told(lab: &Lab) -> BalancerReport {
    let mut all = lab.controller().holdings().balancers;
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
async fn balancers_are_told_with_their_targets_and_without_a_call() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.forget();
    let report = told(&lab);
    assert_eq!(report.service, "default/svc-0");
    assert_eq!(report.state, BalancerState::Settled);
    let roles = targets(&report).into_iter().map(|(_, role)| role);
    assert_eq!(roles.collect::<Vec<_>>(), [TargetUse::Serving; 2]);
    assert_eq!(lab.cloud.calls().total(), 0, "nobody was asked for it");
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE).await;
    assert!(lab.controller().holdings().balancers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_balancer_waits_for_is_told_until_it_is_as_wished() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::ListBalancers, Fault::MalformedJson);
    faults.always(Operation::GetBalancer, Fault::MalformedJson);
    lab.add_node("late");
    lab.pass(SECOND * 10).await;
    let report = told(&lab);
    assert_eq!(report.state, BalancerState::Waiting);
    let why = report.waits_for.clone().unwrap();
    assert!(why.starts_with("failed to ensure load balancer: "), "{why}");
    assert!(why.contains("next try in"), "{why}");
    assert_eq!(targets(&report).len(), 1, "it has what it had");
    let waits_for = lab.controller().report().waits_for;
    assert_eq!(waits_for, [format!("default/svc-0: {why}")]);
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 5).await;
    let report = told(&lab);
    assert_eq!(
        (report.state, report.waits_for.as_deref()),
        (BalancerState::Settled, None)
    );
    assert_eq!(targets(&report).len(), 2);
    assert!(lab.controller().report().waits_for.is_empty());
}
