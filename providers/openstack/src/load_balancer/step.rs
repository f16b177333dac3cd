//! What can be done to a load balancer, as data: one call each.

use std::fmt;

use cloudkeel_api::StepAction;
use serde::Serialize;
use serde_json::Value;

use crate::wire::network::NewFloatingIp;

/// One call that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// What it is about.
    pub(super) part: Part,
    pub(super) call: Call,
    /// What it does, for people.
    pub(super) text: String,
}

/// The call itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// Creates one with this body.
    Create { kind: Kind, body: Value },
    /// Changes one, unless another client did since.
    Update {
        kind: Kind,
        id: String,
        revision: Option<u64>,
        body: Value,
    },
    /// Replaces all members of a pool.
    SetMembers { pool: String, members: Value },
    /// Adds one member to a pool.
    AddMember { pool: String, member: Value },
    /// Changes one member of a pool.
    UpdateMember {
        pool: String,
        member: String,
        body: Value,
    },
    /// Removes one member from a pool.
    RemoveMember { pool: String, member: String },
    /// Creates a floating IP: the first of these that can be had.
    CreateFloatingIp(Vec<NewFloatingIp>),
    /// Deletes one.
    Delete { kind: Kind, id: String },
    /// Deletes a load balancer with all its parts.
    DeleteCascade { id: String },
    /// Deletes a load balancer that could not be built, so that it is built again.
    DeleteFailed { id: String },
}

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Balancer,
    Listener,
    Pool,
    Monitor,
    FloatingIp,
    SecurityGroup,
    Rule,
    Port,
}

/// What a step is about, for what must not be done if another step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The load balancer itself: it is there, and it is the Service's.
    Balancer,
    /// The listener of this port, and what is behind it.
    Listener(u16),
    /// The floating IP.
    FloatingIp,
    /// The security group.
    SecurityGroup,
    /// The end of the load balancer.
    End,
}

impl Step {
    pub(super) fn new(part: Part, call: Call, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { part, call, text }
    }

    pub(super) fn create(
        part: Part,
        kind: Kind,
        body: &impl Serialize,
        text: impl Into<String>,
    ) -> Self {
        let body = cloudkeel_toolkit::json::body(body);
        Self::new(part, Call::Create { kind, body }, text)
    }

    pub(super) fn update(
        part: Part,
        kind: Kind,
        id: &str,
        body: &impl Serialize,
        text: impl Into<String>,
    ) -> Self {
        let call = Call::Update {
            kind,
            id: id.to_owned(),
            revision: None,
            body: cloudkeel_toolkit::json::whole(body),
        };
        Self::new(part, call, text)
    }

    pub(super) fn delete(part: Part, kind: Kind, id: &str, text: impl Into<String>) -> Self {
        let id = id.to_owned();
        Self::new(part, Call::Delete { kind, id }, text)
    }

    /// Whether the load balancer takes no other change until this one is over.
    pub(super) const fn locks_balancer(&self) -> bool {
        match &self.call {
            Call::Create { kind, .. } | Call::Update { kind, .. } | Call::Delete { kind, .. } => {
                matches!(
                    kind,
                    Kind::Balancer | Kind::Listener | Kind::Pool | Kind::Monitor
                )
            }
            Call::CreateFloatingIp(_) => false,
            Call::SetMembers { .. }
            | Call::AddMember { .. }
            | Call::UpdateMember { .. }
            | Call::RemoveMember { .. }
            | Call::DeleteCascade { .. }
            | Call::DeleteFailed { .. } => true,
        }
    }
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> StepAction {
        match self.call {
            Call::Create { .. } | Call::AddMember { .. } | Call::CreateFloatingIp(_) => {
                StepAction::Create
            }
            Call::Update { .. } | Call::SetMembers { .. } | Call::UpdateMember { .. } => {
                StepAction::Change
            }
            Call::Delete { .. }
            | Call::DeleteCascade { .. }
            | Call::DeleteFailed { .. }
            | Call::RemoveMember { .. } => StepAction::Delete,
        }
    }

    fn depends_on(&self, failed: &Self) -> bool {
        match (self.part, failed.part) {
            // What is not there or not ours is not changed; a floating IP that stays behind would belong to nothing;
            // a group is made, filled and attached in this order.
            (Part::Balancer | Part::Listener(_) | Part::End, Part::Balancer)
            | (Part::End, Part::FloatingIp | Part::Listener(_))
            | (Part::SecurityGroup, Part::SecurityGroup) => true,
            // The parts of a listener are made in their order.
            (Part::Listener(one), Part::Listener(other)) => one == other,
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
