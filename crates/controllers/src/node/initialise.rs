//! Initialises a Node in at most two writes: addresses, then everything else with the taint.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Event, Subject};
use tracing::{debug, info};

use super::NodeController;
use super::find::{Machine, NotFound};
use super::plan;
use crate::planted::Bug;
use crate::runtime::{Cause, Unless, Verdict, WriteError};
use crate::view::{NodeView, View as _};
use crate::wellknown::UNINITIALIZED_TAINT;

/// Another client writes this Node at the same time; more often than this is no accident.
const MOST_CONFLICTS: u32 = 5;
/// For our own write to come back by the watch.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const MOST_LOOKS: u32 = 5;

impl NodeController {
    pub(super) async fn initialise(&self, node: &Arc<NodeView>) -> Verdict {
        let machine = match self.find_machine(node).await {
            Ok(machine) => machine,
            Err(NotFound::NotOurs) => {
                debug!(node = node.facts.name, "not a Node of any cloud here");
                self.end_wait(node);
                return Verdict::Done;
            }
            Err(NotFound::Unclear(unclear)) => {
                return self.wait(node, &unclear.why, unclear.verdict);
            }
        };
        match self.write(node, &machine).await {
            Ok(()) => {
                self.tell_initialised(node, &machine);
                Verdict::Done
            }
            Err(Unwritten::Gone) => Verdict::Done,
            Err(Unwritten::Stale) => {
                let why = Cause::of_text("another client keeps changing this Node");
                self.wait(node, &why, Verdict::Failed)
            }
            Err(Unwritten::Refused(why)) => self.wait(node, &Cause::of_text(why), Verdict::Failed),
        }
    }

    async fn write(&self, node: &NodeView, machine: &Machine) -> Result<(), Unwritten> {
        let mut current = node.clone();
        for _ in 0..MOST_CONFLICTS {
            if !current.continues(node) {
                return Err(Unwritten::Gone);
            }
            if !current.has_taint(UNINITIALIZED_TAINT) {
                return Ok(());
            }
            match self.write_once(current, machine).await {
                Err(Unwritten::Stale) => current = self.parts.writer.read(&node.facts.name).await?,
                written => return written,
            }
        }
        Err(Unwritten::Stale)
    }

    async fn write_once(&self, mut node: NodeView, machine: &Machine) -> Result<(), Unwritten> {
        let plan = plan::initialise(&node, &machine.instance, &machine.addresses);
        let plan = plan.map_err(|problem| Unwritten::Refused(problem.to_string()))?;
        self.report_declined(&node, &plan.declined);
        // Each write is tied to the version before it. So what was planned from that version is still
        // right after the addresses are written, and their answer need not bring the whole Node.
        if let Some(addresses) = &plan.addresses
            && !Bug::TaintBeforeAddresses.is_planted()
        {
            let writing = self
                .parts
                .writer
                .write_addresses(&node, addresses, Unless::Changed);
            node.resource_version = writing.await?;
            self.until_shown(&node).await;
        }
        if !plan.changes.is_empty() {
            let writing = self.parts.writer.write_changes(&node, &plan.changes);
            node.resource_version = writing.await?;
        }
        self.note_written(&node.facts.uid, &node.resource_version);
        self.records.with(&node.facts.uid, |record| {
            record.learnt = Some(machine.learnt);
        });
        Ok(())
    }

    /// Gives the watch a moment to show our write. The API server plans the next write from its own
    /// cache, which feeds the watch; if that lags behind, it does all its work twice.
    async fn until_shown(&self, node: &NodeView) {
        for _ in 0..MOST_LOOKS {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let shown = self.parts.nodes.get(&node.facts.name);
            if shown.is_none_or(|shown| shown.version() >= node.version()) {
                return;
            }
        }
    }

    fn tell_initialised(&self, node: &NodeView, machine: &Machine) {
        self.end_wait(node);
        info!(
            node = node.facts.name,
            machine = machine.instance.id.as_str(),
            "node initialised"
        );
        self.emit_later(Event::normal(
            Subject::from(&node.facts),
            "Synced",
            "Node synced successfully",
        ));
        if let Some(created) = node.facts.created {
            let waited = self.parts.clock.now().duration_since(created);
            let waited = Duration::try_from(waited).unwrap_or_default();
            self.parts.observer.taint_removed(waited);
            self.parts.observer.synced(waited);
        }
    }
}

/// Why a Node was not written.
enum Unwritten {
    Gone,
    /// It has changed meanwhile.
    Stale,
    Refused(String),
}

impl From<WriteError> for Unwritten {
    fn from(error: WriteError) -> Self {
        match &error {
            WriteError::Gone => Self::Gone,
            WriteError::Conflict => Self::Stale,
            WriteError::Api(_) => Self::Refused(error.to_string()),
        }
    }
}
