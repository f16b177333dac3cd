//! Provisioning states: pending, immutable, in error, over quota.

use cloudkeel_api::{DesiredState, ErrorKind, HealthState, Outcome};
use cloudkeel_emulator_openstack::{Fault, Kind, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, slow, spec};

#[tokio::test(start_paused = true)]
async fn a_pending_load_balancer_holds_no_worker_and_costs_little() {
    let lab = Lab::with(slow(), "").await;
    let spec = spec(&[80], &lab.nodes(2));
    let began = tokio::time::Instant::now();
    let outcome = lab
        .balancers()
        .apply(DesiredState::Present(&spec))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert!(
        began.elapsed().as_millis() < 100,
        "the worker was held for {:?}",
        began.elapsed()
    );
    lab.cloud.reset_calls();
    let outcome = lab
        .balancers()
        .apply(DesiredState::Present(&spec))
        .await
        .unwrap();
    let Outcome::Pending { why, changes, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("PENDING_CREATE"), "{why}");
    assert!(
        !changes.is_empty(),
        "the annotation is written before it is ready"
    );
    assert_eq!(
        lab.cloud.calls().total(),
        2,
        "one look at it, one at its floating IP"
    );
    lab.settle(&spec).await;
}

#[tokio::test(start_paused = true)]
async fn an_immutable_answer_is_retried_and_not_failed() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(2);
    lab.settle(&spec(&[80], &nodes[..1])).await;
    let message = "Load Balancer x is immutable and cannot be updated.";
    lab.cloud
        .faults()
        .once(Operation::SetMembers, Fault::refused(409, message));
    let changed = spec(&[80], &nodes);
    let outcome = lab
        .balancers()
        .apply(DesiredState::Present(&changed))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    lab.settle(&changed).await;
    assert_eq!(lab.cloud.all(Kind::Member).len(), 2);
    assert_eq!(lab.reasons(), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_in_error_before_it_served_is_built_again() {
    let lab = Lab::with(slow(), "").await;
    let spec = spec(&[80], &lab.nodes(1));
    lab.cloud
        .faults()
        .once(Operation::CreateLoadBalancer, Fault::EndsInError);
    let outcome = lab.apply(DesiredState::Present(&spec)).await.unwrap();
    let Outcome::Incomplete {
        failures, changes, ..
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(failures.kind, ErrorKind::Unavailable);
    assert!(
        failures.message.contains("ended in ERROR"),
        "{}",
        failures.message
    );
    assert_eq!(
        changes.annotations["loadbalancer.openstack.org/load-balancer-id"],
        None
    );
    lab.settle(&spec).await;
    assert_eq!(
        lab.only(Kind::LoadBalancer)["provisioning_status"],
        "ACTIVE"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_served_and_is_in_error_is_left_to_the_operator() {
    let lab = Lab::new("").await;
    let mut spec = spec(&[80], &lab.nodes(1));
    let Outcome::Settled { status, .. } = lab.settle(&spec).await else {
        unreachable!("settle checks it");
    };
    spec.balancer_ref.ingress = status.ingress;
    lab.cloud.set(
        Kind::LoadBalancer,
        &status.id.unwrap(),
        &json!({"provisioning_status": "ERROR"}),
    );
    lab.cloud.reset_calls();
    let error = lab.apply(DesiredState::Present(&spec)).await.unwrap_err();
    assert!(
        error.message().contains("failed over") && lab.mutating() == 0,
        "{error}"
    );
    lab.remove(&spec.balancer_ref).await;
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_is_said_in_octavias_own_words() {
    let settings = Settings {
        load_balancers: 0,
        ..Settings::default()
    };
    let lab = Lab::with(settings, "").await;
    let error = lab
        .apply(DesiredState::Present(&spec(&[80], &lab.nodes(1))))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(
        error
            .message()
            .contains("Quota has been met for resources: Load Balancer"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_health_of_targets_is_what_the_monitors_find() {
    let lab = Lab::new("").await;
    let spec = spec(&[80], &lab.nodes(3));
    lab.settle(&spec).await;
    let members = lab.cloud.all(Kind::Member);
    for (member, status) in members.iter().zip(["ONLINE", "ERROR", "OFFLINE"]) {
        let id = member["id"].as_str().unwrap();
        let found = json!({"operating_status": status});
        lab.cloud.set(Kind::Member, id, &found);
    }
    lab.cloud.reset_calls();
    let outcome = lab.settle(&spec).await;
    assert_eq!(lab.mutating(), 0, "health is nothing to repair");
    let Outcome::Settled { status, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let mut found: Vec<_> = status
        .health
        .iter()
        .map(|it| (it.state, it.listener))
        .collect();
    found.sort();
    let listener = Some(80);
    assert_eq!(
        found,
        [
            (HealthState::Healthy, listener),
            (HealthState::Unhealthy, listener),
            (HealthState::Unknown, listener)
        ]
    );
    let named = status
        .health
        .iter()
        .filter(|it| spec.targets.contains_key(&it.target));
    assert_eq!(
        named.count(),
        3,
        "under the names of the Nodes: {:?}",
        status.health
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_monitor_nothing_is_said_of_health() {
    let lab = Lab::new("").await;
    let spec = spec(&[80], &lab.nodes(1));
    lab.settle(&spec).await;
    let id = lab.only(Kind::Member)["id"].as_str().unwrap().to_owned();
    for status in ["NO_MONITOR", "DRAINING"] {
        let found = json!({"operating_status": status});
        lab.cloud.set(Kind::Member, &id, &found);
        let outcome = lab.settle(&spec).await;
        let Outcome::Settled { status, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(status.health, []);
    }
}
