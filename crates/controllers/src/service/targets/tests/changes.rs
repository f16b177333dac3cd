//! Which changes of a Node count.

use super::*;

#[test]
fn a_change_of_a_node_counts_if_it_may_change_targets() {
    for (case, other) in [
        ("excluded", labelled(EXCLUDE_LABEL, "true")),
        (
            "another ID",
            with(|n| n.facts.provider_id = "hcloud://p1/9".parse().ok()),
        ),
        ("ID gone", with(|n| n.facts.provider_id = None)),
        ("address", with(|n| n.facts.addresses.clear())),
        (
            "autoscaler",
            with(|n| n.taints = vec![taint(AUTOSCALER_TAINT)]),
        ),
        (
            "karpenter",
            with(|n| n.taints = vec![taint(KARPENTER_TAINT)]),
        ),
        ("deletion", with(|n| n.deleting = true)),
        ("recreated", with(|n| n.facts.uid = "other".into())),
        ("any label", labelled("pool", "web")),
    ] {
        assert!(counts(&node("b"), &other), "{case}");
    }
    let plain = node("b");
    assert!(relevant_change(None, Some(&plain)), "new");
    assert!(relevant_change(Some(&plain), None), "gone");
}

#[test]
fn a_change_that_cannot_change_targets_does_not_count() {
    let annotated = with(|n| _ = n.facts.annotations.insert("a".into(), "b".into()));
    for (case, other) in [
        ("nothing", node("b")),
        ("readiness", with(|n| n.readiness = Readiness::NotReady)),
        ("unrelated taint", with(|n| n.taints = vec![taint("x")])),
        ("annotation", annotated),
        (
            "pod network",
            with(|n| n.facts.pod_cidrs = vec!["10.0.0.0/24".parse().unwrap()]),
        ),
    ] {
        assert!(!counts(&node("b"), &other), "{case}");
    }
}

/// Whether it counts, in both directions alike.
fn counts(before: &NodeView, after: &NodeView) -> bool {
    let forth = relevant_change(Some(before), Some(after));
    let back = relevant_change(Some(after), Some(before));
    assert_eq!(forth, back, "{before:?} {after:?}");
    forth
}

#[test]
fn of_label_taint_and_readiness_only_the_first_two_count_in_any_combination() {
    let mut all = Vec::new();
    for exclusion in [None, Some(""), Some("true"), Some("false")] {
        for tainted in [false, true] {
            for readiness in [Readiness::Ready, Readiness::NotReady, Readiness::Unknown] {
                all.push(with(|n| {
                    let label = exclusion.map(|value| (EXCLUDE_LABEL.into(), value.into()));
                    n.facts.labels.extend(label);
                    n.taints.extend(tainted.then(|| taint(AUTOSCALER_TAINT)));
                    n.readiness = readiness;
                }));
            }
        }
    }
    for before in &all {
        for after in &all {
            let flips = before.facts.labels != after.facts.labels
                || before.has_taint(AUTOSCALER_TAINT) != after.has_taint(AUTOSCALER_TAINT);
            assert_eq!(counts(before, after), flips, "{before:?} {after:?}");
        }
    }
}
