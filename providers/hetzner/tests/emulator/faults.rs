//! What goes wrong on the way, and that it comes right.

use std::time::Duration;

use cloudkeel_api::{DesiredState, ErrorKind, Outcome};
use cloudkeel_emulator_hetzner::{Fault, Operation};

use crate::lab::{Lab, attempt, balancers, planned, refused, settle, spec};

#[tokio::test(start_paused = true)]
async fn every_step_may_fail_and_the_next_attempt_goes_on_where_it_stood() {
    for operation in [
        Operation::ListLoadBalancers,
        Operation::ListLoadBalancerTypes,
        Operation::CreateLoadBalancer,
        Operation::AttachLoadBalancer,
        Operation::AddService,
        Operation::AddTarget,
        Operation::ListActions,
    ] {
        for (case, fault) in [
            ("locked", Fault::code("locked")),
            ("conflict", Fault::code("conflict")),
            ("trouble", Fault::status(500)),
            ("too many requests", Fault::code("rate_limit_exceeded")),
            ("lost before", Fault::BrokenBefore),
            ("lost after", Fault::BrokenAfter),
            ("half an answer", Fault::MalformedJson),
        ] {
            let lab = Lab::new(2);
            lab.cloud.change_settings(|settings| {
                settings.action_duration = Duration::from_secs(1);
            });
            let provider = lab.networked().await;
            let nodes = lab.nodes(&provider).await;
            let desired = spec(&[80], &nodes);
            lab.cloud.faults().once(operation, fault);
            let mut attempts = 0;
            loop {
                attempts += 1;
                assert!(attempts < 20, "{operation:?} {case}: never settles");
                match balancers(&provider)
                    .apply(DesiredState::Present(&desired))
                    .await
                {
                    Ok(Outcome::Pending { check_after, .. }) => {
                        tokio::time::sleep(check_after).await;
                    }
                    Ok(Outcome::Settled { .. }) => break,
                    Ok(_) | Err(_) => tokio::time::sleep(Duration::from_secs(5)).await,
                }
            }
            let have = lab.balancer();
            assert_eq!(have.services.len(), 1, "{operation:?} {case}");
            assert_eq!(have.targets.len(), 2, "{operation:?} {case}");
            assert_eq!(
                planned(&provider, &desired).await,
                "nothing to do",
                "{case}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_locked_balancer_is_waited_for_and_no_error() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    settle(&provider, &spec(&[80], &[])).await;
    lab.cloud
        .faults()
        .always(Operation::AddService, Fault::code("locked"));
    let desired = spec(&[80, 81], &[]);
    let outcome = balancers(&provider)
        .apply(DesiredState::Present(&desired))
        .await;
    assert!(
        matches!(outcome, Ok(Outcome::Pending { .. })),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_action_that_ends_badly_is_an_error_of_its_kind() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    settle(&provider, &spec(&[80], &[])).await;
    for (code, kind) in [
        ("resource_limit_exceeded", ErrorKind::LimitExceeded),
        ("something_new", ErrorKind::Other),
    ] {
        let failure = Fault::action_fails(code);
        lab.cloud.faults().once(Operation::AddService, failure);
        let outcome = attempt(&provider, &spec(&[80, 81], &[])).await;
        let failures = refused(&outcome);
        assert_eq!(failures.kind, kind, "{failures:?}");
        assert!(failures.message.contains(code), "{failures:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_only_token_is_reported_and_needs_user_action() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    lab.cloud
        .faults()
        .always(Operation::CreateLoadBalancer, Fault::code("token_readonly"));
    let error = balancers(&provider)
        .apply(DesiredState::Present(&spec(&[80], &[])))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.request_id().is_some(), "{error}");
}
