//! What a provider implements: small functions that return what the cloud's API says.

use std::fmt::Display;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, Existence, Instance, InstanceList, Match, NodeAddress, NodeFacts, Priority,
    ProviderId, ScopeFingerprint,
};

use crate::HasId;

/// The instances of one scope: an account, a project, a region, a vCenter.
#[derive(Debug)]
pub struct Listed<T> {
    /// The scope that the answer is about, which may be another than before.
    pub scope: ScopeFingerprint,
    /// Everything in it, tombstones too.
    pub items: Vec<T>,
}

/// Why a look-up shows nothing.
#[derive(Debug)]
pub enum LookupError {
    /// The cloud refused or did not answer. Only [`NotFound`](cloudkeel_api::ErrorKind::NotFound) says that there is no such
    /// instance.
    Cloud(CloudError),
    /// The answer is about another scope than the one that the provider was built for.
    OtherScope(ScopeFingerprint),
}

impl From<CloudError> for LookupError {
    fn from(error: CloudError) -> Self {
        Self::Cloud(error)
    }
}

/// What a search for a Node without an ID has found.
#[derive(Debug)]
pub struct Search<T> {
    /// What was looked for, such as `the name "node-1"`.
    pub looked_for: String,
    /// Everything that matches.
    pub items: Vec<T>,
}

impl<T> Search<T> {
    /// A search by the Node's name.
    pub fn by_name(node: &NodeFacts, items: Vec<T>) -> Self {
        Self {
            looked_for: format!("the name {:?}", node.name),
            items,
        }
    }
}

/// The small functions of a cloud from which [`ProvenInstances`](crate::ProvenInstances) answers everything. They report what the cloud
/// says and weigh nothing.
#[async_trait]
pub trait InstanceSource: Send + Sync + 'static {
    /// What the cloud looks instances up by.
    type Id: Clone + Ord + Display + Send + Sync;
    /// An instance as the cloud shows it.
    type Item: HasId<Id = Self::Id> + Clone + Send + Sync;

    /// The scope that the provider was built for.
    fn scope(&self) -> ScopeFingerprint;

    /// Reads a provider ID, in any form that was ever written. The error says why it is not one of this scope.
    fn parse_id(&self, id: &ProviderId) -> Result<Self::Id, String>;

    /// The instance as a Node sees it.
    fn instance(&self, item: &Self::Item) -> Instance;

    /// The cloud's word for a state from which there is no return, if the instance is only a tombstone.
    fn terminated(&self, item: &Self::Item) -> Option<String> {
        let _ = item;
        None
    }

    /// All instances. Complete, or an error.
    async fn list(&self) -> Result<Listed<Self::Item>, CloudError>;

    /// One instance by its ID.
    async fn get(&self, id: &Self::Id) -> Result<Self::Item, LookupError>;

    /// The instance of a Node by its ID: by default [`get`](Self::get). Override where an ID alone does not make an
    /// instance the Node's, or where calls are so few that a list of a moment ago has to do.
    ///
    /// [`NotFound`](cloudkeel_api::ErrorKind::NotFound) needs the same proof as the absence of an instance;
    /// [`NotOurs`](cloudkeel_api::ErrorKind::NotOurs) proves nothing.
    async fn get_for(&self, node: &NodeFacts, id: &Self::Id) -> Result<Self::Item, LookupError> {
        let _ = node;
        self.get(id).await
    }

    /// From how many look-ups on one list answers for the instances that are there.
    fn list_from(&self) -> usize {
        10
    }

    /// How many IDs one look-up takes; `None` if it takes only one.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Those of at most [`batch`](Self::batch) IDs that the cloud shows; an ID that it does not know is no error.
    async fn get_many(&self, ids: &[Self::Id]) -> Result<Vec<Self::Item>, LookupError> {
        let _ = ids;
        let message = "this cloud looks instances up one by one";
        Err(CloudError::unsupported("look up instances", message).into())
    }

    /// Looks for the instance of a Node without an ID. By default in a list, by name.
    async fn search(&self, node: &NodeFacts) -> Result<Search<Self::Item>, CloudError> {
        let Listed { mut items, .. } = self.list().await?;
        items.retain(|item| self.instance(item).answers_to(&node.name));
        Ok(Search::by_name(node, items))
    }

    /// See [`Instances::describe`](cloudkeel_api::Instances::describe).
    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let _ = priority;
        instances.into_iter().map(Ok).collect()
    }

    /// See [`Instances::identify`](cloudkeel_api::Instances::identify).
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        by_id_or_name(node, list)
    }

    /// See [`Instances::addresses`](cloudkeel_api::Instances::addresses).
    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        let _ = node;
        instance.addresses.clone()
    }

    /// Called with a Node that several instances could be, for an event.
    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        let _ = (node, doubt);
    }
}

/// The instance of a Node in a list: by its ID, else by its name.
pub fn by_id_or_name<'a>(node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
    match &node.provider_id {
        Some(id) => list.get(id).map_or(Match::None, Match::One),
        None => Match::of(list.named(&node.name)),
    }
}

/// The instance of a Node in a list: by its ID, else by the UUID of its firmware, else by its name.
pub fn by_id_uuid_or_name<'a>(node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
    let uuid = node.system_uuid.as_deref();
    let uuid = uuid.filter(|_| node.provider_id.is_none());
    match Match::of(uuid.map_or(Vec::new(), |uuid| list.with_system_uuid(uuid))) {
        Match::None => by_id_or_name(node, list),
        found => found,
    }
}

/// An ID that is no instance of this cloud, so that nothing can be said about it.
pub fn not_ours(id: &ProviderId, why: impl Into<String>) -> Existence {
    Existence::Unknown(Doubt::NotOurs {
        id: id.clone(),
        why: why.into(),
    })
}
