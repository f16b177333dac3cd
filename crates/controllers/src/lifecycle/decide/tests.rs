use cloudkeel_api::{ProviderId, ScopeFingerprint};

use super::*;
use k8s_openapi::api::core::v1::Taint;

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

fn begin(machine: &str, at: Instant) -> Proofs {
    Proofs::begin(vec![proof(machine)], 0, at)
}

/// So many proofs, so many seconds apart, confirmed by a list that began with the first.
fn proofs(count: u32, apart: u64) -> Proofs {
    let start = Instant::now();
    let mut proofs = (1..count).fold(begin("local://p/1", start), |proofs, number| {
        let later = start + Duration::from_secs(apart * u64::from(number));
        proofs.and(begin("local://p/1", later))
    });
    proofs.confirm_by_list(start);
    proofs
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
    decision_when(node, proofs, scope, Duration::ZERO)
}

/// The same, with kubelets that may go without a heartbeat for so long.
fn decision_when(
    node: &NodeView,
    proofs: &Proofs,
    scope: &Result<(), ScopeDoubt>,
    longest_gap: Duration,
) -> Decision {
    let with = DeletionContext {
        scope,
        caution: &Caution::default(),
        longest_gap,
        clock: at(NOW),
        now: proofs.last,
    };
    decide_deletion(node, proofs, &with)
}

#[test]
fn enough_proofs_over_enough_time_in_a_trusted_scope_delete() {
    assert_eq!(
        decision(&node(), &proofs(3, 15), &Ok(())),
        Decision::Delete { now: false }
    );
}

#[test]
fn too_few_or_too_quick_proofs_ask_again() {
    for (case, proofs) in [
        ("one", proofs(1, 0)),
        ("two, long apart", proofs(2, 600)),
        ("three at once", proofs(3, 0)),
        ("many at once", proofs(50, 0)),
        ("three, nearly long enough", proofs(3, 14)),
    ] {
        let decision = decision(&node(), &proofs, &Ok(()));
        assert!(
            matches!(decision, Decision::CheckAgain { .. }),
            "{case}: {decision:?}"
        );
    }
}

#[test]
fn a_proof_for_another_machine_begins_anew() {
    let proofs = proofs(3, 15).and(begin("local://p/2", Instant::now()));
    assert_eq!(proofs.count, 1);
    let mut renamed = node();
    renamed.facts.provider_id = Some(id("local://p/2"));
    let decision = decision(&renamed, &proofs, &Ok(()));
    assert!(
        matches!(decision, Decision::CheckAgain { .. }),
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
        Decision::Delete { now: false }
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
    let Decision::CheckAgain { after, .. } = decision(&young, &proofs(9, 60), &Ok(())) else {
        panic!("too new");
    };
    assert_eq!(after, Duration::from_mins(4));
    young.facts.created = Some(at(NOW + 60));
    let jumped = decision(&young, &proofs(9, 60), &Ok(()));
    assert!(
        matches!(jumped, Decision::CheckAgain { .. }),
        "a clock that jumped back deletes nothing"
    );
    young.facts.created = Some(at(NOW - 301));
    assert_eq!(
        decision(&young, &proofs(3, 15), &Ok(())),
        Decision::Delete { now: false }
    );
}

#[test]
fn a_node_that_was_initialised_needs_no_grace() {
    let mut young = node();
    young.facts.created = Some(at(NOW - 60));
    assert_eq!(
        decision(&young, &proofs(3, 15), &Ok(())),
        Decision::Delete { now: false }
    );
}

#[test]
fn a_doubtful_scope_stops_everything_but_delete_now() {
    let doubt = Err(ScopeDoubt::NotListed);
    assert_eq!(
        decision(&node(), &proofs(9, 60), &doubt),
        Decision::Stop {
            doubt: ScopeDoubt::NotListed
        }
    );
    let delete_now = annotated("cloudkeel.dev/delete-now", "true");
    assert_eq!(
        decision(&delete_now, &proofs(1, 0), &doubt),
        Decision::Delete { now: true }
    );
}

#[test]
fn delete_now_does_not_beat_a_hold_or_a_ready_node() {
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

#[test]
fn proofs_under_another_fingerprint_or_provider_or_after_a_long_gap_begin_anew() {
    let start = Instant::now();
    let elsewhere = || {
        let scope = ScopeFingerprint::new("q");
        let proof = GoneProof::terminated(id("local://p/1"), "look up", "deleted", &scope, at(NOW));
        vec![proof]
    };
    let soon = start + Duration::from_secs(15);
    let late = start + Duration::from_mins(11);
    let here = || vec![proof("local://p/1")];
    for (case, next, count) in [
        ("the same", Proofs::begin(here(), 0, soon), 2),
        (
            "another fingerprint",
            Proofs::begin(elsewhere(), 0, soon),
            1,
        ),
        ("another credential", Proofs::begin(here(), 1, soon), 1),
        (
            "another cloud was asked too",
            Proofs::begin([here(), here()].concat(), 0, soon),
            1,
        ),
        ("a long gap", Proofs::begin(here(), 0, late), 1),
    ] {
        let proofs = begin("local://p/1", start).and(next);
        assert_eq!(proofs.count, count, "{case}");
    }
}

#[test]
fn proofs_are_confirmed_by_the_first_list_since_the_first_over_all_of_their_time() {
    let start = Instant::now();
    let seconds = Duration::from_secs;
    for (case, lists, is_enough) in [
        ("no list", vec![], false),
        ("a list from before", vec![start - seconds(1)], false),
        (
            "a list at the beginning",
            vec![start, start + seconds(29)],
            true,
        ),
        ("a list at the end", vec![start + seconds(29)], false),
    ] {
        let mut proofs = (1..3).fold(begin("local://p/1", start), |proofs, number| {
            proofs.and(begin("local://p/1", start + seconds(15 * number)))
        });
        for began in lists {
            proofs.confirm_by_list(began);
        }
        let decision = decision(&node(), &proofs, &Ok(()));
        let is_deleted = matches!(decision, Decision::Delete { .. });
        assert_eq!(is_deleted, is_enough, "{case}: {decision:?}");
    }
}

#[test]
fn kubelets_that_report_seldom_make_the_row_longer() {
    let longest_gap = Duration::from_secs(90);
    let short = decision_when(&node(), &proofs(3, 15), &Ok(()), longest_gap);
    assert!(matches!(short, Decision::CheckAgain { .. }), "{short:?}");
    let long = decision_when(&node(), &proofs(7, 15), &Ok(()), longest_gap);
    assert_eq!(long, Decision::Delete { now: false });
}
