//! Deletes a Node whose machine is proven gone: after the judgement, at the pace, and only if the Node
//! is still the one that was judged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{Clock as _, Event, GoneProof, Subject};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::heartbeat::Heartbeat;
use super::judge::{self, Decision, Proofs};
use super::scope::ScopeDoubt;
use super::{Halt, LifecycleController, Verdict};
use crate::clouds::Cloud;
use crate::planted::Bug;
use crate::runtime::{Brief, WriteError};
use crate::view::NodeView;
use crate::wellknown::{AUTOSCALER_TAINT, KARPENTER_TAINT};

/// Whether something else has announced that it removes this Node, so that nobody will be surprised.
fn is_leaving(node: &NodeView) -> bool {
    node.has_taint(AUTOSCALER_TAINT) || node.has_taint(KARPENTER_TAINT)
}

/// A turn that could not be used for this long is over. Those of an hour without an API server would all
/// be used at once.
const TURN_LASTS: Duration = Duration::from_mins(2);

/// A kubelet that is really gone stops renewing soon; one that is not must not be asked about often.
const HEARTBEAT_PAUSE: Duration = Duration::from_secs(10);

impl LifecycleController {
    /// Adds a proof to the row, and acts if it is enough.
    pub(super) async fn consider(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
        proof: GoneProof,
    ) -> Verdict {
        let proofs = self.add_proof(&node.facts.uid, proof);
        let Some(cloud) = clouds.first() else {
            return Verdict::Done;
        };
        let scope = self.judge_all(clouds).await;
        let earlier = if scope.is_ok() {
            self.first_heartbeat(node).await
        } else {
            Heartbeat::NoAnswer
        };
        if earlier == Heartbeat::NoAnswer {
            // What was said in doubt, by the cloud or without the cluster, does not count afterwards either.
            self.end_row(&node.facts.uid);
        }
        let decision = self.decide(node, &proofs, &scope);
        if !matches!(decision, Decision::Delete { .. }) {
            return self.leave(node, decision);
        }
        let scope = self.judge_all_since(clouds, proofs.first()).await;
        if Bug::ActOnStaleCache.is_planted() {
            return self.delete(node, cloud, &proofs, false).await;
        }
        // What was judged came from the watch. Before anything is lost, look at the Node itself.
        let current = match self.parts.writer.read(&node.facts.name).await {
            Ok(current) if current.facts.uid == node.facts.uid => current,
            Ok(_) | Err(WriteError::Gone) => return Verdict::Done,
            Err(error) => {
                warn!(node = node.facts.name, %error, "not deleted: the node cannot be read");
                self.end_row(&node.facts.uid);
                return Verdict::Failed;
            }
        };
        match self.decide(&current, &proofs, &scope) {
            Decision::Delete { hurried } => match self.hear(&current, earlier).await {
                Some(verdict) => verdict,
                None => self.delete(&current, cloud, &proofs, hurried).await,
            },
            decision => self.leave(&current, decision),
        }
    }

    /// What the kubelet had to say when the row of proofs began. Kubelets that were cut off together with
    /// us have all of the row to be heard again.
    async fn first_heartbeat(&self, node: &NodeView) -> Heartbeat {
        let known = self
            .histories()
            .get(&node.facts.uid)
            .and_then(|h| h.heartbeat);
        if let Some(heartbeat) = known {
            return heartbeat;
        }
        let heartbeat = self.parts.heartbeats.of(&node.facts.name).await;
        if let Some(history) = self.histories().get_mut(&node.facts.uid) {
            history.heartbeat = Some(heartbeat);
        }
        heartbeat
    }

    /// Whether the kubelet is heard after all; then the Node stays for now.
    async fn hear(&self, node: &NodeView, earlier: Heartbeat) -> Option<Verdict> {
        let heartbeat = self.parts.heartbeats.of(&node.facts.name).await;
        if heartbeat == Heartbeat::NoAnswer {
            self.end_row(&node.facts.uid);
            return Some(Verdict::Failed);
        }
        let was_renewed = heartbeat.is_newer_than(earlier);
        if was_renewed {
            self.end_row(&node.facts.uid);
        } else if !heartbeat.holds(self.parts.clock.now()) {
            return None;
        }
        let why = "its kubelet still renews its lease".to_owned();
        self.leave(node, Decision::Keep { why });
        Some(Verdict::AgainAfter(HEARTBEAT_PAUSE))
    }

    fn decide(&self, node: &NodeView, proofs: &Proofs, scope: &Result<(), ScopeDoubt>) -> Decision {
        // A clock that jumps ahead makes no Node older.
        let now = self.parts.clock.now().min(self.steady.now());
        judge::decide(node, proofs, scope, &self.settings.caution, now)
    }

    fn add_proof(&self, uid: &str, proof: GoneProof) -> Proofs {
        let now = Instant::now();
        let mut histories = self.histories();
        let history = histories.entry(uid.to_owned()).or_default();
        let proofs = if let Some(row) = history.proofs.take() {
            row.and(proof, now)
        } else {
            history.heartbeat = None;
            Proofs::begin(proof, now)
        };
        history.proofs = Some(proofs.clone());
        proofs
    }

    pub(super) async fn judge_all(&self, clouds: &[Arc<Cloud>]) -> Result<(), ScopeDoubt> {
        for cloud in clouds {
            let scope = self.judge_scope(cloud).await;
            if !Bug::IgnoreDoubt.is_planted() {
                scope?;
            }
        }
        Ok(())
    }

    /// The same, by sweeps that began after the first proof: one from before it says nothing about the
    /// credential that gave the proofs.
    async fn judge_all_since(
        &self,
        clouds: &[Arc<Cloud>],
        moment: Instant,
    ) -> Result<(), ScopeDoubt> {
        for cloud in clouds {
            let seen = cloud.inventory.begun_after(moment).await;
            seen.map_err(|_| ScopeDoubt::NotSeen)?;
        }
        self.judge_all(clouds).await
    }

    pub(super) fn end_row(&self, uid: &str) {
        if let Some(history) = self.histories().get_mut(uid) {
            history.proofs = None;
        }
    }

    async fn delete(
        &self,
        node: &NodeView,
        cloud: &Cloud,
        proofs: &Proofs,
        hurried: bool,
    ) -> Verdict {
        if !hurried && !is_leaving(node) && !Bug::IgnorePace.is_planted() {
            let wait = self.wait_for_turn(node, cloud);
            if !wait.is_zero() {
                return Verdict::AgainAfter(wait);
            }
        }
        let name = &node.facts.name;
        info!(node = name, proof = %proofs.latest(), "deleting node: its machine is gone");
        let subject = Subject::from(&node.facts);
        self.parts.events.emit(Event::normal(
            subject.clone(),
            "DeletingNode",
            format!("Deleting node {name} because it does not exist in the cloud provider"),
        ));
        match self.parts.writer.delete(node).await {
            Ok(()) | Err(WriteError::Gone) => {
                self.parts.observer.deleted(&cloud.name);
                self.histories().remove(&node.facts.uid);
                Verdict::Done
            }
            Err(WriteError::Conflict) => {
                info!(node = name, "not deleted: the node has changed meanwhile");
                Verdict::AgainAfter(self.settings.monitor_period)
            }
            Err(WriteError::Api(error)) => {
                let message = format!("Failed deleting node {name}: {}", Brief(&error));
                self.warn_not_deleted(name, &error);
                self.parts
                    .events
                    .emit(Event::warning(subject, "DeletingNodeFailed", message));
                Verdict::Failed
            }
        }
    }

    /// How long a Node has to wait for its turn, which it is promised once: until then the cloud need
    /// not be asked about it again.
    fn wait_for_turn(&self, node: &NodeView, cloud: &Cloud) -> Duration {
        let now = Instant::now();
        let promised = self.histories().get(&node.facts.uid).and_then(|h| h.turn);
        if let Some(turn) = promised.filter(|turn| now < *turn + TURN_LASTS) {
            return turn.saturating_duration_since(now);
        }
        let nodes = self.nodes_of(cloud).len();
        let wait = self.with_guard(cloud, |guard| guard.pace.take(nodes, now));
        let mut histories = self.histories();
        let history = histories.entry(node.facts.uid.clone()).or_default();
        history.turn = Some(now + wait);
        wait
    }

    /// A role that may not delete Nodes is told about once; the Nodes themselves get their events.
    fn warn_not_deleted(&self, node: &str, error: &kube::Error) {
        let is_denied = matches!(error, kube::Error::Api(status) if status.code == 403);
        let error = Brief(error);
        if is_denied && self.denial_told.swap(true, Ordering::Relaxed) {
            debug!(node, %error, "node not deleted");
        } else {
            warn!(node, %error, "node not deleted");
        }
    }

    /// Leaves a Node as it is, says why once, and says when to ask again.
    pub(super) fn leave(&self, node: &NodeView, decision: Decision) -> Verdict {
        self.give_up_turn(node);
        let (why, verdict) = match decision {
            Decision::AskAgain { after, .. } => {
                return Verdict::AgainAfter(after.max(self.settings.monitor_period));
            }
            Decision::Keep { why } => (why, Verdict::AgainAfter(self.settings.longest_pause)),
            Decision::Halt { doubt } => {
                let why = format!("deletions are stopped: {doubt}");
                (why, Verdict::AgainAfter(self.settings.longest_pause))
            }
            Decision::Delete { .. } => return Verdict::Done,
        };
        let mut histories = self.histories();
        let history = histories.entry(node.facts.uid.clone()).or_default();
        if history.told.as_deref() != Some(why.as_str()) {
            history.told = Some(why.clone());
            drop(histories);
            let message = format!("Machine not found in the cloud, but the Node is kept: {why}");
            let subject = Subject::from(&node.facts);
            self.parts
                .events
                .emit(Event::warning(subject, "NodeKept", message));
        }
        verdict
    }

    pub(super) fn note_halt(&self, cloud: &Cloud, scope: &Result<(), ScopeDoubt>) {
        let now = scope.is_err();
        let since = self.parts.clock.now();
        let before = self.with_guard(cloud, |guard| {
            let before = guard.halted.take();
            let since = before.as_ref().map_or(since, |halt| halt.since);
            guard.halted = scope.as_ref().err().map(|doubt| Halt {
                since,
                doubt: doubt.clone(),
            });
            before.is_some()
        });
        if before == now {
            return;
        }
        self.parts.observer.halted(&cloud.name, now);
        if let Err(doubt) = scope {
            error!(cloud = cloud.name, %doubt, "deletions of nodes are stopped");
        } else {
            info!(cloud = cloud.name, "deletions of nodes may go on");
        }
    }
}
