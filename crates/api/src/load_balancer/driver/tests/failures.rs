//! What becomes of the rest when a step fails.

use super::*;

fn incomplete(outcome: &Outcome) -> (ErrorKind, &str) {
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    (failures.kind, &failures.message)
}

#[tokio::test]
async fn a_step_that_fails_keeps_back_only_those_that_depend_on_it() {
    let refused = || Err(ErrorKind::Invalid);
    let done = || Ok(StepOutcome::Done);
    for (case, have, want, answers, expected, left) in [
        (
            "nothing depends on it",
            &[][..],
            &[80, 81, 82][..],
            vec![refused(), done(), done()],
            &[ToyStep::Add(80), ToyStep::Add(81), ToyStep::Add(82)][..],
            &[81, 82][..],
        ),
        (
            "all that is added depends on what is dropped",
            &[1],
            &[80, 81],
            vec![refused()],
            &[ToyStep::Drop(1)],
            &[1],
        ),
        (
            "several fail",
            &[],
            &[80, 81, 82],
            vec![refused(), Err(ErrorKind::Denied), done()],
            &[ToyStep::Add(80), ToyStep::Add(81), ToyStep::Add(82)],
            &[82],
        ),
    ] {
        let toy = toy(have, answers);
        let outcome = toy.apply(DesiredState::Present(&spec(want))).await.unwrap();
        assert_eq!(executed(&toy), expected, "{case}: each is tried once");
        let have: Vec<_> = toy
            .driver()
            .listeners
            .lock()
            .unwrap()
            .clone()
            .into_iter()
            .collect();
        assert_eq!(have, left, "{case}");
        let (kind, why) = incomplete(&outcome);
        assert_eq!(kind, ErrorKind::Invalid, "{case}: {why}");
    }
}

#[tokio::test]
async fn a_balancer_of_which_something_is_refused_can_be_published() {
    let toy = toy(&[80], vec![Err(ErrorKind::LimitExceeded)]);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 81])))
        .await
        .unwrap();
    let Outcome::Incomplete {
        status,
        done,
        failures,
        ..
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(status.ingress.len(), 1);
    assert!(done.is_empty());
    let error = failures.to_error();
    assert_eq!(error.retry(), Retry::UserAction);
    assert_eq!(error.to_string(), "apply load balancer: execute: scripted");
}

#[tokio::test]
async fn what_could_not_be_made_at_all_is_an_error() {
    let toy = Driven::new(Toy {
        is_missing: true,
        answers: Mutex::new([Err(ErrorKind::LimitExceeded)].into()),
        ..Toy::default()
    });
    let error = toy
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

#[tokio::test]
async fn what_could_not_be_removed_is_an_error() {
    let toy = toy(&[80, 81], vec![Err(ErrorKind::Denied)]);
    let balancer_ref = spec(&[]).balancer_ref;
    let error = toy
        .apply(DesiredState::Absent(&balancer_ref))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(executed(&toy), [ToyStep::Drop(80), ToyStep::Drop(81)]);
}

#[tokio::test]
async fn steps_wait_for_each_other_unless_they_say_otherwise() {
    #[derive(Debug, Clone, PartialEq)]
    struct Plain;
    impl fmt::Display for Plain {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("plain")
        }
    }
    impl Step for Plain {}
    assert!(Plain.depends_on(&Plain));
}

#[tokio::test]
async fn after_a_refusal_of_all_calls_the_rest_is_not_tried() {
    let wait = Duration::from_secs(7);
    let throttled = ErrorKind::Throttled {
        retry_after: Some(wait),
    };
    for (case, kind, tried, retry) in [
        ("too many requests", throttled, 1, Retry::After(wait)),
        (
            "a wrong credential",
            ErrorKind::Unauthenticated,
            1,
            Retry::UserAction,
        ),
        ("a stop", ErrorKind::Cancelled, 1, Retry::Never),
        ("an outage", ErrorKind::Unavailable, 3, Retry::Backoff),
        ("silence", ErrorKind::Timeout, 3, Retry::Backoff),
        ("refusals", ErrorKind::Denied, 5, Retry::UserAction),
    ] {
        let toy = toy(&[], vec![Err(kind); 5]);
        let outcome = toy
            .apply(DesiredState::Present(&spec(&[1, 2, 3, 4, 5])))
            .await;
        let outcome = outcome.unwrap();
        assert_eq!(executed(&toy).len(), tried, "{case}");
        let Outcome::Incomplete { failures, .. } = outcome else {
            panic!("{case}: {outcome:?}");
        };
        assert_eq!(failures.to_error().retry(), retry, "{case}");
    }
}

#[tokio::test]
async fn what_conflicts_again_and_again_has_failed_and_the_rest_is_done() {
    let conflict = || Err(ErrorKind::Conflict);
    let answers = vec![conflict(), Ok(StepOutcome::Done), conflict(), conflict()];
    let toy = toy(&[], answers);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 81])))
        .await
        .unwrap();
    assert_eq!(incomplete(&outcome).0, ErrorKind::Conflict);
    let again = ToyStep::Add(80);
    assert_eq!(
        executed(&toy),
        [again.clone(), ToyStep::Add(81), again.clone(), again]
    );
}

#[tokio::test]
async fn a_failure_before_a_wait_is_reported_and_tried_again_soon() {
    let started = Ok(StepOutcome::Started {
        check_after: Duration::from_secs(30),
    });
    let toy = toy(&[], vec![Err(ErrorKind::Invalid), started]);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 81])))
        .await
        .unwrap();
    let (kind, why) = incomplete(&outcome);
    assert_eq!(kind, ErrorKind::Busy);
    assert!(why.contains("execute: scripted; "), "{why}");
    assert!(why.contains("waiting for: add listener 81"), "{why}");
}

#[tokio::test]
async fn what_cannot_be_met_is_reported_after_the_rest_was_done() {
    let toy = Driven::new(Toy {
        unmet: vec![Failures::invalid("there is no certificate \"x\"")],
        ..Toy::default()
    });
    let spec = spec(&[80]);
    let desired = DesiredState::Present(&spec);
    assert_eq!(toy.plan(desired).await.unwrap().len(), 1);
    let outcome = toy.apply(desired).await.unwrap();
    assert_eq!(executed(&toy), [ToyStep::Add(80)]);
    let (kind, why) = incomplete(&outcome);
    assert_eq!(kind, ErrorKind::Invalid);
    assert_eq!(why, "there is no certificate \"x\"");

    // With nothing else to do, neither a plan nor a survey may take it for settled.
    let specs = std::slice::from_ref(&spec);
    let looks = toy.observe_all(specs).await;
    for error in [
        toy.plan(desired).await.unwrap_err(),
        looks.into_iter().next().unwrap().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let gone = toy
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await
        .unwrap();
    assert!(matches!(gone, Outcome::Gone { .. }), "{gone:?}");
}

#[tokio::test]
async fn a_lock_on_one_thing_keeps_nothing_else_waiting() {
    let busy = || Err(ErrorKind::Busy);
    for (case, answers, tried) in [
        ("one is locked", vec![busy()], 3),
        ("all is locked", vec![busy(), busy(), busy()], 2),
    ] {
        let toy = toy(&[], answers);
        let outcome = toy.apply(DesiredState::Present(&spec(&[80, 81, 82]))).await;
        assert!(
            matches!(outcome, Ok(Outcome::Pending { .. })),
            "{case}: {outcome:?}"
        );
        assert_eq!(executed(&toy).len(), tried, "{case}");
    }
}
