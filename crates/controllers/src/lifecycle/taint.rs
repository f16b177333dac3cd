//! The shutdown taint.

use cloudkeel_api::Event;
use tracing::{info, warn};

use super::LifecycleController;
use crate::node::plan::NodeChanges;
use crate::runtime::{Brief, Verdict, WriteError};
use crate::view::{NodeView, Taint};
use crate::wellknown::SHUTDOWN_TAINT;

const NO_SCHEDULE: &str = "NoSchedule";

/// The reasons of the Events. Upstream has none.
const SHUT_DOWN: &str = "MachineShutDown";
const RUNS_AGAIN: &str = "MachineRunsAgain";

impl LifecycleController {
    /// Taints a Node whose machine is shut down. The taint goes only when the Node is Ready again,
    /// not when the machine merely runs.
    pub(super) async fn taint_if(&self, shut_down: bool, node: &NodeView) -> Verdict {
        if shut_down && !is_tainted(node) {
            let mut taints = node.taints.clone();
            taints.push(Taint {
                key: SHUTDOWN_TAINT.to_owned(),
                value: None,
                effect: NO_SCHEDULE.to_owned(),
                time_added: None,
            });
            let message = format!(
                "The machine is shut down in the cloud: tainted {SHUTDOWN_TAINT}:{NO_SCHEDULE} until the Node \
                 is Ready again"
            );
            let event = Event::warning(&node.facts, SHUT_DOWN, message);
            if let Err(verdict) = self.write_taints(node, taints, event).await {
                return verdict;
            }
        }
        self.ask_later(node)
    }

    pub(super) async fn remove_shutdown_taint(&self, node: &NodeView) -> Verdict {
        if !is_tainted(node) {
            return Verdict::Done;
        }
        let mut taints = node.taints.clone();
        taints.retain(|taint| !is_ours(taint));
        let message = format!("Ready again: taint {SHUTDOWN_TAINT}:{NO_SCHEDULE} removed");
        let event = Event::normal(&node.facts, RUNS_AGAIN, message);
        let written = self.write_taints(node, taints, event).await;
        written.err().unwrap_or(Verdict::Done)
    }

    /// Writes taints, and records the event when that is done.
    async fn write_taints(
        &self,
        node: &NodeView,
        taints: Vec<Taint>,
        event: Event,
    ) -> Result<(), Verdict> {
        info!(node = node.facts.name, "{}", event.message);
        let changes = NodeChanges {
            taints: Some(taints),
            ..NodeChanges::default()
        };
        match self.parts.writer.write_changes(node, &changes).await {
            Ok(_) => {
                self.parts.events.emit(event);
                Ok(())
            }
            Err(WriteError::Gone) => Err(Verdict::Done),
            // The watch is about to bring what changed.
            Err(WriteError::Conflict) => Err(Verdict::Failed),
            Err(WriteError::Api(error)) => {
                let error = Brief(&error);
                warn!(node = node.facts.name, %error, "taints not written");
                Err(Verdict::Failed)
            }
        }
    }
}

/// Key and effect make a taint.
fn is_ours(taint: &Taint) -> bool {
    taint.key == SHUTDOWN_TAINT && taint.effect == NO_SCHEDULE
}

fn is_tainted(node: &NodeView) -> bool {
    node.taints.iter().any(is_ours)
}
