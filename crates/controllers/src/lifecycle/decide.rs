//! May this Node be deleted? Pure: from what is known to a decision that says why.

use std::time::Duration;

use cloudkeel_api::{GoneProof, names};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::doubt::ScopeDoubt;
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};
use crate::wellknown::UNINITIALIZED_TAINT;

/// How careful deletions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    /// A Node that was never initialised is left alone until it is this old: clouds show new machines
    /// late. One that was initialised has been seen by its cloud before.
    pub grace: Duration,
    /// So many proofs in a row are needed.
    pub proofs: u32,
    /// From the first to the last of them at least this long. A live kubelet is heard three times in
    /// half a minute.
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

/// The proofs for one Node, in a row, and what they were given under. Any other answer ends the row.
#[derive(Debug, Clone)]
pub struct Proofs {
    first: Instant,
    last: Instant,
    count: u32,
    /// The last one of each cloud that was asked.
    latest: Vec<GoneProof>,
    /// How often the providers had been replaced, as new credentials do, when the row began.
    replacements: u64,
    /// When the list began that this row is judged by: the first one since the row began.
    listed: Option<Instant>,
}

impl Proofs {
    /// A proof this long after the one before begins a new row. Nodes may wait for minutes for their turn.
    const LONGEST_GAP: Duration = Duration::from_mins(10);

    /// How long a kubelet with the usual lease may go unheard: it is heard three times meanwhile.
    const USUAL_SILENCE: Duration = Duration::from_secs(30);

    /// The first of a row, from every cloud that was asked, for a machine that was first not found at
    /// `noticed`.
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

    /// One more. A proof for another machine, or given under another fingerprint or provider, begins a
    /// new row.
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

    /// The row is judged by a list that began at this moment, unless it has one already or the list is
    /// older than the row.
    pub fn judge_by(&mut self, list_began: Instant) {
        if list_began >= self.first {
            self.listed.get_or_insert(list_began);
        }
    }

    /// When the machine was first not found.
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// The last one.
    pub fn latest(&self) -> Option<&GoneProof> {
        self.latest.first()
    }

    /// How long to wait for the next proof; `None` if there are enough. `silence` is how long a kubelet
    /// that lives may go unheard.
    fn enough_after(&self, caution: &Caution, silence: Duration, now: Instant) -> Option<Duration> {
        // The less often kubelets are heard, the longer it takes.
        let longer = silence.as_secs_f64() / Self::USUAL_SILENCE.as_secs_f64();
        let over = caution.over.mul_f64(longer.max(1.0));
        let left_of = |from: Instant, to: Instant| {
            let span = to.saturating_duration_since(from);
            over.saturating_sub(span)
        };
        let listened = self.listed.map_or(over, |began| left_of(began, now));
        let left = left_of(self.first, self.last).max(listened);
        if self.count >= caution.proofs && left.is_zero() && self.listed.is_some() {
            return None;
        }
        let apart = over / caution.proofs.saturating_sub(1).max(1);
        Some(left.min(apart).max(Duration::from_secs(1)))
    }
}

/// What to do with a Node whose machine is proven gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Delete it, if the limiter allows. `hurried` is a person's word in place of the limiter.
    Delete {
        /// A person asked for it.
        hurried: bool,
    },
    /// Ask again after this long.
    AskAgain {
        /// When.
        after: Duration,
        /// Why not yet, for people.
        why: String,
    },
    /// Leave it alone, whatever the cloud says.
    Keep {
        /// Why, for people.
        why: String,
    },
    /// The list does not agree with the cluster: nothing is deleted until it does.
    Halt {
        /// Why.
        doubt: ScopeDoubt,
    },
}

/// Everything besides the Node and the proofs that a decision rests on.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// Whether the credential can be trusted.
    pub scope: &'a Result<(), ScopeDoubt>,
    /// How careful to be.
    pub caution: &'a Caution,
    /// How long a kubelet that lives may go unheard.
    pub silence: Duration,
    /// The wall clock.
    pub clock: Timestamp,
    /// The moment of the decision.
    pub now: Instant,
}

/// Decides about a Node, as it was just read, whose machine is proven gone.
pub fn decide_deletion(node: &NodeView, proofs: &Proofs, with: &Circumstances<'_>) -> Decision {
    let keep = |why: &str| Decision::Keep {
        why: why.to_owned(),
    };
    if node.readiness == Readiness::Ready {
        return keep("it is Ready");
    }
    if node.deleting {
        return keep("it is being deleted already");
    }
    match names::HOLD.get(&node.facts.annotations) {
        Ok(Some(false) | None) => {}
        // A value that cannot be read is taken as a wish to hold: the safe reading.
        Ok(Some(true)) if Bug::IgnoreHold.is_planted() => {}
        Ok(Some(true)) | Err(_) => return keep("it is held by annotation"),
    }
    let proven = proofs.latest().map(GoneProof::machine);
    if proven.is_none() || node.facts.provider_id.as_ref() != proven {
        return keep("its provider ID is not the one that was asked for");
    }
    let hurried = matches!(
        names::DELETE_NOW.get(&node.facts.annotations),
        Ok(Some(true))
    );
    if hurried {
        return Decision::Delete { hurried };
    }
    if let Err(doubt) = with.scope {
        return Decision::Halt {
            doubt: doubt.clone(),
        };
    }
    if let Some(after) = left_of_grace(node, with.caution, with.clock) {
        let why = "it is too new: clouds show new machines late".to_owned();
        return Decision::AskAgain { after, why };
    }
    if let Some(after) = proofs.enough_after(with.caution, with.silence, with.now) {
        let why = format!("{} of {} proofs so far", proofs.count, with.caution.proofs);
        return Decision::AskAgain { after, why };
    }
    Decision::Delete { hurried }
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
