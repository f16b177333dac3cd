//! What can be done to a balancer, as data.

use std::fmt;

use cloudkeel_api::StepAction;
use cloudkeel_toolkit::Labels;

use crate::wire::{Balancer, BalancerPatch, Listener, NewBalancer, TargetAt, TargetChange};

/// One call that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates a balancer, complete.
    Create(Box<NewBalancer>),
    /// Does something to one.
    Change {
        /// Which.
        id: u64,
        /// The version that the plan was made for.
        version: u64,
        /// What is done.
        change: Change,
    },
}

/// What is done to a balancer that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Our owner labels are added to one without an owner. These are all its labels, ours among them.
    Adopt(Labels),
    /// What is not listeners and targets is changed.
    Patch(Box<BalancerPatch>),
    /// All listeners are replaced.
    Listeners(Vec<Listener>),
    /// Targets are added, drained and removed in one go.
    Targets(TargetChange),
    /// Our owner labels are taken off, and it stays. These are the others.
    Release(Labels),
    /// It is deleted.
    Delete,
}

impl Change {
    /// Does this to a balancer as it is now.
    pub(super) const fn of(self, balancer: &Balancer) -> Step {
        Step::Change {
            id: balancer.id,
            version: balancer.version,
            change: self,
        }
    }
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> StepAction {
        match self {
            Self::Create(_) => StepAction::Create,
            Self::Change {
                change: Change::Delete,
                ..
            } => StepAction::Delete,
            Self::Change { .. } => StepAction::Change,
        }
    }

    /// Nothing is done to a balancer that could not be made ours, and it is released without what was ours. Otherwise each
    /// call stands for itself.
    fn depends_on(&self, failed: &Self) -> bool {
        match (self, failed) {
            (_, Self::Create(_)) => true,
            (Self::Change { change: own, .. }, Self::Change { change: failed, .. }) => {
                matches!(own, Change::Release(_)) || matches!(failed, Change::Adopt(_))
            }
            (Self::Create(_), Self::Change { .. }) => false,
        }
    }

    /// Every write makes another version.
    fn repeats(&self, done: &Self) -> bool {
        let changes = |step: &Self| match step {
            Self::Create(_) => None,
            Self::Change { id, change, .. } => Some((*id, change.clone())),
        };
        self == done || changes(self).is_some_and(|own| Some(own) == changes(done))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, change) = match self {
            Self::Create(new) => {
                let (listeners, targets) = (new.listeners.len(), new.targets.len());
                let name = &new.name;
                return write!(
                    f,
                    "create balancer {name} with {listeners} listeners and {targets} targets"
                );
            }
            Self::Change { id, change, .. } => (id, change),
        };
        match change {
            Change::Adopt(_) => write!(f, "adopt balancer {id}"),
            Change::Patch(patch) => {
                write!(f, "change {} of balancer {id}", changed(patch).join(", "))
            }
            Change::Listeners(listeners) => {
                let ports = listeners.iter();
                let ports = ports.map(|l| format!("{}/{}", l.port, l.protocol));
                let ports: Vec<_> = ports.collect();
                write!(f, "set listeners of balancer {id} to {}", ports.join(", "))
            }
            Change::Targets(change) => {
                let parts = [
                    part("add", &change.add),
                    part("drain", &change.drain),
                    part("remove", &change.remove),
                ];
                let parts: Vec<_> = parts.into_iter().flatten().collect();
                write!(f, "{} at balancer {id}", parts.join(", "))
            }
            Change::Release(_) => write!(f, "release balancer {id}"),
            Change::Delete => write!(f, "delete balancer {id}"),
        }
    }
}

fn changed(patch: &BalancerPatch) -> Vec<&'static str> {
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
