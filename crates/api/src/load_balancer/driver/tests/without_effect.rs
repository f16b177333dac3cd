//! Steps that the cloud accepts and that change nothing, because it spells a field in its own way.

use super::*;

fn stubborn() -> Driven<Toy> {
    Driven::new(Toy {
        listeners: Mutex::new([1].into()),
        never_settles: true,
        ..Toy::default()
    })
}

#[tokio::test]
async fn a_plan_that_changes_nothing_is_settled_with_a_warning() {
    let toy = stubborn();
    let spec = spec(&[1, 80]);
    let outcome = toy.apply(DesiredState::Present(&spec)).await.unwrap();
    let Outcome::Settled { status, done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(status.id.as_deref(), Some("lb-1"));
    assert_eq!(executed(&toy), [ToyStep::Add(80)], "it is done once");
    let warnings: Vec<_> = done.ineffective().map(|step| step.text.as_str()).collect();
    assert_eq!(warnings, ["add listener 80"]);
}

#[tokio::test]
async fn what_changes_nothing_is_not_done_again_while_the_observation_is_equal() {
    let toy = stubborn();
    let wanted = spec(&[1, 80]);
    toy.apply(DesiredState::Present(&wanted)).await.unwrap();
    let again = toy.apply(DesiredState::Present(&wanted)).await.unwrap();
    assert!(again.done().is_empty(), "{again:?}");
    let looks = toy.observe_all(std::slice::from_ref(&wanted)).await;
    assert!(looks[0].as_ref().unwrap().plan.is_empty());
    assert_eq!(executed(&toy).len(), 1);

    // Another desired state is another step, and another observation another chance.
    let other = spec(&[1, 81]);
    toy.apply(DesiredState::Present(&other)).await.unwrap();
    assert_eq!(executed(&toy).len(), 2);
    toy.driver().listeners.lock().unwrap().insert(2);
    toy.apply(DesiredState::Present(&wanted)).await.unwrap();
    assert_eq!(executed(&toy)[2..], [ToyStep::Drop(2), ToyStep::Add(80)]);
}

#[tokio::test]
async fn what_has_an_effect_beside_it_is_done_and_no_warning() {
    let toy = toy(&[], vec![]);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 81])))
        .await
        .unwrap();
    assert_eq!(outcome.done().len(), 2);
    assert_eq!(outcome.done().ineffective().count(), 0);
}

#[tokio::test]
async fn a_failure_beside_it_is_still_reported() {
    let toy = Driven::new(Toy {
        listeners: Mutex::new([1].into()),
        answers: Mutex::new([Err(ErrorKind::Invalid)].into()),
        never_settles: true,
        ..Toy::default()
    });
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[1, 80, 81])))
        .await
        .unwrap();
    let Outcome::Incomplete { failures, done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failures.kind, ErrorKind::Invalid);
    assert_eq!(done.ineffective().count(), 1);
}

#[tokio::test]
async fn what_was_made_or_removed_and_is_not_shown_yet_is_waited_for() {
    let unseen = Driven::new(Toy {
        is_missing: true,
        never_settles: true,
        ..Toy::default()
    });
    let outcome = unseen
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert_eq!(executed(&unseen).len(), 1, "it is made once");

    let lingering = stubborn();
    let balancer_ref = spec(&[]).balancer_ref;
    let outcome = lingering
        .apply(DesiredState::Absent(&balancer_ref))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert_eq!(executed(&lingering).len(), 1);
}
