//! What is to be done about a Node. Pure: from what is seen and what is noted to one step.

use cloudkeel_api::{NodeFacts, names};
use ipnet::IpNet;

use super::book::{Book, Certainty, Holding};
use super::cidr_set::Candidate;
use crate::view::NodeView;

/// The next step for a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// All is well, or nothing can be done.
    Nothing,
    /// The Node that had blocks is gone, though another may have its name: free them, then look again.
    Release,
    /// It has networks: note them.
    Occupy,
    /// Reserve these blocks for it, one of each range.
    Reserve(Vec<Candidate>),
    /// Write what is reserved for it.
    Write(Vec<IpNet>),
    /// This cluster CIDR has no block left for it.
    Exhausted(IpNet),
}

/// Plans the next step for the Node of this name, as it is seen now.
pub(super) fn plan(name: &str, node: Option<&NodeView>, book: &Book) -> Step {
    let held = book.holding(name);
    let Some(node) = node else {
        return held.map_or(Step::Nothing, |_| Step::Release);
    };
    if held.is_some_and(|held| held.uid != node.facts.uid) {
        return Step::Release;
    }
    let has = &node.facts.pod_cidrs;
    match held {
        // The watch may lag behind a write, but it never takes one back.
        Some(held) if is_written(held) && (has.is_empty() || *has == held.cidrs) => Step::Nothing,
        _ if !has.is_empty() => Step::Occupy,
        // What is reserved stays so until the Node is gone: a write may still be on its way.
        _ if node.deleting || is_unmanaged(&node.facts) => Step::Nothing,
        Some(held) => Step::Write(held.cidrs.clone()),
        None => match book.candidates() {
            Ok(blocks) => Step::Reserve(blocks),
            Err(cluster_cidr) => Step::Exhausted(cluster_cidr),
        },
    }
}

fn is_written(held: &Holding) -> bool {
    held.certainty == Certainty::Written
}

/// Whether a person wants the Node to be left alone. What it has is noted all the same.
pub(super) fn is_unmanaged(node: &NodeFacts) -> bool {
    let label = node.labels.get(names::UNMANAGED_LABEL);
    label.is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::range::ClusterRange;
    use super::*;
    use crate::runtime::Unobserved;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn book() -> Book {
        let ranges = [("10.0.0.0/24", 24), ("fd00::/62", 64)]
            .map(|(cidr, mask)| ClusterRange::new(net(cidr), mask).unwrap());
        Book::new(&ranges, &[], Arc::new(Unobserved))
    }

    fn node(name: &str, uid: &str, cidrs: &[&str]) -> NodeView {
        let mut node = NodeView::default();
        node.facts.name = name.into();
        node.facts.uid = uid.into();
        node.facts.pod_cidrs = cidrs.iter().map(|cidr| net(cidr)).collect();
        node
    }

    fn deleting(node: NodeView) -> NodeView {
        NodeView {
            deleting: true,
            ..node
        }
    }

    fn unmanaged(mut node: NodeView) -> NodeView {
        let label = (names::UNMANAGED_LABEL.to_owned(), "true".to_owned());
        node.facts.labels.extend([label]);
        node
    }

    /// A book in which Node `a` has reserved the only IPv4 block, and perhaps got it.
    fn taken(is_written: bool) -> (Book, Vec<IpNet>) {
        let mut book = book();
        let blocks = book.candidates().unwrap();
        book.reserve(&node("a", "1", &[]).facts, &blocks);
        let cidrs: Vec<_> = blocks.iter().map(|block| block.cidr).collect();
        if is_written {
            let mut written = node("a", "1", &[]);
            written.facts.pod_cidrs.clone_from(&cidrs);
            assert!(book.settle(&written.facts).is_empty());
        }
        (book, cidrs)
    }

    #[test]
    fn a_new_node_gets_the_next_block_of_every_range_in_their_order() {
        let Step::Reserve(blocks) = plan("a", Some(&node("a", "1", &[])), &book()) else {
            panic!("nothing reserved");
        };
        let cidrs: Vec<_> = blocks.iter().map(|block| block.cidr).collect();
        assert_eq!(cidrs, [net("10.0.0.0/24"), net("fd00::/64")]);
    }

    #[test]
    fn a_node_that_is_gone_or_replaced_gives_back_what_it_had() {
        let (reserved, _) = taken(false);
        let (written, _) = taken(true);
        let again = node("a", "2", &[]);
        let leaving = deleting(again.clone());
        for (case, seen, book, step) in [
            ("never had any", None, &book(), Step::Nothing),
            ("had some", None, &written, Step::Release),
            ("was about to get some", None, &reserved, Step::Release),
            ("another of its name", Some(&again), &written, Step::Release),
            ("that leaves too", Some(&leaving), &reserved, Step::Release),
        ] {
            assert_eq!(plan("a", seen, book), step, "{case}");
        }
    }

    #[test]
    fn a_node_without_networks_gets_them_unless_it_is_to_be_left_alone_or_none_are_left() {
        let (reserved, cidrs) = taken(false);
        let (mut in_doubt, _) = taken(false);
        in_doubt.doubt("a");
        let (written, _) = taken(true);
        let fresh = node("a", "1", &[]);
        let leaving = deleting(fresh.clone());
        let late = node("late", "9", &[]);
        let full = Step::Exhausted(net("10.0.0.0/24"));
        for (case, seen, book, step) in [
            ("reserved", &fresh, &reserved, Step::Write(cidrs.clone())),
            ("perhaps written", &fresh, &in_doubt, Step::Write(cidrs)),
            ("the watch lags", &fresh, &written, Step::Nothing),
            (
                "unmanaged",
                &unmanaged(fresh.clone()),
                &book(),
                Step::Nothing,
            ),
            ("leaving", &leaving, &book(), Step::Nothing),
            ("leaving, reserved", &leaving, &reserved, Step::Nothing),
            ("leaving, written", &leaving, &written, Step::Nothing),
            ("nothing left", &late, &written, full.clone()),
            ("all reserved", &late, &reserved, full),
        ] {
            assert_eq!(plan(&seen.facts.name, Some(seen), book), step, "{case}");
        }
    }

    #[test]
    fn networks_that_a_node_has_are_noted_even_while_it_leaves() {
        let (reserved, _) = taken(false);
        let (written, _) = taken(true);
        let ours = node("a", "1", &["10.0.0.0/24", "fd00::/64"]);
        let theirs = node("a", "1", &["10.0.0.0/24", "fd00:0:0:1::/64"]);
        let leaving = deleting(ours.clone());
        for (case, seen, book, step) in [
            ("from before", &ours, &book(), Step::Occupy),
            ("written after all", &ours, &reserved, Step::Occupy),
            ("somebody else's", &theirs, &reserved, Step::Occupy),
            ("leaving", &leaving, &book(), Step::Occupy),
            ("unmanaged", &unmanaged(ours.clone()), &book(), Step::Occupy),
            ("noted", &ours, &written, Step::Nothing),
            ("noted and leaving", &leaving, &written, Step::Nothing),
        ] {
            assert_eq!(plan("a", Some(seen), book), step, "{case}");
        }
    }
}
