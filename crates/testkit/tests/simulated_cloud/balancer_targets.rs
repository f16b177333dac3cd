//! Targets of balancers, and what keeps them from working.

use std::time::Duration;

use cloudkeel_api::{DesiredState, ErrorKind, Outcome, Severity, TargetState};
use cloudkeel_testkit::simulated_cloud::{Limits, Settings};

use crate::balancers::{apply, only, settle};
use crate::support::Lab;

#[tokio::test(start_paused = true)]
async fn one_target_too_many_is_a_failure_and_changes_nothing() {
    let settings = Settings {
        limits: Limits {
            targets: 25,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let lab = Lab::set_up(26, settings).await;
    let mut spec = lab.spec(&[80]);
    let (_, last) = spec.targets.pop_last().unwrap();
    settle(&lab, &spec).await;
    let full = only(&lab);
    assert_eq!(full.targets.len(), 25);
    spec.targets.insert(last.node.name.clone(), last);
    let outcome = apply(&lab, &spec).await;
    let Ok(Outcome::Incomplete { failures, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failures.kind, ErrorKind::LimitExceeded);
    assert_eq!(only(&lab), full);
}

#[tokio::test(start_paused = true)]
async fn targets_drain_and_go() {
    let lab = Lab::with(2).await;
    let mut spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    spec.targets.get_mut("node-1").unwrap().state = TargetState::Draining;
    let leaving = lab.machines[1].id;
    assert_eq!(
        settle(&lab, &spec).await,
        [format!(
            "drain machine {leaving} at balancer {}",
            only(&lab).id
        )]
    );
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    spec.targets.remove("node-1");
    settle(&lab, &spec).await;
    assert_eq!(only(&lab).targets.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nodes_without_a_machine_never_empty_a_balancer_and_raise_a_warning_if_it_lasts() {
    let lab = Lab::with(2).await;
    let mut spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    for target in spec.targets.values_mut() {
        target.node.provider_id = None;
    }
    lab.cloud.reset_calls();
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    assert_eq!(only(&lab).targets.len(), 2);
    assert_eq!(lab.cloud.calls().mutations(), 0);
    let at_once = lab.events.take();
    assert!(
        at_once.is_empty(),
        "a Node is without a machine while it is replaced: {at_once:?}"
    );
    tokio::time::advance(Duration::from_mins(3)).await;
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    assert_eq!(only(&lab).targets.len(), 2);
    let events = lab.events.take();
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(
        events
            .iter()
            .all(|event| event.reason == "TargetUnresolved")
    );
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_balancer_from_working_is_reported_and_blocks_no_change() {
    let lab = Lab::with(1).await;
    let mut spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    let version = only(&lab).version;
    let problem = "tcp 80: cannot listen on 127.0.10.1:80".to_owned();
    let noted = lab
        .cloud
        .note_problems(only(&lab).id, vec![problem.clone()]);
    noted.unwrap();
    assert_eq!(only(&lab).version, version, "no call changed it");
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    let events = lab.events.take();
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (event.severity, event.reason.as_ref()),
        (Severity::Warning, "LoadBalancerProblem")
    );
    assert!(event.message.contains(&problem), "{event:?}");
    spec.listeners.clear();
    assert_eq!(settle(&lab, &spec).await.len(), 1, "it can be changed");
    let gone = lab
        .balancers()
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await;
    assert!(matches!(gone, Ok(Outcome::Gone { .. })), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_gone_does_not_keep_the_others_out() {
    let lab = Lab::with(3).await;
    lab.cloud.destroy(lab.machines[1].id).unwrap();
    let spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    assert_eq!(only(&lab).targets.len(), 2);
    lab.cloud.reset_calls();
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}
