use cloudkeel_api::{ProviderId, ScopeFingerprint};

use super::*;
use crate::view::Taint;

const NOW: i64 = 100_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn id(text: &str) -> ProviderId {
    text.parse().unwrap()
}

fn proof(machine: &str) -> GoneProof {
    let scope = ScopeFingerprint::new("p");
    GoneProof::terminated(id(machine), "look up", "deleted", &scope, at(NOW))
}

/// So many proofs, so many seconds apart.
fn proofs(count: u32, apart: u64) -> Proofs {
    let start = Instant::now();
    (1..count).fold(Proofs::begin(proof("local://p/1"), start), |row, number| {
        let later = start + Duration::from_secs(apart * u64::from(number));
        row.and(proof("local://p/1"), later)
    })
}

fn node() -> NodeView {
    let mut node = NodeView {
        readiness: Readiness::Unknown,
        ..NodeView::default()
    };
    node.facts.provider_id = Some(id("local://p/1"));
    node.facts.created = Some(at(NOW - 3600));
    node
}

fn annotated(key: &str, value: &str) -> NodeView {
    let mut node = node();
    node.facts.annotations.insert(key.into(), value.into());
    node
}

fn decision(node: &NodeView, proofs: &Proofs, scope: &Result<(), ScopeDoubt>) -> Decision {
    decide(node, proofs, scope, &Caution::default(), at(NOW))
}

#[test]
fn enough_proofs_over_enough_time_in_a_trusted_scope_delete() {
    assert_eq!(
        decision(&node(), &proofs(3, 15), &Ok(())),
        Decision::Delete { hurried: false }
    );
}

#[test]
fn too_few_or_too_quick_proofs_ask_again() {
    for (case, row) in [
        ("one", proofs(1, 0)),
        ("two, long apart", proofs(2, 600)),
        ("three at once", proofs(3, 0)),
        ("many at once", proofs(50, 0)),
        ("three, nearly long enough", proofs(3, 14)),
    ] {
        let decision = decision(&node(), &row, &Ok(()));
        assert!(
            matches!(decision, Decision::AskAgain { .. }),
            "{case}: {decision:?}"
        );
    }
}

#[test]
fn a_proof_for_another_machine_begins_anew() {
    let row = proofs(3, 15).and(proof("local://p/2"), Instant::now());
    assert_eq!(row.count, 1);
    let mut renamed = node();
    renamed.facts.provider_id = Some(id("local://p/2"));
    let decision = decision(&renamed, &row, &Ok(()));
    assert!(
        matches!(decision, Decision::AskAgain { .. }),
        "{decision:?}"
    );
}

#[test]
fn what_must_stay_stays_whatever_the_cloud_says() {
    let mut ready = node();
    ready.readiness = Readiness::Ready;
    let mut deleting = node();
    deleting.deleting = true;
    let mut other = node();
    other.facts.provider_id = Some(id("local://p/2"));
    let mut nameless = node();
    nameless.facts.provider_id = None;
    for (case, node) in [
        ("ready", ready),
        ("deleting", deleting),
        ("another machine by now", other),
        ("no provider ID", nameless),
        ("held", annotated("cloudkeel.dev/hold", "true")),
        (
            "held, badly spelled",
            annotated("cloudkeel.dev/hold", "yes please"),
        ),
    ] {
        let decision = decision(&node, &proofs(9, 60), &Ok(()));
        assert!(
            matches!(decision, Decision::Keep { .. }),
            "{case}: {decision:?}"
        );
    }
    let released = annotated("cloudkeel.dev/hold", "false");
    assert_eq!(
        decision(&released, &proofs(3, 15), &Ok(())),
        Decision::Delete { hurried: false }
    );
}

#[test]
fn a_new_node_that_was_never_initialised_is_left_alone_for_a_while() {
    let mut young = node();
    young.taints.push(Taint {
        key: UNINITIALIZED_TAINT.into(),
        value: None,
        effect: "NoSchedule".into(),
        time_added: None,
    });
    young.facts.created = Some(at(NOW - 60));
    let Decision::AskAgain { after, .. } = decision(&young, &proofs(9, 60), &Ok(())) else {
        panic!("too new");
    };
    assert_eq!(after, Duration::from_mins(4));
    young.facts.created = Some(at(NOW + 60));
    let jumped = decision(&young, &proofs(9, 60), &Ok(()));
    assert!(
        matches!(jumped, Decision::AskAgain { .. }),
        "a clock that jumped back deletes nothing"
    );
    young.facts.created = Some(at(NOW - 301));
    assert_eq!(
        decision(&young, &proofs(3, 15), &Ok(())),
        Decision::Delete { hurried: false }
    );
}

#[test]
fn a_node_that_was_initialised_needs_no_grace() {
    let mut young = node();
    young.facts.created = Some(at(NOW - 60));
    assert_eq!(
        decision(&young, &proofs(3, 15), &Ok(())),
        Decision::Delete { hurried: false }
    );
}

#[test]
fn a_doubtful_scope_halts_everything_but_a_persons_word() {
    let doubt = Err(ScopeDoubt::NotSeen);
    assert_eq!(
        decision(&node(), &proofs(9, 60), &doubt),
        Decision::Halt {
            doubt: ScopeDoubt::NotSeen
        }
    );
    let hurried = annotated("cloudkeel.dev/delete-now", "true");
    assert_eq!(
        decision(&hurried, &proofs(1, 0), &doubt),
        Decision::Delete { hurried: true }
    );
}

#[test]
fn a_persons_word_does_not_beat_a_hold_or_a_ready_node() {
    let mut both = annotated("cloudkeel.dev/delete-now", "true");
    both.facts
        .annotations
        .insert("cloudkeel.dev/hold".into(), "true".into());
    assert!(matches!(
        decision(&both, &proofs(1, 0), &Ok(())),
        Decision::Keep { .. }
    ));
    let mut ready = annotated("cloudkeel.dev/delete-now", "true");
    ready.readiness = Readiness::Ready;
    assert!(matches!(
        decision(&ready, &proofs(1, 0), &Ok(())),
        Decision::Keep { .. }
    ));
}
