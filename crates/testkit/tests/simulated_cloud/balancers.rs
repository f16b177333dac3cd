//! Load balancers through the provider.

use std::time::Duration;

use cloudkeel_api::{
    CloudError, DesiredState, ErrorKind, HealthCheck, HealthProbe, Ingress, IpMode,
    LoadBalancerSpec, Outcome,
};
use cloudkeel_provider_local::wire::{Balancer, TargetAt};
use cloudkeel_provider_local::{CLUSTER_UID, SERVICE_UID};
use cloudkeel_testkit::simulated_cloud::{
    Consistency, Fault, MachineSpec, Operation, Refusal, Settings,
};
use tokio::time::advance;

use crate::support::{Lab, SECOND};

pub(crate) async fn apply(lab: &Lab, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
    lab.balancers().apply(DesiredState::Present(spec)).await
}

/// Applies, and expects that nothing is left to do.
pub(crate) async fn settle(lab: &Lab, spec: &LoadBalancerSpec) -> Vec<String> {
    match apply(lab, spec).await.unwrap() {
        Outcome::Settled { done, .. } => done.steps.into_iter().map(|step| step.text).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn only(lab: &Lab) -> Balancer {
    let balancers = lab.cloud.balancers();
    let [balancer] = balancers.as_slice() else {
        panic!("{balancers:?}");
    };
    balancer.clone()
}

#[tokio::test(start_paused = true)]
async fn ensuring_twice_makes_one_balancer_and_no_second_mutating_call() {
    let lab = Lab::with(3).await;
    let spec = lab.spec(&[80, 443]);
    let outcome = apply(&lab, &spec).await.unwrap();
    let Outcome::Settled {
        status,
        changes,
        done,
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(done.len(), 1);
    let balancer = only(&lab);
    assert_eq!(status.id, Some(balancer.id.to_string()));
    let ip = balancer.addresses[0];
    assert_eq!(
        status.ingress,
        [Ingress::Ip {
            ip,
            mode: IpMode::Vip
        }]
    );
    assert_eq!(
        changes.annotations["local.cloudkeel.dev/lb-id"],
        Some(balancer.id.to_string())
    );
    assert_eq!(balancer.labels[SERVICE_UID], "u-1");
    assert_eq!(balancer.labels[CLUSTER_UID], "cluster-1");
    assert_eq!((balancer.listeners.len(), balancer.targets.len()), (2, 3));
    assert_eq!(lab.cloud.calls().mutations(), 1);

    lab.cloud.reset_calls();
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    let calls = lab.cloud.calls();
    assert_eq!(
        (calls.mutations(), calls.reads()),
        (0, 1),
        "one read is enough"
    );
    assert_eq!(only(&lab), balancer);
}

#[tokio::test(start_paused = true)]
async fn planning_never_mutates() {
    let lab = Lab::with(1).await;
    let spec = lab.spec(&[80]);
    let plan = lab
        .balancers()
        .plan(DesiredState::Present(&spec))
        .await
        .unwrap();
    assert_eq!(
        plan.to_string(),
        "+ create balancer au1 with 1 listeners and 1 targets"
    );
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn deleting_twice_is_fine_and_the_second_time_changes_nothing() {
    let lab = Lab::with(1).await;
    let spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    for (case, steps, mutations) in [("first", 1, 1), ("second", 0, 0)] {
        lab.cloud.reset_calls();
        let gone = lab
            .balancers()
            .apply(DesiredState::Absent(&spec.balancer_ref))
            .await
            .unwrap();
        let Outcome::Gone {
            done, acknowledged, ..
        } = gone
        else {
            panic!("{case}: {gone:?}");
        };
        assert_eq!(done.len(), steps, "{case}");
        assert_eq!(acknowledged, steps > 0, "{case}");
        assert_eq!(lab.cloud.calls().mutations(), mutations, "{case}");
    }
    assert!(lab.cloud.balancers().is_empty());
}

type Drift<'a> = &'a dyn Fn() -> Result<Balancer, Refusal>;

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_with_one_step_each() {
    let lab = Lab::with(2).await;
    let stray = lab
        .cloud
        .add_machine(MachineSpec::named("stray"))
        .unwrap()
        .id;
    let spec = lab.spec(&[80, 443]);
    settle(&lab, &spec).await;
    let built = only(&lab);
    let check = cloudkeel_provider_local::wire::HealthCheck {
        retries: 9,
        ..Default::default()
    };
    let drifts: [(&str, Drift<'_>); 4] = [
        ("a listener dropped", &|| {
            lab.cloud.drop_listener(built.id, 443)
        }),
        ("a check changed", &|| {
            lab.cloud.change_health_check(built.id, 80, &check)
        }),
        ("a stray target", &|| {
            lab.cloud
                .add_stray_target(built.id, TargetAt::Machine(stray))
        }),
        ("renamed", &|| {
            lab.cloud.edit_balancer(built.id, |b| b.name = "odd".into())
        }),
    ];
    for (case, drift) in drifts {
        drift().unwrap();
        lab.cloud.reset_calls();
        assert_eq!(settle(&lab, &spec).await.len(), 1, "{case}");
        assert_eq!(lab.cloud.calls().mutations(), 1, "{case}");
        let version = only(&lab).version;
        assert_eq!(
            only(&lab),
            Balancer {
                version,
                ..built.clone()
            },
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn several_differences_need_no_second_round() {
    let lab = Lab::with(2).await;
    let mut spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    spec.options.hostname = Some("web.example".into());
    spec.listeners[0].health_check = HealthCheck {
        probe: HealthProbe::Http {
            path: "/ready".into(),
        },
        ..HealthCheck::tcp()
    };
    spec.targets.pop_last();
    lab.cloud.reset_calls();
    assert_eq!(settle(&lab, &spec).await.len(), 3);
    let calls = lab.cloud.calls();
    assert_eq!(
        calls.mutations(),
        3,
        "no version conflict among our own steps"
    );
    assert_eq!(
        calls.of(Operation::ListBalancers),
        2,
        "a read before and a read after"
    );
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_change_is_a_conflict_that_is_observed_again() {
    let lab = Lab::with(2).await;
    let mut spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    let id = only(&lab).id;
    spec.targets.pop_last();
    lab.cloud
        .faults()
        .once(Operation::ChangeTargets, Fault::Slow { by: SECOND });
    let edit = async {
        tokio::time::sleep(SECOND / 2).await;
        lab.cloud.edit_balancer(id, |b| b.protected = true).unwrap();
    };
    let (steps, ()) = tokio::join!(settle(&lab, &spec), edit);
    assert_eq!(steps.len(), 1);
    assert_eq!(
        lab.cloud.calls().of(Operation::ChangeTargets),
        2,
        "412, then again"
    );
    assert!(only(&lab).protected, "their change is kept");
    assert_eq!(only(&lab).targets.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_balancer_is_pending_then_settled_and_never_blocks() {
    let settings = Settings {
        action_duration: SECOND * 30,
        ..Settings::default()
    };
    let lab = Lab::set_up(1, settings).await;
    let spec = lab.spec(&[80]);
    for (case, wait, is_shown) in [("just begun", 0, false), ("still at it", 20, true)] {
        advance(SECOND * wait).await;
        let before = tokio::time::Instant::now();
        let outcome = apply(&lab, &spec).await.unwrap();
        let Outcome::Pending {
            check_after,
            status,
            ..
        } = outcome
        else {
            panic!("{case}: {outcome:?}");
        };
        assert_eq!(check_after, SECOND * 2, "{case}");
        let exists = status.as_ref().is_some_and(|it| it.exists);
        assert_eq!(exists, is_shown, "{case}");
        assert!(status.is_none_or(|it| it.ingress.is_empty()), "{case}");
        assert_eq!(before.elapsed(), Duration::ZERO, "{case}");
    }
    assert_eq!(lab.cloud.calls().mutations(), 1);
    advance(SECOND * 10).await;
    assert_eq!(settle(&lab, &spec).await, [""; 0]);

    let absent = || {
        lab.balancers()
            .apply(DesiredState::Absent(&spec.balancer_ref))
    };
    for case in ["just begun", "still at it"] {
        let outcome = absent().await.unwrap();
        assert!(
            matches!(outcome, Outcome::Pending { .. }),
            "{case}: {outcome:?}"
        );
    }
    advance(SECOND * 30).await;
    let outcome = absent().await.unwrap();
    assert!(matches!(outcome, Outcome::Gone { .. }), "{outcome:?}");
    assert_eq!(lab.cloud.calls().mutations(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_make_a_second_balancer() {
    for fault in [
        Fault::BrokenAfter,
        Fault::BrokenBefore,
        Fault::NoAnswer,
        Fault::status(502),
    ] {
        let lab = Lab::with(1).await;
        let spec = lab.spec(&[80]);
        lab.cloud
            .faults()
            .once(Operation::CreateBalancer, fault.clone());
        let error = apply(&lab, &spec).await.unwrap_err();
        let expected = [ErrorKind::Unavailable, ErrorKind::Timeout];
        assert!(expected.contains(&error.kind()), "{fault:?}: {error}");
        assert_eq!(
            lab.cloud.calls().of(Operation::CreateBalancer),
            1,
            "{fault:?}: no blind retry"
        );
        settle(&lab, &spec).await;
        assert_eq!(only(&lab).targets.len(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_not_shown_yet_is_waited_for() {
    let settings = Settings {
        consistency: Consistency::both(SECOND * 20),
        ..Settings::default()
    };
    let lab = Lab::set_up(1, settings).await;
    advance(SECOND * 20).await;
    let spec = lab.spec(&[80]);
    let made = apply(&lab, &spec).await.unwrap();
    assert!(
        matches!(made, Outcome::Settled { .. }),
        "by the answer: {made:?}"
    );
    let balancers = lab.balancers();
    for (case, outcome) in [
        (
            "looked for again",
            balancers.apply(DesiredState::Present(&spec)).await,
        ),
        ("must be there", balancers.apply_to_existing(&spec).await),
    ] {
        let Ok(Outcome::Pending { why, .. }) = outcome else {
            panic!("{case}: {outcome:?}");
        };
        assert!(why.contains("does not show it yet"), "{case}: {why}");
        assert_eq!(lab.cloud.balancers().len(), 1, "{case}");
    }
    advance(SECOND * 20).await;
    assert_eq!(settle(&lab, &spec).await, [""; 0]);

    // What is missing later on is missing.
    lab.cloud.drop_balancer(only(&lab).id).unwrap();
    advance(SECOND * 200).await;
    let missing = lab.balancers().apply_to_existing(&spec).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_change_is_repeated_safely() {
    for fault in [Fault::BrokenAfter, Fault::BrokenBefore, Fault::status(503)] {
        for operation in [
            Operation::ChangeBalancer,
            Operation::SetListeners,
            Operation::ChangeTargets,
            Operation::DeleteBalancer,
        ] {
            let lab = Lab::with(2).await;
            let mut spec = lab.spec(&[80]);
            settle(&lab, &spec).await;
            lab.cloud.faults().once(operation, fault.clone());
            if operation == Operation::DeleteBalancer {
                let outcome = lab
                    .balancers()
                    .apply(DesiredState::Absent(&spec.balancer_ref))
                    .await
                    .unwrap();
                assert!(
                    matches!(outcome, Outcome::Gone { .. }),
                    "{fault:?}: {outcome:?}"
                );
                assert!(lab.cloud.balancers().is_empty(), "{fault:?}");
                continue;
            }
            spec.options.internal = Some(true);
            spec.listeners[0].node_port = Some(31_000);
            spec.targets.pop_last();
            settle(&lab, &spec).await;
            let balancer = only(&lab);
            assert!(balancer.internal, "{fault:?} {operation}");
            assert_eq!(
                balancer.listeners[0].target_port, 31_000,
                "{fault:?} {operation}"
            );
            assert_eq!(balancer.targets.len(), 1, "{fault:?} {operation}");
        }
    }
}
