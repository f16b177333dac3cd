//! Deletes a Node whose instance is proven gone: after the decision, when the limiter allows, and only if the Node
//! is still the one that was decided about.

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{Clock as _, Event, GoneProof, Match};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::decide::{Decision, DeletionContext, Proofs, decide_deletion};
use super::heartbeat::Heartbeat;
use super::{LONGEST_PAUSE, LifecycleController, Verdict};
use crate::clouds::{Cloud, Snapshot};
use crate::log_messages::{DELETING_NODE, NODE_DELETE_FAILED, NODE_NOT_READ};
use crate::planted::Bug;
use crate::runtime::{ErrorText, WriteError};
use crate::view::NodeView;
use crate::wellknown::{AUTOSCALER_TAINT, KARPENTER_TAINT};

/// A Node that is kept for a reason that may be over soon is checked again after this long: a live kubelet sends
/// heartbeats more often than that.
const SOON: Duration = Duration::from_secs(15);

/// Whether an autoscaler has announced that it removes this Node.
pub(super) fn is_leaving(node: &NodeView) -> bool {
    node.has_taint(AUTOSCALER_TAINT) || node.has_taint(KARPENTER_TAINT)
}

impl LifecycleController {
    /// Adds a proof to those before it, and deletes the Node if they are enough.
    pub(super) async fn handle_gone(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
        proofs: Vec<GoneProof>,
        noticed: Instant,
    ) -> Verdict {
        let Some(cloud) = clouds.first() else {
            return Verdict::Done;
        };
        let replacements = clouds.iter().map(|cloud| cloud.cell.version()).sum();
        let proof = Proofs::begin(proofs, replacements, noticed);
        let first = self.of_node(node, |record| record.proofs.as_ref().map(Proofs::first));
        let since = first.flatten().unwrap_or(noticed);
        let mut longest_gap = Duration::ZERO;
        let (proofs, scope) = match self.check_scopes(clouds, since).await {
            Ok(agreed) if is_shown_since(node, clouds, &agreed.lists, noticed) => {
                debug!(
                    node = node.facts.name,
                    "instance not found by ID, but listed"
                );
                self.end_proofs(node);
                return self.retry_later(node);
            }
            Ok(agreed) => {
                longest_gap = agreed.longest_gap;
                match self.add_proof(node, clouds, proof, &agreed.lists) {
                    Some(proofs) => (proofs, Ok(())),
                    None => return Verdict::AgainAfter(self.settings.monitor_period),
                }
            }
            Err(doubt) => {
                if !doubt.keeps_proofs() {
                    self.end_proofs(node);
                }
                (proof, Err(doubt))
            }
        };
        let first_heartbeat = self.first_heartbeat(node).await;
        if first_heartbeat == Heartbeat::NoAnswer {
            // The proofs of a time without the API server do not count.
            self.end_proofs(node);
            return Verdict::Failed;
        }
        let decide = |node: &NodeView| {
            let context = DeletionContext {
                scope: &scope,
                caution: &self.settings.caution,
                longest_gap: longest_gap.max(first_heartbeat.longest_gap()),
                // A clock that jumps ahead makes no Node older.
                clock: self.parts.clock.now().min(self.steady.now()),
                now: Instant::now(),
            };
            decide_deletion(node, &proofs, &context)
        };
        let decision = decide(node);
        if !matches!(decision, Decision::Delete { .. }) {
            return self.keep(node, decision);
        }
        if Bug::ActOnStaleCache.is_planted() {
            return self.delete(node, cloud, &proofs, false).await;
        }
        let current = match self.read_again(node).await {
            Ok(current) => current,
            Err(verdict) => return verdict,
        };
        match decide(&current) {
            Decision::Delete { now } => {
                match self.check_heartbeat(&current, first_heartbeat, now).await {
                    Ok(()) => self.delete(&current, cloud, &proofs, now).await,
                    Err(verdict) => verdict,
                }
            }
            decision => self.keep(&current, decision),
        }
    }

    /// A decision rests on the watch. Before the Node is deleted, it is read and decided about again.
    async fn read_again(&self, node: &NodeView) -> Result<NodeView, Verdict> {
        match self.parts.writer.read(&node.facts.name).await {
            Ok(current) if current.facts.uid == node.facts.uid => Ok(current),
            Ok(_) | Err(WriteError::Gone) => Err(Verdict::Done),
            Err(error) => {
                warn!(node = node.facts.name, err = %error, "{NODE_NOT_READ}");
                self.end_proofs(node);
                Err(Verdict::Failed)
            }
        }
    }

    /// The proofs with one more. `None` if none of them counts: the clouds were in doubt since it was given,
    /// or the watch is broken.
    fn add_proof(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
        proof: Proofs,
        lists: &[Arc<Snapshot>],
    ) -> Option<Proofs> {
        let count_since = self.proofs_count_since(clouds);
        let count = |proofs: &Proofs| count_since.is_some_and(|since| proofs.first() > since);
        let list_began = lists.iter().map(|list| list.began).min();
        self.of_node(node, |record| {
            let mut proofs = if let Some(proofs) = record.proofs.take().filter(count) {
                proofs.and(proof)
            } else {
                record.heartbeat = None;
                Some(proof).filter(count)?
            };
            if let Some(began) = list_began {
                proofs.confirm_by_list(began);
            }
            record.proofs = Some(proofs.clone());
            Some(proofs)
        })?
    }

    /// The heartbeat at the first proof. Kubelets that were cut off together with us have all of the time since then
    /// to send another.
    async fn first_heartbeat(&self, node: &NodeView) -> Heartbeat {
        let known = self.of_node(node, |record| record.heartbeat);
        if let Some(heartbeat) = known.flatten() {
            return heartbeat;
        }
        let heartbeat = self.heartbeats.of(&node.facts.name).await;
        self.of_node(node, |record| record.heartbeat = Some(heartbeat));
        heartbeat
    }

    /// Keeps the Node if its kubelet is alive after all.
    async fn check_heartbeat(
        &self,
        node: &NodeView,
        first: Heartbeat,
        is_delete_now: bool,
    ) -> Result<(), Verdict> {
        let heartbeat = self.heartbeats.of(&node.facts.name).await;
        if heartbeat == Heartbeat::NoAnswer {
            self.end_proofs(node);
            return Err(Verdict::Failed);
        }
        // What the operator wants deleted now needs one proof, so there was no time for another heartbeat.
        let is_valid = is_delete_now && heartbeat.is_valid(self.parts.clock.now());
        if !is_valid && !heartbeat.is_newer_than(first) {
            return Ok(());
        }
        self.end_proofs(node);
        let why = "its kubelet still renews its lease".to_owned();
        self.keep(node, Decision::Keep { why });
        Err(Verdict::AgainAfter(SOON))
    }

    async fn delete(
        &self,
        node: &NodeView,
        cloud: &Cloud,
        proofs: &Proofs,
        is_delete_now: bool,
    ) -> Verdict {
        self.of_node(node, |record| record.is_kept = false);
        if !is_delete_now && !is_leaving(node) && !Bug::IgnoreDeletionLimiter.is_planted() {
            let wait = self.reserve_slot(node, cloud);
            if !wait.is_zero() {
                return Verdict::AgainAfter(wait);
            }
        }
        let name = &node.facts.name;
        if let Some(proof) = proofs.latest() {
            let cloud = &cloud.name;
            info!(node = name, cloud, %proof, "{DELETING_NODE}");
        }
        let events = &self.parts.events;
        let message =
            format!("Deleting node {name} because it does not exist in the cloud provider");
        events.emit(Event::normal(&node.facts, "DeletingNode", message));
        match self.parts.writer.delete(node).await {
            Ok(()) | Err(WriteError::Gone) => {
                self.parts.observer.node_deleted(&cloud.name);
                self.of_cloud(cloud, |record| record.limiter.consume(&node.facts.uid));
                self.of_node(node, std::mem::take);
                Verdict::Done
            }
            Err(WriteError::Conflict) => {
                info!(node = name, "node has changed, not deleting it");
                Verdict::AgainAfter(self.settings.monitor_period)
            }
            Err(WriteError::Api(error)) => {
                let err = ErrorText(&error);
                // That the role may not delete Nodes is warned about once; each Node gets its Event.
                let is_denied = matches!(&error, kube::Error::Api(it) if it.code == 403);
                if is_denied && self.denial_reported.swap(true, Ordering::Relaxed) {
                    debug!(node = name, %err, "{NODE_DELETE_FAILED}");
                } else {
                    warn!(node = name, %err, "{NODE_DELETE_FAILED}");
                }
                let message = format!("Failed deleting node {name}: {err}");
                events.emit(Event::warning(&node.facts, "DeletingNodeFailed", message));
                Verdict::Failed
            }
        }
    }

    /// How long a Node has to wait until the limiter lets it be deleted. Until then the cloud need not be asked
    /// about it again.
    fn reserve_slot(&self, node: &NodeView, cloud: &Cloud) -> Duration {
        let (uid, nodes) = (&node.facts.uid, self.nodes_of(cloud).len());
        let wait = self.of_cloud(cloud, |record| {
            record.limiter.reserve(uid, nodes, Instant::now())
        });
        if self.of_node(node, |_| ()).is_none() {
            // It went meanwhile.
            self.release_slot(node);
        }
        wait
    }

    /// Keeps a Node, records why once, and says when to check again.
    pub(super) fn keep(&self, node: &NodeView, decision: Decision) -> Verdict {
        self.release_slot(node);
        let advice = match &decision {
            Decision::Stop { doubt } => format!("; {}", doubt.what_to_do()),
            _ => String::new(),
        };
        let (kind, why, pause) = match decision {
            Decision::CheckAgain { after } => {
                self.of_node(node, |record| record.is_kept = false);
                return Verdict::AgainAfter(after.max(self.settings.monitor_period));
            }
            Decision::Keep { why } => (None, why, LONGEST_PAUSE),
            Decision::Stop { doubt } => {
                let why = format!("deletions are stopped: {doubt}");
                (Some(discriminant(&doubt)), why, SOON)
            }
            Decision::Delete { .. } => return Verdict::Done,
        };
        // A doubt of the same kind about other Nodes is not reported again.
        let is_new = self.of_node(node, |record| {
            record.is_kept = true;
            let before = record.kept.replace((kind, why.clone()));
            before.is_none_or(|before| before.0 != kind || (kind.is_none() && before.1 != why))
        });
        if is_new == Some(true) {
            let message =
                format!("Machine not found in the cloud, but the Node is kept: {why}{advice}");
            let event = Event::warning(&node.facts, "NodeKept", message);
            self.parts.events.emit(event);
        }
        Verdict::AgainAfter(pause)
    }
}

/// Whether a list that began after an instance was not found shows it: then the cloud contradicts itself.
fn is_shown_since(
    node: &NodeView,
    clouds: &[Arc<Cloud>],
    lists: &[Arc<Snapshot>],
    noticed: Instant,
) -> bool {
    clouds.iter().zip(lists).any(|(cloud, list)| {
        let found = cloud.identify(&node.facts, &list.list);
        list.began >= noticed && matches!(found, Match::One(_))
    })
}
