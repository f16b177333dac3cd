//! Deletes a Node whose machine is proven gone: after the decision, when the limiter allows, and only if the Node
//! is still the one that was decided about.

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{Clock as _, Event, GoneProof, Match, Subject};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::decide::{Circumstances, Decision, Proofs, decide_deletion};
use super::doubt::ScopeDoubt;
use super::heartbeat::Heartbeat;
use super::{LifecycleController, Verdict};
use crate::clouds::{Cloud, Snapshot};
use crate::planted::Bug;
use crate::runtime::{Brief, WriteError};
use crate::view::NodeView;
use crate::wellknown::{AUTOSCALER_TAINT, KARPENTER_TAINT};

/// Whether something else has announced that it removes this Node, so that it comes as no surprise.
pub(super) fn is_leaving(node: &NodeView) -> bool {
    node.has_taint(AUTOSCALER_TAINT) || node.has_taint(KARPENTER_TAINT)
}

/// A turn that could not be used for this long is over. Those of an hour without an API server would all
/// be used at once.
const TURN_LASTS: Duration = Duration::from_mins(2);

/// A Node that is kept for a reason that may be over soon is considered again after this long: a live kubelet is
/// heard more often than that.
const SOON: Duration = Duration::from_secs(15);

impl LifecycleController {
    /// Adds a proof to the row, and acts if it is enough.
    pub(super) async fn consider(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
        proofs: Vec<GoneProof>,
        noticed: Instant,
    ) -> Verdict {
        let Some(cloud) = clouds.first() else {
            return Verdict::Done;
        };
        let replacements = clouds.iter();
        let replacements = replacements.map(|cloud| cloud.cell.version());
        let proof = Proofs::begin(proofs, replacements.sum(), noticed);
        let first = self.of_node(node, |record| record.proofs.as_ref().map(Proofs::first));
        let since = first.flatten().unwrap_or(noticed);
        let scope = self.check_scopes(clouds, since).await;
        let (proofs, scope) = match scope {
            Ok(lists) if is_shown_since(node, clouds, &lists, noticed) => {
                debug!(node = node.facts.name, "not found by ID, but listed since");
                self.end_proofs(node);
                return self.ask_later(node);
            }
            Ok(lists) => match self.add_proof(node, clouds, proof, &lists) {
                Some(proofs) => (proofs, Ok(())),
                None => return Verdict::AgainAfter(self.settings.monitor_period),
            },
            Err(doubt) => {
                if !doubt.keeps_proofs() {
                    self.end_proofs(node);
                }
                (proof, Err(doubt))
            }
        };
        let earlier = self.first_heartbeat(node).await;
        if earlier == Heartbeat::NoAnswer {
            // Without the cluster's word, the cloud's does not count afterwards either.
            self.end_proofs(node);
            return Verdict::Failed;
        }
        let decision = self.decide(node, clouds, &proofs, &scope, earlier);
        if !matches!(decision, Decision::Delete { .. }) {
            return self.leave(node, decision);
        }
        if Bug::ActOnStaleCache.is_planted() {
            return self.delete(node, cloud, &proofs, false).await;
        }
        // What was judged came from the watch. Before anything is lost, look at the Node itself.
        let current = match self.parts.writer.read(&node.facts.name).await {
            Ok(current) if current.facts.uid == node.facts.uid => current,
            Ok(_) | Err(WriteError::Gone) => return Verdict::Done,
            Err(error) => {
                warn!(node = node.facts.name, %error, "not deleted: the node cannot be read");
                self.end_proofs(node);
                return Verdict::Failed;
            }
        };
        match self.decide(&current, clouds, &proofs, &scope, earlier) {
            Decision::Delete { hurried } => match self.hear(&current, earlier, hurried).await {
                Some(verdict) => verdict,
                None => self.delete(&current, cloud, &proofs, hurried).await,
            },
            decision => self.leave(&current, decision),
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
                proofs.judge_by(began);
            }
            record.proofs = Some(proofs.clone());
            Some(proofs)
        })?
    }

    /// What the kubelet had to say when the proofs began. Kubelets that were cut off together with
    /// us have all of that time to be heard again.
    async fn first_heartbeat(&self, node: &NodeView) -> Heartbeat {
        let known = self.of_node(node, |record| record.heartbeat);
        if let Some(heartbeat) = known.flatten() {
            return heartbeat;
        }
        let heartbeat = self.parts.heartbeats.of(&node.facts.name).await;
        self.of_node(node, |record| record.heartbeat = Some(heartbeat));
        heartbeat
    }

    /// Whether the kubelet is heard after all; then the Node stays for now.
    async fn hear(&self, node: &NodeView, earlier: Heartbeat, hurried: bool) -> Option<Verdict> {
        let heartbeat = self.parts.heartbeats.of(&node.facts.name).await;
        if heartbeat == Heartbeat::NoAnswer {
            self.end_proofs(node);
            return Some(Verdict::Failed);
        }
        // A person's word needs no row of proofs, in which a kubelet would be heard.
        let holds = hurried && heartbeat.holds(self.parts.clock.now());
        if !holds && !heartbeat.is_newer_than(earlier) {
            return None;
        }
        self.end_proofs(node);
        let why = "its kubelet still renews its lease".to_owned();
        self.leave(node, Decision::Keep { why });
        Some(Verdict::AgainAfter(SOON))
    }

    fn decide(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
        proofs: &Proofs,
        scope: &Result<(), ScopeDoubt>,
        heartbeat: Heartbeat,
    ) -> Decision {
        let silences = clouds.iter();
        let silences = silences.map(|cloud| self.of_cloud(cloud, |record| record.silence));
        let with = Circumstances {
            scope,
            caution: &self.settings.caution,
            silence: silences.fold(heartbeat.silence(), Duration::max),
            // A clock that jumps ahead makes no Node older.
            clock: self.parts.clock.now().min(self.steady.now()),
            now: Instant::now(),
        };
        decide_deletion(node, proofs, &with)
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
        if let Some(proof) = proofs.latest() {
            info!(node = name, %proof, "deleting node: its machine is gone");
        }
        let subject = Subject::from(&node.facts);
        self.parts.events.emit(Event::normal(
            subject.clone(),
            "DeletingNode",
            format!("Deleting node {name} because it does not exist in the cloud provider"),
        ));
        match self.parts.writer.delete(node).await {
            Ok(()) | Err(WriteError::Gone) => {
                self.parts.observer.deleted(&cloud.name);
                self.of_node(node, std::mem::take);
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
        let promised = self.of_node(node, |record| record.turn).flatten();
        if let Some(turn) = promised.filter(|turn| now < *turn + TURN_LASTS) {
            return turn.saturating_duration_since(now);
        }
        let nodes = self.nodes_of(cloud).len();
        let wait = self.of_cloud(cloud, |record| record.limiter.take(nodes, now));
        let is_kept = self.of_node(node, |record| record.turn = Some(now + wait));
        if is_kept.is_none() {
            self.of_cloud(cloud, |record| record.limiter.give_back());
        }
        wait
    }

    /// That a role may not delete Nodes is logged once; the Nodes themselves get their events.
    fn warn_not_deleted(&self, node: &str, error: &kube::Error) {
        let is_denied = matches!(error, kube::Error::Api(status) if status.code == 403);
        let error = Brief(error);
        if is_denied && self.denial_reported.swap(true, Ordering::Relaxed) {
            debug!(node, %error, "node not deleted");
        } else {
            warn!(node, %error, "node not deleted");
        }
    }

    /// Leaves a Node as it is, says why once, and says when to ask again.
    pub(super) fn leave(&self, node: &NodeView, decision: Decision) -> Verdict {
        self.give_up_turn(node);
        let (kind, why, pause) = match decision {
            Decision::AskAgain { after, .. } => {
                return Verdict::AgainAfter(after.max(self.settings.monitor_period));
            }
            Decision::Keep { why } => (None, why, self.settings.longest_pause),
            Decision::Halt { doubt } => {
                let why = format!("deletions are stopped: {doubt}");
                (Some(discriminant(&doubt)), why, SOON)
            }
            Decision::Delete { .. } => return Verdict::Done,
        };
        // A doubt of the same kind about other Nodes is no news.
        let is_news = self.of_node(node, |record| {
            let before = record.kept.replace((kind, why.clone()));
            before.is_none_or(|before| before.0 != kind || (kind.is_none() && before.1 != why))
        });
        if is_news == Some(true) {
            let message = format!("Machine not found in the cloud, but the Node is kept: {why}");
            let subject = Subject::from(&node.facts);
            self.parts
                .events
                .emit(Event::warning(subject, "NodeKept", message));
        }
        Verdict::AgainAfter(pause)
    }
}

/// Whether a list that began after a machine was not found shows it: then the cloud contradicts itself.
fn is_shown_since(
    node: &NodeView,
    clouds: &[Arc<Cloud>],
    lists: &[Arc<Snapshot>],
    noticed: Instant,
) -> bool {
    clouds.iter().zip(lists).any(|(cloud, list)| {
        let provider = cloud.provider();
        let instances = provider.instances();
        let found = instances.map(|it| it.identify(&node.facts, &list.sweep));
        list.began >= noticed && matches!(found, Some(Match::One(_)))
    })
}
