//! What can be done to a load balancer, as data.

use std::fmt;

use crate::wire::BalancerRequest;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates a load balancer, complete.
    Create(Box<BalancerRequest>),
    /// Puts the tags of its owner and of the cluster on a load balancer that lacks them.
    Adopt { id: String, tags: Vec<String> },
    /// Makes one change, which takes the whole of it.
    Replace {
        id: String,
        request: Box<BalancerRequest>,
        change: Change,
    },
    /// Takes our owner tag off a load balancer, which stays.
    Release { id: String, tag: String },
    /// Deletes a load balancer.
    Delete { id: String },
    /// Deletes the owner tag of a load balancer that is gone.
    DeleteTag { tag: String },
}

/// What a load balancer that replaces another one has of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its droplets, and nothing else.
    Targets { added: usize, removed: usize },
    /// Everything else: what differs.
    Settings(Vec<&'static str>),
    /// Its size, which the API takes only once an hour.
    Units(u32),
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
                let new = &new.settings;
                let (kind, name, ports) = (&new.kind, &new.name, new.forwarding_rules.len());
                let with = format!("{ports} ports and {} droplets", new.droplet_ids.len());
                write!(f, "create {kind} load balancer {name} with {with}")
            }
            Self::Adopt { id, .. } => write!(f, "adopt load balancer {id}"),
            Self::Replace { id, change, .. } => match change {
                Change::Targets { added, removed } => {
                    let what = format!("add {added} and remove {removed} droplets");
                    write!(f, "{what} at load balancer {id}")
                }
                Change::Settings(fields) => {
                    write!(f, "change {} of load balancer {id}", fields.join(", "))
                }
                Change::Units(units) => write!(f, "resize load balancer {id} to {units} nodes"),
            },
            Self::Release { id, .. } => write!(f, "release load balancer {id}"),
            Self::Delete { id } => write!(f, "delete load balancer {id}"),
            Self::DeleteTag { tag } => write!(f, "delete tag {tag}"),
        }
    }
}
