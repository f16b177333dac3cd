//! What holds for any Nodes.

use proptest::prelude::*;

use super::*;

prop_compose! {
    /// A Node of any readiness, leaving, excluded or not.
    fn any_node()(
        name in "[a-f]",
        readiness in prop::sample::select(vec![Readiness::Ready, Readiness::NotReady, Readiness::Unknown]),
        deleting in any::<bool>(),
        excluded in prop::option::of(prop::sample::select(vec!["", "true", "false"])),
        taints in prop::sample::subsequence(vec![AUTOSCALER_TAINT, KARPENTER_TAINT, "x"], 0..=2),
    ) -> NodeView {
        let mut node = node(&name);
        node.readiness = readiness;
        node.deleting = deleting;
        node.taints = taints.into_iter().map(taint).collect();
        node.facts.labels.extend(excluded.map(|value| (EXCLUDE_LABEL.to_owned(), value.to_owned())));
        node
    }
}

fn distinct(nodes: Vec<NodeView>) -> Vec<NodeView> {
    let by_name: BTreeMap<_, _> = nodes
        .into_iter()
        .map(|n| (n.facts.name.clone(), n))
        .collect();
    by_name.into_values().collect()
}

proptest! {
    #[test]
    fn readiness_never_changes_the_targets(
        nodes in prop::collection::vec(any_node(), 0..6),
        drain in any::<bool>(),
    ) {
        let nodes = distinct(nodes);
        let features = Features { drain, ..ABLE };
        for readiness in [Readiness::Ready, Readiness::NotReady, Readiness::Unknown] {
            let mut others = nodes.clone();
            for node in &mut others {
                node.readiness = readiness;
            }
            prop_assert_eq!(chosen(&nodes, features), chosen(&others, features));
        }
    }

    #[test]
    fn there_is_a_serving_target_as_long_as_one_node_is_not_excluded(
        nodes in prop::collection::vec(any_node(), 0..6),
        drain in any::<bool>(),
    ) {
        let nodes = distinct(nodes);
        let targets = chosen(&nodes, Features { drain, ..ABLE });
        let serving = targets.iter().any(|word| !word.ends_with("draining"));
        prop_assert_eq!(serving, nodes.iter().any(|node| !is_excluded(node)));
    }

    #[test]
    fn a_change_that_does_not_count_changes_no_targets(
        mut before in any_node(),
        mut after in any_node(),
        drain in any::<bool>(),
    ) {
        before.facts.name = "b".to_owned();
        before.facts.uid = "u".to_owned();
        before.facts.provider_id = "hcloud://p1/b".parse().ok();
        after.facts = before.facts.clone();
        prop_assume!(!relevant_change(Some(&before), Some(&after)));
        let features = Features { drain, ..ABLE };
        prop_assert_eq!(
            chosen(&[node("a"), before], features),
            chosen(&[node("a"), after], features)
        );
    }
}
