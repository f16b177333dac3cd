//! What can be done to a load balancer, as data.

use std::fmt;

use cloudkeel_toolkit::TagStep;

use crate::wire::BalancerRequest;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates a load balancer, complete.
    Create(Box<BalancerRequest>),
    /// Makes one change, which takes the whole of it.
    Replace {
        id: String,
        request: Box<BalancerRequest>,
        /// The change, for people.
        words: String,
    },
    /// Deletes a load balancer.
    Delete { id: String },
    /// Does something about tags.
    Tag(TagStep),
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> cloudkeel_api::StepAction {
        match self {
            Self::Create(_) => cloudkeel_api::StepAction::Create,
            Self::Delete { .. } => cloudkeel_api::StepAction::Delete,
            Self::Tag(step) => step.action(),
            Self::Replace { .. } => cloudkeel_api::StepAction::Change,
        }
    }

    /// Nothing is done to a load balancer that could not be made ours, and a tag outlives its load balancer. Otherwise
    /// each call stands for itself.
    fn depends_on(&self, failed: &Self) -> bool {
        match failed {
            Self::Create(_) | Self::Tag(TagStep::Adopt { .. } | TagStep::Share { .. }) => true,
            Self::Delete { .. } => matches!(self, Self::Tag(TagStep::Delete { .. })),
            // It is released without what was the Service's.
            _ => matches!(self, Self::Tag(TagStep::Release { .. })),
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
            Self::Replace { words, .. } => f.write_str(words),
            Self::Delete { id } => write!(f, "delete load balancer {id}"),
            Self::Tag(step) => step.fmt(f),
        }
    }
}
