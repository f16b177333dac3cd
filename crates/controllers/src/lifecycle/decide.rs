//! Decides whether a Node may be deleted, and says why. Pure.

use std::time::Duration;

use cloudkeel_api::{GoneProof, names};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::doubt::ScopeDoubt;
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};
use crate::wellknown::UNINITIALIZED_TAINT;

/// How careful deletions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    /// A Node that was never initialized is kept until it is this old: clouds show new instances late. One that was
    /// initialized has been seen by its cloud before.
    pub grace: Duration,
    /// So many consecutive proofs are needed.
    pub proofs: u32,
    /// From the first to the last of them at least this long. A live kubelet sends three heartbeats in half a minute.
    pub over: Duration,
}

impl Default for Caution {
    fn default() -> Self {
        Self {
            grace: Duration::from_mins(5),
            proofs: 3,
            over: Duration::from_secs(30),
        }
    }
}

/// Consecutive proofs for one Node, and what they were given under. Any other answer ends them.
#[derive(Debug, Clone)]
pub struct Proofs {
    first: Instant,
    last: Instant,
    count: u32,
    /// The last one of each cloud that was asked.
    latest: Vec<GoneProof>,
    /// How often the providers had been replaced, as new credentials do, at the first.
    replacements: u64,
    /// When the list began that is compared with the cluster: the first one since the first proof.
    listed: Option<Instant>,
}

impl Proofs {
    /// A proof this long after the one before is a first one. Nodes may wait for minutes for their slot.
    const LONGEST_GAP: Duration = Duration::from_mins(10);

    /// A kubelet with the usual Lease sends three heartbeats in this time.
    const USUAL_GAP: Duration = Duration::from_secs(30);

    /// The first, from every cloud that was asked, for an instance that was first not found at `noticed`.
    pub const fn begin(proofs: Vec<GoneProof>, replacements: u64, noticed: Instant) -> Self {
        Self {
            first: noticed,
            last: noticed,
            count: 1,
            latest: proofs,
            replacements,
            listed: None,
        }
    }

    /// One more. A proof for another instance, or given under another fingerprint or provider, is a first one.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        let is_same = self.replacements == next.replacements
            && self.given_under().eq(next.given_under())
            && next.first.saturating_duration_since(self.last) <= Self::LONGEST_GAP;
        if !is_same {
            return next;
        }
        Self {
            last: next.last,
            count: self.count.saturating_add(1),
            latest: next.latest,
            ..self
        }
    }

    fn given_under(&self) -> impl Iterator<Item = (&str, &str)> {
        let proofs = self.latest.iter();
        proofs.map(|proof| (proof.machine().as_str(), proof.scope().as_str()))
    }

    /// A list that began at this moment agrees with the cluster. The first one since the first proof counts.
    pub fn confirm_by_list(&mut self, list_began: Instant) {
        if list_began >= self.first {
            self.listed.get_or_insert(list_began);
        }
    }

    /// When the instance was first not found.
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// How many there are.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The last one.
    pub fn latest(&self) -> Option<&GoneProof> {
        self.latest.first()
    }

    /// How long to wait for the next proof; `None` if there are enough. `longest_gap` is how long a live kubelet may
    /// go without a heartbeat.
    fn enough_after(
        &self,
        caution: &Caution,
        longest_gap: Duration,
        now: Instant,
    ) -> Option<Duration> {
        // The less often kubelets send heartbeats, the longer it takes.
        let longer = longest_gap.as_secs_f64() / Self::USUAL_GAP.as_secs_f64();
        let over = caution.over.mul_f64(longer.max(1.0));
        let left_of = |from: Instant, to: Instant| {
            let span = to.saturating_duration_since(from);
            over.saturating_sub(span)
        };
        let listed = self.listed.map_or(over, |began| left_of(began, now));
        let left = left_of(self.first, self.last).max(listed);
        if self.count >= caution.proofs && left.is_zero() && self.listed.is_some() {
            return None;
        }
        let apart = over / caution.proofs.saturating_sub(1).max(1);
        Some(left.min(apart).max(Duration::from_secs(1)))
    }
}

/// What to do with a Node whose instance is proven gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Delete it, if the limiter allows.
    Delete {
        /// Whether the operator wants it deleted now, without the limiter.
        now: bool,
    },
    /// Check again after this long.
    CheckAgain {
        /// When.
        after: Duration,
    },
    /// Keep it, whatever the cloud says.
    Keep {
        /// Why.
        why: String,
    },
    /// The cloud is in doubt: nothing is deleted until it is not.
    Stop {
        /// Why.
        doubt: ScopeDoubt,
    },
}

/// What a decision depends on besides the Node and the proofs.
#[derive(Debug)]
pub struct DeletionContext<'a> {
    /// Whether the cloud is in doubt.
    pub scope: &'a Result<(), ScopeDoubt>,
    /// How careful to be.
    pub caution: &'a Caution,
    /// How long a live kubelet may go without a heartbeat.
    pub longest_gap: Duration,
    /// The wall clock.
    pub clock: Timestamp,
    /// The moment of the decision.
    pub now: Instant,
}

/// Decides about a Node whose instance is proven gone.
pub fn decide_deletion(
    node: &NodeView,
    proofs: &Proofs,
    context: &DeletionContext<'_>,
) -> Decision {
    let keep = |why: &str| Decision::Keep {
        why: why.to_owned(),
    };
    if node.readiness == Readiness::Ready {
        return keep("it is Ready");
    }
    if node.deleting {
        return keep("it is being deleted already");
    }
    if let Some(why) = paused_by(&node.facts.annotations) {
        return keep(&format!("it is {why}"));
    }
    match names::HOLD.get(&node.facts.annotations) {
        Ok(Some(false) | None) => {}
        // A value that cannot be read holds it too.
        Ok(Some(true)) if Bug::IgnoreHold.is_planted() => {}
        Ok(Some(true)) | Err(_) => return keep("it is held by annotation"),
    }
    let proven = proofs.latest().map(GoneProof::machine);
    if proven.is_none() || node.facts.provider_id.as_ref() != proven {
        return keep("its provider ID is not the one that was asked for");
    }
    if is_delete_now(node) {
        return Decision::Delete { now: true };
    }
    if let Err(doubt) = context.scope.clone() {
        return Decision::Stop { doubt };
    }
    if let Some(after) = left_of_grace(node, context.caution, context.clock) {
        return Decision::CheckAgain { after };
    }
    if let Some(after) = proofs.enough_after(context.caution, context.longest_gap, context.now) {
        return Decision::CheckAgain { after };
    }
    Decision::Delete { now: false }
}

/// Whether the operator wants a Node deleted as soon as its instance is proven gone.
pub(super) fn is_delete_now(node: &NodeView) -> bool {
    names::DELETE_NOW.get(&node.facts.annotations) == Ok(Some(true))
}

fn left_of_grace(node: &NodeView, caution: &Caution, now: Timestamp) -> Option<Duration> {
    if !node.has_taint(UNINITIALIZED_TAINT) {
        return None;
    }
    let created = node.facts.created?;
    let grace = SignedDuration::try_from(caution.grace).ok()?;
    let left = grace.checked_sub(now.duration_since(created))?;
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests;
