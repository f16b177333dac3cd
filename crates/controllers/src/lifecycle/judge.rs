//! May this Node be deleted? Pure: from what is known to a decision that says why.

use std::time::Duration;

use cloudkeel_api::{GoneProof, names};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::scope::ScopeDoubt;
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
    /// From the first to the last of them at least this long.
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

/// The proofs for one Node, in a row. Any other answer ends the row.
#[derive(Debug, Clone)]
pub struct Proofs {
    first: Instant,
    last: Instant,
    count: u32,
    latest: GoneProof,
}

impl Proofs {
    /// The first of a row.
    pub const fn begin(proof: GoneProof, now: Instant) -> Self {
        Self {
            first: now,
            last: now,
            count: 1,
            latest: proof,
        }
    }

    /// One more. A proof for another machine begins a new row.
    #[must_use]
    pub fn and(self, proof: GoneProof, now: Instant) -> Self {
        if self.latest.machine() != proof.machine() {
            return Self::begin(proof, now);
        }
        Self {
            last: now,
            count: self.count.saturating_add(1),
            latest: proof,
            ..self
        }
    }

    /// When the first one was given.
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// The last one.
    pub const fn latest(&self) -> &GoneProof {
        &self.latest
    }

    fn enough_after(&self, caution: &Caution) -> Option<Duration> {
        let span = self.last.saturating_duration_since(self.first);
        let missing = caution.over.saturating_sub(span);
        (self.count < caution.proofs || !missing.is_zero())
            .then(|| missing.max(Duration::from_secs(1)))
    }
}

/// What to do with a Node whose machine is proven gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Delete it, if the pace allows. `hurried` is a person's word in place of the pace.
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
    /// The picture makes no sense: nothing is deleted until it does.
    Halt {
        /// Why.
        doubt: ScopeDoubt,
    },
}

/// Decides about a Node, as it was just read, whose machine is proven gone.
pub fn decide(
    node: &NodeView,
    proofs: &Proofs,
    scope: &Result<(), ScopeDoubt>,
    caution: &Caution,
    now: Timestamp,
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
    match names::HOLD.get(&node.facts.annotations) {
        Ok(Some(false) | None) => {}
        // A value that cannot be read is taken as a wish to hold: the safe reading.
        Ok(Some(true)) if Bug::IgnoreHold.is_planted() => {}
        Ok(Some(true)) | Err(_) => return keep("it is held by annotation"),
    }
    if node.facts.provider_id.as_ref() != Some(proofs.latest().machine()) {
        return keep("its provider ID is not the one that was asked for");
    }
    let hurried = matches!(
        names::DELETE_NOW.get(&node.facts.annotations),
        Ok(Some(true))
    );
    if hurried {
        return Decision::Delete { hurried };
    }
    if let Err(doubt) = scope {
        return Decision::Halt {
            doubt: doubt.clone(),
        };
    }
    if let Some(after) = left_of_grace(node, caution, now) {
        let why = "it is too new: clouds show new machines late".to_owned();
        return Decision::AskAgain { after, why };
    }
    if let Some(after) = proofs.enough_after(caution) {
        let why = format!("{} of {} proofs so far", proofs.count, caution.proofs);
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
