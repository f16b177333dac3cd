//! Adds and removes the shutdown taint; `mod.rs` decides when.

use cloudkeel_api::Event;
use k8s_openapi::api::core::v1::Taint;
use tracing::{info, warn};

use super::LifecycleController;
use crate::log_messages::{SHUTDOWN_TAINT_UPDATED, TAINT_PATCH_FAILED};
use crate::node::plan::NodeChanges;
use crate::runtime::{ErrorText, Verdict, WriteError};
use crate::view::NodeView;
use crate::wellknown::SHUTDOWN_TAINT;

const NO_SCHEDULE: &str = "NoSchedule";

/// The reasons of the Events. Upstream has none.
const SHUT_DOWN: &str = "MachineShutDown";
const RUNS_AGAIN: &str = "MachineRunsAgain";

impl LifecycleController {
    /// Taints a Node whose instance is shut down. The taint goes only when the Node is Ready again, not when the
    /// instance merely runs.
    pub(super) async fn add_shutdown_taint(&self, node: &NodeView) -> Verdict {
        if node.taints.iter().any(is_shutdown) {
            return self.retry_later(node);
        }
        let mut taints = node.taints.clone();
        taints.push(Taint {
            key: SHUTDOWN_TAINT.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        });
        let message = format!(
            "The machine is shut down in the cloud: tainted {SHUTDOWN_TAINT}:{NO_SCHEDULE} until the Node \
             is Ready again"
        );
        let event = Event::warning(&node.facts, SHUT_DOWN, message);
        match self.write_taints(node, taints, event).await {
            Verdict::Done => self.retry_later(node),
            failed => failed,
        }
    }

    pub(super) async fn remove_shutdown_taint(&self, node: &NodeView) -> Verdict {
        if !node.taints.iter().any(is_shutdown) {
            return Verdict::Done;
        }
        let mut taints = node.taints.clone();
        taints.retain(|taint| !is_shutdown(taint));
        let message =
            format!("The Node is Ready again: removed the taint {SHUTDOWN_TAINT}:{NO_SCHEDULE}");
        let event = Event::normal(&node.facts, RUNS_AGAIN, message);
        self.write_taints(node, taints, event).await
    }

    /// Writes taints, and records the Event when that is done.
    async fn write_taints(&self, node: &NodeView, taints: Vec<Taint>, event: Event) -> Verdict {
        let changes = NodeChanges {
            taints: Some(taints),
            ..NodeChanges::default()
        };
        let name = &node.facts.name;
        match self.parts.writer.write_changes(node, &changes).await {
            Ok(_) => {
                info!(node = name, reason = %event.reason, "{SHUTDOWN_TAINT_UPDATED}");
                self.parts.events.emit(event);
                Verdict::Done
            }
            Err(WriteError::Gone) => Verdict::Done,
            // The watch is about to bring what changed.
            Err(WriteError::Conflict) => Verdict::Failed,
            Err(WriteError::Api(error)) => {
                let err = ErrorText(&error);
                warn!(node = name, %err, "{TAINT_PATCH_FAILED}");
                Verdict::Failed
            }
        }
    }
}

/// Key and effect make a taint.
fn is_shutdown(taint: &Taint) -> bool {
    taint.key == SHUTDOWN_TAINT && taint.effect == NO_SCHEDULE
}
