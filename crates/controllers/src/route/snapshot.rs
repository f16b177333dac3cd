//! The Nodes at the beginning of a look, and what each is to the cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{NodeFacts, Shared};

use super::RouteController;
use super::plan::{Member, Standing};
use crate::clouds::{Cloud, owner_of};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

pub(super) struct Snapshot {
    nodes: BTreeMap<String, (Arc<NodeView>, Standing)>,
}

impl RouteController {
    pub(super) fn snapshot(&self, cloud: &Cloud) -> Snapshot {
        let clouds = &self.parts.clouds;
        let nodes = self.parts.nodes.all().into_iter().map(|node| {
            let standing = if !owner_of(&node.facts, clouds).is(cloud) {
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

    pub(super) fn facts(&self) -> Vec<Shared<NodeFacts>> {
        let nodes = self.nodes.values();
        nodes.map(|(node, _)| node.facts.clone()).collect()
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
