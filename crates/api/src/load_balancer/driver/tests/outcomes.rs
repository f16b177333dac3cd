//! Steps that are postponed, balancers that are released, and what a Service is to carry.

use super::*;

fn postponed(seconds: u64) -> StepOutcome {
    StepOutcome::Postponed {
        why: format!("quota, {seconds}"),
        retry_after: Duration::from_secs(seconds),
    }
}

#[tokio::test]
async fn the_rest_of_a_plan_goes_on_after_a_step_that_is_postponed() {
    let answers = vec![Ok(postponed(30)), Ok(StepOutcome::Done), Ok(postponed(20))];
    let toy = toy(&[], answers);
    let outcome = toy.apply(DesiredState::Present(&spec(&[80, 81, 82]))).await;
    let Ok(Outcome::Pending {
        why,
        check_after,
        done,
        ..
    }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!((why.as_str(), check_after.as_secs()), ("quota, 20", 20));
    assert_eq!(done.to_string(), "+ add listener 81");
    assert_eq!(executed(&toy).len(), 3);
    let outcome = toy.apply(DesiredState::Present(&spec(&[80, 81, 82]))).await;
    assert!(
        matches!(outcome, Ok(Outcome::Settled { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_depends_on_a_postponed_step_waits_with_it() {
    let toy = toy(&[81], vec![Ok(postponed(5))]);
    let outcome = toy.apply(DesiredState::Present(&spec(&[80]))).await;
    assert!(
        matches!(outcome, Ok(Outcome::Pending { .. })),
        "{outcome:?}"
    );
    assert_eq!(executed(&toy), [ToyStep::Drop(81)]);
}

#[tokio::test]
async fn a_step_is_executed_with_the_observation_that_it_was_planned_from() {
    let toy = toy(&[81], vec![]);
    toy.apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap();
    let planned_from = toy.driver().planned_from.lock().unwrap().clone();
    assert_eq!(planned_from, [BTreeSet::from([81]), BTreeSet::from([81])]);
}

#[tokio::test]
async fn a_balancer_that_is_released_stays_and_is_named() {
    let toy = toy(&[80], vec![]);
    let balancer_ref = spec(&[]).balancer_ref;
    let outcome = toy
        .apply(DesiredState::Released(&balancer_ref))
        .await
        .unwrap();
    let Outcome::Gone { kept, done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(kept, ["lb-1"]);
    assert!(done.is_empty());
    assert_eq!(toy.driver().listeners.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_service_is_to_carry_is_known_also_if_its_balancer_cannot_be_made() {
    let refused = || vec![Err(ErrorKind::LimitExceeded)];
    let mut changes = ServiceChanges::default();
    changes.annotate("cloud/id", "7");
    let with_changes = Driven::new(Toy {
        is_missing: true,
        changes: changes.clone(),
        ..driver(&[], refused())
    });
    let outcome = with_changes
        .apply(DesiredState::Present(&spec(&[80])))
        .await;
    let Ok(Outcome::Incomplete {
        status,
        changes: asked,
        failures,
        ..
    }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert!(!status.exists);
    assert_eq!(asked, changes);
    assert_eq!(failures.kind, ErrorKind::LimitExceeded);

    let without = Driven::new(Toy {
        is_missing: true,
        ..driver(&[], refused())
    });
    let outcome = without.apply(DesiredState::Present(&spec(&[80]))).await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::LimitExceeded);
}
