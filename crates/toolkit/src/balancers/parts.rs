//! Which listeners and targets of a balancer are the Service's, where other clients have theirs on it too. Pure.
//!
//! The annotation [`LB_OWN_PARTS`](names::LB_OWN_PARTS) of the Service says so. It is written before the cloud is asked to
//! add anything, so a new leader finds in it whatever an earlier one may have added. What is not in it is another client's.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use cloudkeel_api::{BalancerRef, Busy, CloudError, Failures, ServiceChanges, names};
use serde::{Deserialize, Serialize};

use super::{ListenerKey, ShareableBalancer};

/// How soon to go on when the Service's parts have been written down.
const AFTER_RECORDING: Duration = Duration::from_millis(100);

/// Listeners and targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Parts {
    listeners: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl Parts {
    /// These, as the cloud names them.
    pub(super) fn of<T: Display>(
        listeners: impl IntoIterator<Item = ListenerKey>,
        targets: impl IntoIterator<Item = T>,
    ) -> Self {
        let listeners = listeners.into_iter().map(|key| key.to_string());
        let targets = targets.into_iter().map(|target| target.to_string());
        Self {
            listeners: listeners.collect(),
            targets: targets.collect(),
        }
    }

    /// All that a balancer has.
    pub(super) fn of_balancer<B: ShareableBalancer>(balancer: &B) -> Self {
        Self::of(balancer.listener_keys(), balancer.targets())
    }
}

/// What the annotation says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record {
    /// The ID of the balancer: of another one it says nothing.
    balancer: String,
    /// Whether the balancer itself is another client's.
    is_adopted: bool,
    listeners: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl Record {
    fn contains(&self, other: &Self) -> bool {
        self.listeners.is_superset(&other.listeners) && self.targets.is_superset(&other.targets)
    }
}

/// Whose the parts of a shared balancer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedParts {
    recorded: Option<Record>,
    own: Record,
    /// Listeners of other clients on ports of the Service.
    taken: Vec<String>,
    /// Whether parts of other clients are on the balancer.
    has_foreign: bool,
}

/// Takes the record off a Service whose balancer is its own as a whole.
pub(super) fn forget_parts(balancer_ref: &BalancerRef, changes: &mut ServiceChanges) {
    let key = names::LB_OWN_PARTS.name();
    if balancer_ref.annotations.contains_key(key) {
        changes.annotations.insert(key.to_owned(), None);
    }
}

impl SharedParts {
    /// Of a balancer that is the Service's, or is about to be if it `is_adopted`. What the Service asks for and is not there
    /// will be its own; without a record, what it asks for and is there is its own too, unless the balancer is adopted.
    pub(super) fn of(
        balancer_ref: &BalancerRef,
        id: &str,
        is_adopted: bool,
        want: &Parts,
        have: &Parts,
    ) -> Result<Self, CloudError> {
        let recorded = read(balancer_ref, id)?;
        let known = recorded.clone().unwrap_or_else(|| Record {
            balancer: id.to_owned(),
            is_adopted,
            listeners: common(&want.listeners, &have.listeners, is_adopted),
            targets: common(&want.targets, &have.targets, is_adopted),
        });
        let own = Record {
            listeners: own(&known.listeners, &want.listeners, &have.listeners),
            targets: own(&known.targets, &want.targets, &have.targets),
            ..known
        };
        let taken = want.listeners.intersection(&have.listeners);
        let taken = taken.filter(|key| !own.listeners.contains(*key));
        Ok(Self {
            taken: taken.cloned().collect(),
            has_foreign: has_foreign(&own, have),
            recorded,
            own,
        })
    }

    /// Of a balancer whose Service goes: only what is on record is the Service's.
    pub(super) fn of_leaving(balancer_ref: &BalancerRef, id: &str, have: &Parts) -> Self {
        let recorded = read(balancer_ref, id).ok().flatten();
        let own = recorded.clone().unwrap_or_else(|| Record {
            is_adopted: true,
            ..Record::default()
        });
        Self {
            taken: Vec::new(),
            has_foreign: has_foreign(&own, have),
            recorded,
            own,
        }
    }

    /// Whether a listener is another client's.
    pub(super) fn is_foreign_listener(&self, key: ListenerKey) -> bool {
        !self.own.listeners.contains(&key.to_string())
    }

    /// Whether a target is another client's.
    pub(super) fn is_foreign_target(&self, target: &impl Display) -> bool {
        !self.own.targets.contains(&target.to_string())
    }

    /// Whether the balancer goes with its Service: it was made for it, and other clients have nothing on it.
    pub(super) const fn is_deleted(&self) -> bool {
        !self.own.is_adopted && !self.has_foreign
    }

    /// Waits for the record, unless it covers everything that will be added.
    pub(super) fn busy(&self) -> Option<Busy> {
        let recorded = self.recorded.as_ref();
        let is_recorded = recorded.is_some_and(|recorded| recorded.contains(&self.own));
        (!is_recorded).then(|| Busy {
            why: format!(
                "which listeners and targets of load balancer {} are the Service's is being written down",
                self.own.balancer
            ),
            check_after: AFTER_RECORDING,
        })
    }

    /// Asks for the record, if it says something else.
    pub(super) fn record(&self, changes: &mut ServiceChanges) {
        if self.recorded.as_ref() != Some(&self.own)
            && let Ok(text) = serde_json::to_string(&self.own)
        {
            changes.annotate(names::LB_OWN_PARTS.name(), text);
        }
    }

    /// Ports of the Service on which another client listens.
    pub(super) fn unmet(&self) -> Option<Failures> {
        let (id, exclusive) = (&self.own.balancer, names::LB_EXCLUSIVE.name());
        (!self.taken.is_empty()).then(|| {
            let ports = self.taken.join(", ");
            Failures::invalid(format!(
                "load balancer {id} has listeners of another client on {ports}, which are left alone because of {exclusive}: \
                 remove them, or give the Service other ports"
            ))
        })
    }
}

/// What the annotation says of this balancer.
fn read(balancer_ref: &BalancerRef, id: &str) -> Result<Option<Record>, CloudError> {
    let key = names::LB_OWN_PARTS.name();
    let Some(text) = balancer_ref.annotations.get(key) else {
        return Ok(None);
    };
    let record: Record = serde_json::from_str(text).map_err(|error| {
        let message = format!(
            "{key} is not as cloudkeel wrote it ({error}): restore it, or remove it, and then all listeners and targets that the \
             Service asks for count as its own"
        );
        CloudError::invalid("observe load balancer", message)
    })?;
    Ok(Some(record).filter(|record| record.balancer == id))
}

fn common(want: &BTreeSet<String>, have: &BTreeSet<String>, is_adopted: bool) -> BTreeSet<String> {
    let common = want.intersection(have).filter(|_| !is_adopted);
    common.cloned().collect()
}

/// What is known to be the Service's and is there or asked for, and what is asked for and not there.
fn own(
    known: &BTreeSet<String>,
    want: &BTreeSet<String>,
    have: &BTreeSet<String>,
) -> BTreeSet<String> {
    let still = known
        .iter()
        .filter(|part| want.contains(*part) || have.contains(*part));
    still.chain(want.difference(have)).cloned().collect()
}

fn has_foreign(own: &Record, have: &Parts) -> bool {
    !own.listeners.is_superset(&have.listeners) || !own.targets.is_superset(&have.targets)
}

#[cfg(test)]
mod tests;
