//! The rule of docs/when-a-node-is-deleted.md with the values of one Node filled in.

use std::time::Duration;

use cloudkeel_api::{Existence, GoneProof, ScopeFingerprint, names};
use cloudkeel_controllers::lifecycle::decide::{
    Decision, DeletionContext, Proofs, decide_deletion,
};
use cloudkeel_controllers::lifecycle::doubt::{ScopeDoubt, too_many};
use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;
use serde::Serialize;
use tokio::time::Instant;

use super::NextStep;
use crate::check::shows_no_known_machine;
use crate::snapshot::{InstanceMatch, NodeOwner, NodeState, Snapshot};
use crate::text::{age, duration};

/// How often a kubelet with the usual settings renews its lease, at the latest.
const USUAL_GAP: Duration = Duration::from_secs(30);

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// It holds.
    Yes,
    /// It does not, so the Node is kept.
    No,
    /// Only the leader knows, or nothing could say.
    Unknown,
}

/// One condition of the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its number on the page.
    pub number: u8,
    /// The condition.
    pub rule: &'static str,
    /// Whether it holds.
    pub met: Met,
    /// The values that say so.
    pub value: String,
}

/// What speaks for and against the deletion of a Node.
pub(super) struct Deletion<'a> {
    snapshot: &'a Snapshot,
    node: &'a NodeState,
}

impl<'a> Deletion<'a> {
    pub(super) const fn new(snapshot: &'a Snapshot, node: &'a NodeState) -> Self {
        Self { snapshot, node }
    }

    /// Whether the question arises: the Node is not Ready, or its machine is not seen.
    pub(super) fn is_possible(&self) -> bool {
        let is_seen = |it: &InstanceMatch| matches!(it, InstanceMatch::One { .. });
        let is_seen = self.node.matches.values().any(is_seen);
        self.node.view.readiness != Readiness::Ready || !is_seen
    }

    /// Every condition, in the order of the page.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let rows = [
            ("it belongs to a configured cloud", self.owned()),
            (
                "it is not Ready, and its kubelet sends no heartbeats",
                self.not_ready(),
            ),
            ("the cloud proves that its machine is gone", self.proven()),
            ("the cloud proves it repeatedly", self.repeated()),
            ("the Node is not new", self.not_new()),
            ("the cloud's answers are not in doubt", self.not_in_doubt()),
            ("the deletion limiter allows it", self.limiter()),
            ("it is still the same Node", same_node()),
        ];
        let rows = rows.into_iter().zip(1_u8..);
        rows.map(|((rule, (met, value)), number)| Condition {
            number,
            rule,
            met,
            value,
        })
        .collect()
    }

    fn owned(&self) -> (Met, String) {
        match &self.node.owner {
            _ if self.node.view.facts.provider_id.is_none() => (
                Met::No,
                "it has no provider ID, so no machine of it can be proven gone".to_owned(),
            ),
            NodeOwner::Cloud(name) => (Met::Yes, format!("cloud {name}")),
            NodeOwner::Undecided(names) => (
                Met::Yes,
                format!("each of {} has to prove it", names.join(", ")),
            ),
            NodeOwner::Unowned { why, .. } => (Met::No, why.clone()),
        }
    }

    fn not_ready(&self) -> (Met, String) {
        let since = self.node.ready_since;
        let since = since.map_or_else(String::new, |at| {
            format!(" for {}", age(at, self.snapshot.now))
        });
        let heartbeat = match self.node.heartbeat {
            Some(at) => format!("last heartbeat {} ago", age(at, self.snapshot.now)),
            None => "no Lease of its kubelet was read".to_owned(),
        };
        match self.node.view.readiness {
            Readiness::Ready => (Met::No, format!("Ready{since}; {heartbeat}")),
            Readiness::NotReady => (Met::Yes, format!("NotReady{since}; {heartbeat}")),
            Readiness::Unknown => (Met::Yes, format!("Unknown{since}; {heartbeat}")),
        }
    }

    fn proven(&self) -> (Met, String) {
        if self.node.looked_up.is_empty() {
            return (Met::Unknown, "no cloud was asked for it".to_owned());
        }
        let mut met = Met::Yes;
        let mut values = Vec::new();
        for look_up in &self.node.looked_up {
            let (this, text) = match &*look_up.answer {
                Existence::Present(instance) => {
                    (Met::No, format!("{} is {}", instance.id, instance.state))
                }
                Existence::Gone(proof) => (Met::Yes, proof.to_string()),
                Existence::Unknown(doubt) => (Met::Unknown, doubt.to_string()),
            };
            met = match (met, this) {
                (Met::No, _) | (_, Met::No) => Met::No,
                (Met::Unknown, _) | (_, Met::Unknown) => Met::Unknown,
                _ => Met::Yes,
            };
            values.push(format!("{}: {text}", look_up.cloud));
        }
        (met, values.join("; "))
    }

    fn repeated(&self) -> (Met, String) {
        let caution = &self.snapshot.settings.caution;
        let needed = format!(
            "{} proofs over at least {} are needed",
            caution.proofs,
            duration(caution.over)
        );
        match self.proven().0 {
            Met::Yes => (
                Met::Unknown,
                format!("{needed}; the leader counts them, this is one"),
            ),
            _ => (Met::No, format!("{needed}; there is none")),
        }
    }

    fn not_new(&self) -> (Met, String) {
        let grace = self.snapshot.settings.caution.grace;
        let created = self.node.view.facts.created;
        if !self.node.view.has_taint(UNINITIALIZED_TAINT) {
            return (
                Met::Yes,
                "it was initialised, so its cloud has shown its machine before".to_owned(),
            );
        }
        let Some(created) = created else {
            return (Met::Unknown, "its age is not known".to_owned());
        };
        let old = self.snapshot.now.duration_since(created);
        let old = Duration::try_from(old).unwrap_or_default();
        let value = format!(
            "created {} ago, kept for {}",
            duration(old),
            duration(grace)
        );
        (if old >= grace { Met::Yes } else { Met::No }, value)
    }

    fn not_in_doubt(&self) -> (Met, String) {
        match self.doubt() {
            Ok(()) => (
                Met::Yes,
                "the list of its cloud agrees with the Nodes that are Ready".to_owned(),
            ),
            Err(doubt) => (Met::No, format!("{doubt}: {}", doubt.what_to_do())),
        }
    }

    fn limiter(&self) -> (Met, String) {
        let waiting = self.snapshot.known_nodes().iter().filter(|node| {
            let is_gone = node
                .matches
                .values()
                .any(|it| matches!(it, InstanceMatch::None { .. }));
            is_gone && node.view.readiness != Readiness::Ready && node.cloud() == self.node.cloud()
        });
        let value = format!(
            "{} Nodes of its cloud have no machine; a burst of {} or a fifth of them is deleted at once",
            waiting.count(),
            self.snapshot.settings.deletion_burst
        );
        (Met::Unknown, value)
    }

    /// Whether the list of its clouds contradicts the cluster.
    fn doubt(&self) -> Result<(), ScopeDoubt> {
        for cloud in self.node.matches.keys() {
            if matches!(self.node.matches.get(cloud), Some(InstanceMatch::Unread)) {
                return Err(ScopeDoubt::NotListed);
            }
            if let Some((known, _)) = shows_no_known_machine(self.snapshot, cloud) {
                let scope = self
                    .snapshot
                    .cloud(cloud)
                    .and_then(|it| it.scope.as_ref()?.as_ref().ok());
                let scope = ScopeFingerprint::new(scope.cloned().unwrap_or_default());
                return Err(ScopeDoubt::NothingKnownSeen { known, scope });
            }
            let ready: Vec<_> = self
                .snapshot
                .known_nodes()
                .iter()
                .filter(|node| {
                    node.cloud() == Some(cloud) && node.view.readiness == Readiness::Ready
                })
                .collect();
            let is_missing = |node: &&&NodeState| {
                matches!(node.matches.get(cloud), Some(InstanceMatch::None { .. }))
            };
            let missing: Vec<_> = ready.iter().filter(is_missing).collect();
            if let Some(first) = missing.first()
                && too_many(missing.len(), ready.len())
            {
                return Err(ScopeDoubt::ManyReadyMissing {
                    missing: missing.len(),
                    ready: ready.len(),
                    node: first.name().to_owned(),
                });
            }
        }
        Ok(())
    }

    /// What the lifecycle controller decides with one proof.
    pub(super) fn next(&self) -> NextStep {
        let mut proofs: Vec<GoneProof> = Vec::new();
        for look_up in &self.node.looked_up {
            match &*look_up.answer {
                Existence::Gone(proof) => proofs.push(proof.clone()),
                Existence::Present(_) => {
                    return NextStep::new(
                        "the Node is kept, because its machine exists",
                        "it is looked up again after 5, 15 and 35 s, then once a minute until the Node is Ready",
                    );
                }
                Existence::Unknown(doubt) => {
                    return NextStep::new(
                        format!("the Node is kept, because nothing is proven: {doubt}"),
                        "it is looked up again within a minute",
                    );
                }
            }
        }
        if proofs.is_empty() {
            return NextStep::never("the Node is kept: no cloud here can prove anything about it");
        }
        let now = Instant::now();
        let context = DeletionContext {
            scope: &self.doubt(),
            caution: &self.snapshot.settings.caution,
            longest_gap: USUAL_GAP,
            clock: self.snapshot.now,
            now,
        };
        match decide_deletion(&self.node.view, &Proofs::begin(proofs, 0, now), &context) {
            Decision::Delete { now: true } => NextStep::new(
                format!(
                    "the Node is deleted: one proof is enough with {}",
                    names::DELETE_NOW.name()
                ),
                "at the next look-up",
            ),
            Decision::Delete { now: false } => NextStep::new("the Node is deleted", "at once"),
            Decision::CheckAgain { after } => NextStep::new(
                "the cloud is asked again; the Node is deleted when it has proven it often enough",
                format!("the next proof is due in {}", duration(after)),
            ),
            Decision::Keep { why } => NextStep::never(format!("the Node is kept: {why}")),
            Decision::Stop { doubt } => NextStep::never(format!(
                "nothing of this cloud is deleted: {doubt}; {}",
                doubt.what_to_do()
            )),
        }
    }
}

fn same_node() -> (Met, String) {
    let value = "the leader reads it again, and deletes it by UID and resource version".to_owned();
    (Met::Unknown, value)
}
