//! Instances: the domain type, the list, and the capability.

mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    CloudError, Doubt, Existence, KnownInstance, NodeAddress, NodeFacts, Priority, ProviderId,
    Shared,
};

pub use list::{BlindSpot, InstanceList};

/// The power state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceState {
    /// It runs.
    Running,
    /// It is starting, stopping or moving; its Node is left as it is.
    Changing,
    /// It is stopped but exists: its Node gets the shutdown taint and is kept.
    ShutDown,
    /// A list does not show it; a lookup may.
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

/// An instance as the cloud sees it, with everything that is written to its Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The ID that is written to the Node.
    pub id: ProviderId,
    /// The machine's name.
    pub name: String,
    /// Other names under which its Node may register, such as a private DNS name.
    pub aliases: BTreeSet<String>,
    /// The hardware UUID, if the cloud knows it.
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
    /// Additional labels, written at initialization and never over existing ones.
    pub labels: BTreeMap<String, String>,
    /// Why its Node cannot be initialized yet although it exists, such as an address that is still missing.
    pub not_ready: Option<String>,
    /// Whether this is only what a list shows cheaply: ID, names, UUID and state. The rest comes from
    /// [`describe`](Instances::describe).
    pub is_summary: bool,
}

impl Instance {
    /// An instance of which only ID and name are known.
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

    /// Whether a Node of this name could be this instance.
    pub fn answers_to(&self, node_name: &str) -> bool {
        self.name == node_name || self.aliases.contains(node_name)
    }
}

/// Which instance of a list belongs to a Node.
#[derive(Debug, PartialEq, Eq)]
pub enum Match<'a> {
    /// Exactly this one.
    One(&'a Instance),
    /// None in the list.
    None,
    /// Several: nothing may be done until a user has resolved it.
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

    /// Why this is not exactly one instance, for a lookup by something else than an ID.
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

/// The instances of a cloud. List-first: one [`list`](Instances::list) serves initialization, lifecycle, addresses,
/// routes and targets; [`find`](Instances::find) is for suspects and single new Nodes.
///
/// All methods only read, so all are idempotent and may be repeated or dropped at any await.
#[async_trait]
pub trait Instances: Send + Sync {
    /// All instances of the scope, as they are after the call started, with everything that is written to a Node
    /// unless they are [summaries](Instance::is_summary). Nodes without an ID are matched by name in it, and an ID
    /// that is written once can never be changed: a provider that answers in part from an earlier list leaves that
    /// part out of [`identify`](Self::identify).
    ///
    /// Terminated instances are left out. A page that is missing or shorter than reported is
    /// [`Incomplete`](crate::ErrorKind::Incomplete), never a short list. If the scope has several parts and only
    /// some answer, the rest are [blind spots](InstanceList::with_blind_spots); if none answers, it is an error. An
    /// empty scope is an empty list.
    async fn list(&self) -> Result<InstanceList, CloudError>;

    /// Whether the instance of this Node exists, and its current state.
    ///
    /// With a provider ID: looks up that very ID, and returns `Gone` only with proof, for which `known instance`
    /// shows that the credential still sees something. Without one: looks for the one instance that matches; none or
    /// several is `Unknown`, because a name proves nothing.
    ///
    /// There is no `Err`: a cloud that cannot answer is `Unknown` with the error inside.
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence;

    /// The same for several Nodes, in their order. Override where the cloud can look up many IDs in one call.
    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        known_instance: Option<&KnownInstance>,
    ) -> Vec<Existence> {
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            answers.push(self.find(node, known_instance).await);
        }
        answers
    }

    /// Completes instances that a list showed as summaries, in as few calls as the cloud allows: the ports, flavors,
    /// network interfaces or tags of those that belong to Nodes. One result each, in their order; an instance that
    /// is gone meanwhile is [`NotFound`](crate::ErrorKind::NotFound), which proves nothing. By default they are
    /// complete as they are.
    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let _ = priority;
        instances.into_iter().map(Ok).collect()
    }

    /// Which instance of a list belongs to a Node. Pure. By default matched by its provider ID, else by its name.
    ///
    /// Override where Nodes register under other names, or IDs have several spellings.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        match &node.provider_id {
            Some(id) => list.get(id).map_or(Match::None, Match::One),
            None => Match::of(list.named(&node.name)),
        }
    }

    /// The addresses that this Node gets from its instance. Pure. By default the instance's own.
    ///
    /// Override where the cloud does not know all of them and the Node's own must be kept, as with the private
    /// addresses of dedicated servers.
    fn addresses(&self, instance: &Instance, _node: &NodeFacts) -> Vec<NodeAddress> {
        instance.addresses.clone()
    }
}

#[cfg(test)]
mod tests;
