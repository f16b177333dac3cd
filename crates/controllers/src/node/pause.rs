//! Nodes that the operator has paused: nothing is written to them. Every controller of Nodes asks for itself; this one
//! reports it.

use cloudkeel_api::Event;
use tracing::info;

use super::NodeController;
use crate::clouds::{Owner, owner_of};
use crate::log_messages::{NODE_PAUSED, NODE_RESUMED};
use crate::paused::{PAUSED_REASON, RESUMED_REASON, paused_by};
use crate::runtime::Verdict;
use crate::view::NodeView;

impl NodeController {
    /// Leaves a Node alone, and reports that once. One of no cloud here is left alone anyway.
    pub(super) fn pause(&self, node: &NodeView, why: &str) -> Verdict {
        self.end_wait(node);
        let is_new = self.records.with(&node.facts.uid, |record| {
            record.paused.replace(why.to_owned()).as_deref() != Some(why)
        });
        let is_unowned = matches!(
            owner_of(&node.facts, &self.parts.clouds),
            Owner::Unowned { .. }
        );
        if is_new == Some(true) && !is_unowned {
            info!(node = node.facts.name, why, "{NODE_PAUSED}");
            let message = format!(
                "The Node is {why}: it is neither changed nor deleted until the annotation is removed"
            );
            let event = Event::normal(&node.facts, PAUSED_REASON, message);
            self.parts.events.emit(event);
        }
        Verdict::Done
    }

    /// Reports once that a Node is not paused any more.
    pub(super) fn resume(&self, node: &NodeView) {
        let paused = self
            .records
            .with(&node.facts.uid, |record| record.paused.take());
        if paused.flatten().is_some() {
            info!(node = node.facts.name, "{NODE_RESUMED}");
            let message = "The Node is not paused any more";
            let event = Event::normal(&node.facts, RESUMED_REASON, message);
            self.parts.events.emit(event);
        }
    }

    /// The Nodes that are paused, for reports.
    pub(super) fn paused(&self) -> Vec<String> {
        let nodes = self.parts.nodes.all();
        let paused = nodes.iter().filter_map(|node| {
            let why = paused_by(&node.facts.annotations)?;
            Some(format!("{}: {why}", node.facts.name))
        });
        paused.collect()
    }
}
