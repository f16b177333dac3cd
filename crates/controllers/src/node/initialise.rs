//! Initializes a Node in at most two writes: addresses, then everything else, with the removal of the taint.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Event, Subject};
use tracing::{debug, info};

use super::NodeController;
use super::find::{NoInstance, NodeInstance};
use super::plan;
use crate::log_messages::NODE_INITIALIZED;
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::runtime::{FailureMessage, Precondition, Verdict, WriteError};
use crate::view::{NodeView, View as _};
use crate::wellknown::UNINITIALIZED_TAINT;

/// Another client writes this Node at the same time; more often than this is no accident.
const MAX_CONFLICTS: u32 = 5;
/// For our own write to come back by the watch.
const POLL_PERIOD: Duration = Duration::from_millis(10);
const MAX_POLLS: u32 = 5;

impl NodeController {
    pub(super) async fn initialise(&self, node: &Arc<NodeView>) -> Verdict {
        let found = match self.find_instance(node).await {
            Ok(found) => found,
            Err(NoInstance::NotOurs) => {
                debug!(node = node.facts.name, "node belongs to no cloud here");
                self.end_wait(node);
                return Verdict::Done;
            }
            Err(NoInstance::Unresolved(unresolved)) => {
                return self.wait(node, &unresolved.why, unresolved.verdict);
            }
        };
        match self.write(node, &found).await {
            Ok(()) => {
                self.record_initialised(node, &found);
                Verdict::Done
            }
            Err(NotWritten::Gone) => Verdict::Done,
            Err(NotWritten::Stale) => {
                let why = FailureMessage::from_text("another client keeps changing this Node");
                self.wait(node, &why, Verdict::Failed)
            }
            Err(NotWritten::Refused(why)) => {
                self.wait(node, &FailureMessage::from_text(why), Verdict::Failed)
            }
        }
    }

    async fn write(&self, node: &NodeView, found: &NodeInstance) -> Result<(), NotWritten> {
        let mut current = node.clone();
        for _ in 0..MAX_CONFLICTS {
            if !current.continues(node) {
                return Err(NotWritten::Gone);
            }
            if paused_by(&current.facts.annotations).is_some() {
                // The watch is about to show it.
                return Err(NotWritten::Gone);
            }
            if !current.has_taint(UNINITIALIZED_TAINT) {
                return Ok(());
            }
            match self.write_once(current, found).await {
                Err(NotWritten::Stale) => {
                    current = self.parts.writer.read(&node.facts.name).await?;
                }
                written => return written,
            }
        }
        Err(NotWritten::Stale)
    }

    async fn write_once(&self, mut node: NodeView, found: &NodeInstance) -> Result<(), NotWritten> {
        let plan = plan::initialise(&node, &found.instance, &found.addresses);
        let plan = plan.map_err(|problem| NotWritten::Refused(problem.to_string()))?;
        self.report_declined(&node, &plan.declined);
        // Each write is tied to the version before it. So what was planned from that version is still
        // right after the addresses are written, and their answer need not bring the whole Node.
        if let Some(addresses) = &plan.addresses
            && !Bug::TaintBeforeAddresses.is_planted()
        {
            let writing =
                self.parts
                    .writer
                    .write_addresses(&node, addresses, Precondition::ResourceVersion);
            node.resource_version = writing.await?;
            self.wait_until_shown(&node).await;
        }
        if !plan.changes.is_empty() {
            let writing = self.parts.writer.write_changes(&node, &plan.changes);
            node.resource_version = writing.await?;
        }
        self.note_written(&node.facts.uid, &node.resource_version);
        self.records.with(&node.facts.uid, |record| {
            record.asked = Some(found.asked);
        });
        Ok(())
    }

    /// Gives the watch a moment to show our write. The API server plans the next write from its own
    /// cache, which feeds the watch; if that lags behind, it does all its work twice.
    async fn wait_until_shown(&self, node: &NodeView) {
        for _ in 0..MAX_POLLS {
            tokio::time::sleep(POLL_PERIOD).await;
            let shown = self.parts.nodes.get(&node.facts.name);
            if shown.is_none_or(|shown| shown.version() >= node.version()) {
                return;
            }
        }
    }

    fn record_initialised(&self, node: &NodeView, found: &NodeInstance) {
        self.end_wait(node);
        info!(
            node = node.facts.name,
            provider_id = found.instance.id.as_str(),
            "{NODE_INITIALIZED}"
        );
        self.emit_later(Event::normal(
            Subject::from(&node.facts),
            "Synced",
            "Node synced successfully",
        ));
        if let Some(created) = node.facts.created {
            let waited = self.parts.clock.now().duration_since(created);
            let waited = Duration::try_from(waited).unwrap_or_default();
            self.parts.observer.initialized(waited);
        }
    }
}

/// Why a Node was not written.
enum NotWritten {
    Gone,
    /// It has changed meanwhile.
    Stale,
    Refused(String),
}

impl From<WriteError> for NotWritten {
    fn from(error: WriteError) -> Self {
        match &error {
            WriteError::Gone => Self::Gone,
            WriteError::Conflict => Self::Stale,
            WriteError::Api(_) => Self::Refused(error.to_string()),
        }
    }
}
