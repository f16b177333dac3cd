//! What can be done to a load balancer, as data.

use std::fmt;

use crate::wire::{BalancerRequest, BalancerSettings};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates a load balancer, complete.
    Create(Box<BalancerRequest>),
    /// Puts the tags of its owner and of the cluster on a load balancer that lacks them.
    Adopt { id: String, tags: Vec<String> },
    /// Changes its droplets, and nothing else.
    SetTargets {
        id: String,
        request: Box<BalancerRequest>,
        added: usize,
        removed: usize,
    },
    /// Changes everything else.
    Change {
        id: String,
        request: Box<BalancerRequest>,
        /// What differs.
        fields: Vec<&'static str>,
    },
    /// Changes its size, which the API takes only once an hour.
    Resize {
        id: String,
        request: Box<BalancerRequest>,
        units: u32,
    },
    /// Takes our owner tag off a load balancer, which stays.
    Release { id: String, tag: String },
    /// Deletes a load balancer.
    Delete { id: String },
    /// Deletes the owner tag of a load balancer that is gone.
    DeleteTag { tag: String },
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> cloudkeel_api::StepAction {
        match self {
            Self::Create(_) => cloudkeel_api::StepAction::Create,
            Self::Delete { .. } | Self::DeleteTag { .. } => cloudkeel_api::StepAction::Delete,
            _ => cloudkeel_api::StepAction::Change,
        }
    }

    /// Nothing is done to a load balancer that could not be made ours, and a tag outlives its load balancer. Otherwise
    /// each call stands for itself.
    fn depends_on(&self, failed: &Self) -> bool {
        match failed {
            Self::Create(_) | Self::Adopt { .. } => true,
            Self::Delete { .. } => matches!(self, Self::DeleteTag { .. }),
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(new) => {
                let BalancerSettings { kind, name, .. } = &new.settings;
                let ports = new.settings.forwarding_rules.len();
                let droplets = new.settings.droplet_ids.len();
                write!(
                    f,
                    "create {kind} load balancer {name} with {ports} ports and {droplets} droplets"
                )
            }
            Self::Adopt { id, .. } => write!(f, "adopt load balancer {id}"),
            Self::SetTargets {
                id, added, removed, ..
            } => write!(
                f,
                "add {added} and remove {removed} droplets at load balancer {id}"
            ),
            Self::Change { id, fields, .. } => {
                write!(f, "change {} of load balancer {id}", fields.join(", "))
            }
            Self::Resize { id, units, .. } => {
                write!(f, "resize load balancer {id} to {units} nodes")
            }
            Self::Release { id, .. } => write!(f, "release load balancer {id}"),
            Self::Delete { id } => write!(f, "delete load balancer {id}"),
            Self::DeleteTag { tag } => write!(f, "delete tag {tag}"),
        }
    }
}
