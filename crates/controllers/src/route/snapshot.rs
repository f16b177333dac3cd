//! The Nodes at the beginning of a look, and what each is to the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::NodeFacts;

use super::RouteController;
use super::plan::{Member, Standing};
use crate::clouds::{Cloud, Owner, owner_of};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

pub(super) struct Snapshot {
    nodes: BTreeMap<String, (Arc<NodeView>, Standing)>,
    /// Nodes of other clouds.
    elsewhere: BTreeSet<String>,
}

impl RouteController {
    pub(super) fn snapshot(&self, cloud: &Cloud) -> Snapshot {
        let clouds = &self.parts.clouds;
        let mut elsewhere = BTreeSet::new();
        let nodes = self.parts.nodes.all().into_iter().map(|node| {
            let owner = owner_of(&node.facts, clouds);
            let standing = if !owner.is(cloud) {
                if matches!(owner, Owner::Cloud(_)) {
                    elsewhere.insert(node.facts.name.clone());
                }
                Standing::Foreign
            } else if is_newcomer(&node) {
                Standing::Newcomer
            } else {
                Standing::Own
            };
            (node.facts.name.clone(), (node, standing))
        });
        Snapshot {
            nodes: nodes.collect(),
            elsewhere,
        }
    }
}

/// A Node whose machine has not been found yet: there is nothing that a route could lead to.
fn is_newcomer(node: &NodeView) -> bool {
    node.facts.provider_id.is_none() && node.has_taint(UNINITIALIZED_TAINT)
}

impl Snapshot {
    pub(super) fn has_own(&self) -> bool {
        let mut nodes = self.nodes.values();
        nodes.any(|(_, standing)| *standing == Standing::Own)
    }

    /// The Nodes that a route may lead to. One of another cloud has no machine here: its ID may be that of another
    /// machine, where IDs do not tell accounts apart.
    pub(super) fn facts(&self) -> Vec<NodeFacts> {
        let nodes = self.nodes.iter();
        let facts = nodes.map(|(name, (node, _))| {
            let mut facts = NodeFacts::clone(&node.facts);
            if self.elsewhere.contains(name) {
                facts.provider_id = None;
            }
            facts
        });
        facts.collect()
    }

    pub(super) fn members(&self) -> Vec<Member<'_>> {
        let nodes = self.nodes.values();
        nodes
            .map(|(node, standing)| Member {
                facts: &node.facts,
                standing: *standing,
            })
            .collect()
    }

    pub(super) fn node(&self, name: &str) -> Option<&NodeView> {
        self.nodes.get(name).map(|(node, _)| node.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_another_cloud_is_the_target_of_no_machine_here() {
        let id = "local://p/1";
        let node = |name: &str| {
            let mut node = NodeView::default();
            node.facts.name = name.into();
            node.facts.provider_id = id.parse().ok();
            (name.to_owned(), (Arc::new(node), Standing::Foreign))
        };
        let snapshot = Snapshot {
            nodes: BTreeMap::from(["another-clouds", "unmanaged"].map(node)),
            elsewhere: BTreeSet::from(["another-clouds".to_owned()]),
        };
        let facts = snapshot.facts().into_iter();
        let ids: Vec<_> = facts
            .map(|it| it.provider_id.map(|id| id.to_string()))
            .collect();
        assert_eq!(ids, [None, Some(id.to_owned())]);
    }
}
