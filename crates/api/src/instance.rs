//! Machines: the domain type, the sweep, and the capability.

mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    CloudError, Doubt, Existence, NodeAddress, NodeFacts, Priority, ProviderId, Shared, Sighting,
};

pub use sweep::{BlindSpot, Sweep};

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceState {
    /// It runs.
    Running,
    /// It is on its way up, down or elsewhere; its Node is left as it is.
    Changing,
    /// It is switched off but exists: its Node gets the shutdown taint and is kept.
    ShutDown,
    /// A sweep could not tell; a look-up may.
    #[default]
    Unknown,
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Changing => "changing",
            Self::ShutDown => "shut down",
            Self::Unknown => "unknown",
        })
    }
}

/// A machine as the cloud sees it. All that a Node is given rides on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The ID that is written to the Node.
    pub id: ProviderId,
    /// The machine's name.
    pub name: String,
    /// Other names under which its Node may register, such as a private DNS name.
    pub aliases: BTreeSet<String>,
    /// The hardware UUID, where the cloud knows it.
    pub system_uuid: Option<String>,
    /// Whether it runs.
    pub state: InstanceState,
    /// For the instance-type label.
    pub instance_type: Option<String>,
    /// For the zone label.
    pub zone: Option<String>,
    /// For the region label.
    pub region: Option<String>,
    /// For the Node's status, in this order.
    pub addresses: Vec<NodeAddress>,
    /// Additional labels, written at initialisation and never over existing ones.
    pub labels: BTreeMap<String, String>,
    /// Why its Node cannot be initialised yet although it exists, such as an address that is still missing.
    pub not_ready: Option<String>,
    /// Whether this is only what a list shows cheaply: ID, names, UUID and state. The rest comes from
    /// [`describe`](Instances::describe).
    pub is_summary: bool,
}

impl Instance {
    /// A machine of which only ID and name are known.
    pub fn new(id: ProviderId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            aliases: BTreeSet::new(),
            system_uuid: None,
            state: InstanceState::default(),
            instance_type: None,
            zone: None,
            region: None,
            addresses: Vec::new(),
            labels: BTreeMap::new(),
            not_ready: None,
            is_summary: false,
        }
    }

    /// Whether a Node of this name could be this machine.
    pub fn answers_to(&self, node_name: &str) -> bool {
        self.name == node_name || self.aliases.contains(node_name)
    }
}

/// Which machine of a sweep belongs to a Node.
#[derive(Debug, PartialEq, Eq)]
pub enum Match<'a> {
    /// Exactly this one.
    One(&'a Instance),
    /// None that the sweep saw.
    None,
    /// Several: nothing may be done before a person has chosen.
    Many(Vec<&'a Instance>),
}

impl<'a> Match<'a> {
    /// None, one or many.
    pub fn of(found: Vec<&'a Instance>) -> Self {
        match found.as_slice() {
            [] => Self::None,
            [one] => Self::One(one),
            _ => Self::Many(found),
        }
    }

    /// Why this is not exactly one machine, for a look-up by something else than an ID.
    pub fn into_existence(self, looked_for: &str) -> Existence {
        let looked_for = looked_for.to_owned();
        match self {
            Self::One(instance) => Existence::present(instance.clone()),
            Self::None => Existence::Unknown(Doubt::NoMatch { looked_for }),
            Self::Many(found) => Existence::Unknown(Doubt::Ambiguous {
                looked_for,
                candidates: found.into_iter().map(|i| i.id.clone()).collect(),
            }),
        }
    }
}

/// The machines of a cloud. List-first: one [`sweep`](Instances::sweep) serves initialisation,
/// lifecycle, addresses, routes and targets; [`find`](Instances::find) is for suspects and
/// single newcomers.
///
/// All methods only read, so all are idempotent and may be repeated or dropped at any await.
#[async_trait]
pub trait Instances: Send + Sync {
    /// All machines of the scope, as they are after the call began, with everything that a Node is given unless they
    /// are [summaries](Instance::is_summary). Nodes
    /// without an ID are matched by name in it, and an ID that is written once can never be changed: a provider
    /// that answers in part from an earlier list leaves that part out of [`identify`](Self::identify).
    ///
    /// Terminated machines are left out. A page that is missing or shorter than announced is
    /// [`Incomplete`](crate::ErrorKind::Incomplete), never a short sweep. If the scope has several
    /// parts and only some answer, the rest are [blind spots](Sweep::with_blind_spots); if none
    /// answers, it is an error. An empty scope is an empty sweep.
    async fn sweep(&self) -> Result<Sweep, CloudError>;

    /// Whether the machine of this Node exists, and what it looks like now.
    ///
    /// With a provider ID: asks for that very ID, and answers `Gone` only with proof, for which
    /// `sighting` shows that the credential still sees something. Without one: looks for the one
    /// machine that matches; none or several is `Unknown`, because a name proves nothing.
    ///
    /// There is no `Err`: a cloud that cannot answer is `Unknown` with the error inside.
    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence;

    /// The same for several Nodes, in their order. Override where the cloud can answer for many
    /// IDs in one call.
    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        sighting: Option<&Sighting>,
    ) -> Vec<Existence> {
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            answers.push(self.find(node, sighting).await);
        }
        answers
    }

    /// Completes machines that a list showed as summaries, in as few calls as the cloud allows: the ports, flavors,
    /// network interfaces or tags of those that belong to Nodes. One answer each, in their order; a machine that
    /// is gone meanwhile is [`NotFound`](crate::ErrorKind::NotFound), which proves nothing. By default they
    /// are complete as they are.
    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let _ = priority;
        instances.into_iter().map(Ok).collect()
    }

    /// Which machine of a sweep belongs to a Node. Pure. By default its provider ID, else its name.
    ///
    /// Override where Nodes register under other names, or IDs are spelled in several ways.
    fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
        match &node.provider_id {
            Some(id) => sweep.get(id).map_or(Match::None, Match::One),
            None => Match::of(sweep.named(&node.name)),
        }
    }

    /// The addresses that this Node gets from its machine. Pure. By default the machine's own.
    ///
    /// Override where the cloud does not know all of them and the Node's own must be kept, as
    /// with the private addresses of dedicated servers.
    fn addresses(&self, instance: &Instance, _node: &NodeFacts) -> Vec<NodeAddress> {
        instance.addresses.clone()
    }
}

#[cfg(test)]
mod tests;
