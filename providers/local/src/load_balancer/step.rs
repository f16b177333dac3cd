//! What can be done to a balancer, as data.

use std::collections::BTreeMap;
use std::fmt;

use cloudkeel_api::StepAction;

use crate::wire::{BalancerPatch, Listener, NewBalancer, TargetAt, TargetChange};

/// One call that changes something. `version` is the one that the plan was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates a balancer, complete.
    Create(Box<NewBalancer>),
    /// Adds our owner labels to a balancer without an owner.
    Adopt {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
        /// All its labels, ours among them.
        labels: BTreeMap<String, String>,
    },
    /// Changes what is not listeners and targets.
    Change {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
        /// What changes.
        patch: Box<BalancerPatch>,
    },
    /// Replaces all listeners.
    SetListeners {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
        /// All of them.
        listeners: Vec<Listener>,
    },
    /// Adds, drains and removes targets in one go.
    ChangeTargets {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
        /// Which targets.
        change: TargetChange,
    },
    /// Takes our owner labels off a balancer, which stays.
    Release {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
        /// The labels that stay.
        labels: BTreeMap<String, String>,
    },
    /// Deletes a balancer.
    Delete {
        /// Which.
        id: u64,
        /// At this version.
        version: u64,
    },
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> StepAction {
        match self {
            Self::Create(_) => StepAction::Create,
            Self::Delete { .. } => StepAction::Delete,
            _ => StepAction::Change,
        }
    }

    /// Nothing is done to a balancer that could not be made ours, and it is released without what was ours. Otherwise each call stands for itself.
    fn depends_on(&self, failed: &Self) -> bool {
        let is_released = matches!(self, Self::Release { .. });
        is_released || matches!(failed, Self::Create(_) | Self::Adopt { .. })
    }

    /// Every write makes another version.
    fn repeats(&self, done: &Self) -> bool {
        self.at_any_version() == done.at_any_version()
    }
}

impl Step {
    fn at_any_version(&self) -> Self {
        let mut step = self.clone();
        match &mut step {
            Self::Create(_) => {}
            Self::Adopt { version, .. }
            | Self::Change { version, .. }
            | Self::SetListeners { version, .. }
            | Self::ChangeTargets { version, .. }
            | Self::Release { version, .. }
            | Self::Delete { version, .. } => *version = 0,
        }
        step
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(new) => write!(
                f,
                "create balancer {} with {} listeners and {} targets",
                new.name,
                new.listeners.len(),
                new.targets.len()
            ),
            Self::Adopt { id, .. } => write!(f, "adopt balancer {id}"),
            Self::Change { id, patch, .. } => {
                write!(f, "change {} of balancer {id}", changed(patch).join(", "))
            }
            Self::SetListeners { id, listeners, .. } => {
                let ports = listeners
                    .iter()
                    .map(|l| format!("{}/{}", l.port, l.protocol));
                let ports: Vec<_> = ports.collect();
                write!(f, "set listeners of balancer {id} to {}", ports.join(", "))
            }
            Self::ChangeTargets { id, change, .. } => {
                let parts = [
                    part("add", &change.add),
                    part("drain", &change.drain),
                    part("remove", &change.remove),
                ];
                let parts: Vec<_> = parts.into_iter().flatten().collect();
                write!(f, "{} at balancer {id}", parts.join(", "))
            }
            Self::Release { id, .. } => {
                write!(f, "release balancer {id}")
            }
            Self::Delete { id, .. } => write!(f, "delete balancer {id}"),
        }
    }
}

pub(super) fn changed(patch: &BalancerPatch) -> Vec<&'static str> {
    let fields = [
        ("name", patch.name.is_some()),
        ("labels", patch.labels.is_some()),
        ("type", patch.kind.is_some()),
        ("internal", patch.internal.is_some()),
        ("families", patch.families.is_some()),
        ("address", patch.address.is_some()),
        ("hostname", patch.hostname.is_some()),
        ("algorithm", patch.algorithm.is_some()),
        ("PROXY protocol", patch.proxy_protocol.is_some()),
        ("source ranges", patch.source_ranges.is_some()),
        ("affinity", patch.affinity.is_some()),
        ("protection", patch.protected.is_some()),
    ];
    let changed = fields.into_iter().filter(|(_, changed)| *changed);
    changed.map(|(name, _)| name).collect()
}

/// `add targets machine 1, machine 2`, or how many if they are many.
fn part(verb: &str, targets: &[TargetAt]) -> Option<String> {
    match targets {
        [] => None,
        [_, _, _, _, ..] => Some(format!("{verb} {} targets", targets.len())),
        few => {
            let few: Vec<_> = few.iter().map(ToString::to_string).collect();
            Some(format!("{verb} {}", few.join(" and ")))
        }
    }
}
