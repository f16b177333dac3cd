//! Instances that are resources of a JSON API: listed, read by ID, and searched by name.

use std::fmt::Display;
use std::hash::Hash;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, Instance, InstanceList, Match, NodeFacts, Priority, ProviderId,
    ScopeFingerprint,
};

use super::{InstanceSource, Listed, LookupError, Search, by_id_or_name};
use crate::{EventRecorder, IdError, ListedResources, Resource, RestApi};

/// What a cloud says of its instances if they are resources of a JSON API. [`RestInstances`] does the rest.
pub trait RestInstance: Send + Sync + 'static {
    /// What they are looked up by.
    type Id: Clone + Ord + Hash + Display + Send + Sync;
    /// An instance as the API shows it.
    type Item: Resource<Id = Self::Id> + Clone + Send + Sync;

    /// Reads a provider ID, in any form that was ever written.
    fn parse_id(&self, id: &ProviderId) -> Result<Self::Id, IdError>;

    /// The instance as a Node sees it.
    fn instance(&self, item: &Self::Item) -> Instance;

    /// See [`Instances::identify`](cloudkeel_api::Instances::identify).
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        by_id_or_name(node, list)
    }
}

/// The instances of a JSON API, whose lists take a `name`.
pub struct RestInstances<A, R: RestInstance> {
    /// What was listed of them, for targets and routes too.
    pub resources: Arc<ListedResources<A, R::Item>>,
    /// How they are read.
    pub rules: R,
    /// The scope that the provider was built for.
    pub scope: ScopeFingerprint,
    /// Where a Node is reported that several instances could be.
    pub events: Arc<EventRecorder>,
}

#[async_trait]
impl<A, R> InstanceSource for RestInstances<A, R>
where
    A: Deref<Target = RestApi> + Send + Sync + 'static,
    R: RestInstance,
{
    type Id = R::Id;
    type Item = R::Item;

    fn scope(&self) -> ScopeFingerprint {
        self.scope.clone()
    }

    fn parse_id(&self, id: &ProviderId) -> Result<R::Id, String> {
        self.rules.parse_id(id).map_err(|error| error.to_string())
    }

    fn instance(&self, item: &R::Item) -> Instance {
        self.rules.instance(item)
    }

    async fn list(&self) -> Result<Listed<R::Item>, CloudError> {
        let items = self.resources.fresh().await?.to_vec();
        let scope = self.scope.clone();
        Ok(Listed { scope, items })
    }

    async fn get(&self, id: &R::Id) -> Result<R::Item, LookupError> {
        let item: R::Item = self.resources.api.get(id, Priority::Urgent).await?;
        self.resources.record(std::slice::from_ref(&item));
        Ok(item)
    }

    async fn search(&self, node: &NodeFacts) -> Result<Search<R::Item>, CloudError> {
        let api = &self.resources.api;
        let mut request = api.list::<R::Item>().priority(Priority::Urgent);
        // A Node may be called by an address, which is found in no name.
        if node.name.parse::<IpAddr>().is_err() {
            request = request.query("name", &node.name);
        }
        let mut items: Vec<R::Item> = api.all(request).await?;
        self.resources.record(&items);
        items.retain(|item| self.rules.instance(item).answers_to(&node.name));
        Ok(Search::by_name(node, items))
    }

    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.rules.identify(node, list)
    }

    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        self.events.ambiguous(node, doubt);
    }
}

#[cfg(test)]
mod tests;
