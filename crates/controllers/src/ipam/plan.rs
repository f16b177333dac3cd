//! What is to be done about a Node. Pure: from what is seen and what is noted to one step.

use ipnet::IpNet;

use super::book::Book;
use super::cidr_set::Candidate;
use crate::view::NodeView;

/// The next step for a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
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
pub fn plan(name: &str, node: Option<&NodeView>, book: &Book) -> Step {
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
        Some(held) if held.is_written && (has.is_empty() || *has == held.cidrs) => Step::Nothing,
        _ if !has.is_empty() => Step::Occupy,
        // What is reserved stays so until the Node is gone: a write may still be on its way.
        _ if node.deleting => Step::Nothing,
        Some(held) => Step::Write(held.cidrs.clone()),
        None => match book.candidates() {
            Ok(blocks) => Step::Reserve(blocks),
            Err(cluster_cidr) => Step::Exhausted(cluster_cidr),
        },
    }
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
        NodeView { deleting: true, ..node }
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
    fn each_state_of_a_node_has_its_step() {
        let (reserved, cidrs) = taken(false);
        let (written, _) = taken(true);
        let fresh = node("a", "1", &[]);
        let ours = node("a", "1", &["10.0.0.0/24", "fd00::/64"]);
        let other = node("a", "1", &["10.0.0.0/24", "fd00:0:0:1::/64"]);
        let again = node("a", "2", &[]);
        let unknown = node("b", "9", &[]);
        for (case, seen, book, step) in [
            ("gone and never had any", None, &book(), Step::Nothing),
            ("gone", None, &written, Step::Release),
            ("gone while reserved", None, &reserved, Step::Release),
            ("another of the same name", Some(&again), &written, Step::Release),
            ("another of the name, deleting", Some(&deleting(again.clone())), &reserved, Step::Release),
            ("deleting", Some(&deleting(fresh.clone())), &book(), Step::Nothing),
            ("deleting while reserved", Some(&deleting(fresh.clone())), &reserved, Step::Nothing),
            ("deleting, with networks", Some(&deleting(ours.clone())), &book(), Step::Occupy),
            ("deleting keeps what it has", Some(&deleting(ours.clone())), &written, Step::Nothing),
            ("reserved, not known to be written", Some(&fresh), &reserved, Step::Write(cidrs)),
            ("written, the watch lags", Some(&fresh), &written, Step::Nothing),
            ("written and seen", Some(&ours), &written, Step::Nothing),
            ("written after all", Some(&ours), &reserved, Step::Occupy),
            ("somebody else was first", Some(&other), &reserved, Step::Occupy),
            ("has networks from before", Some(&ours), &book(), Step::Occupy),
        ] {
            let name = "a";
            assert_eq!(plan(name, seen, book), step, "{case}");
        }
        assert_eq!(
            plan("b", Some(&unknown), &written),
            Step::Exhausted(net("10.0.0.0/24"))
        );
    }
}
