//! The clouds of this process, what was last seen of each, and which Node belongs to which.

mod availability;
mod describe;
mod inventory;
mod matchers;
mod ownership;
mod provider_cell;
mod scope;

use std::sync::Arc;

use cloudkeel_api::{
    Clock, CloudProvider, InstanceList, LabelSelector, Match, NodeFacts, Recognition,
};

pub use availability::{Availability, Unavailable};
use describe::Descriptions;
pub use inventory::{Inventory, Snapshot};
pub use matchers::{NodeMatcher, in_words, shows_addresses};
pub use ownership::{Owner, owner_of};
pub(crate) use ownership::{given_to, is_unmanaged, labels_contradicted};
pub use provider_cell::ProviderCell;
use scope::Scope;
pub(crate) use scope::{
    Belonging, OUTDATED, SCOPE_RETRY, ScopeCheck, ScopeGuard, has_other_uuid, is_another_instance,
};

/// Calls `then` whenever the provider of one of these clouds was replaced: what failed may work now.
pub(crate) async fn after_each_replacement(clouds: &[Arc<Cloud>], then: impl Fn()) {
    let followed = clouds.iter().map(|cloud| async {
        let mut replacements = cloud.cell.replacements();
        while replacements.changed().await.is_ok() {
            then();
        }
    });
    futures::future::join_all(followed).await;
}

/// A configured cloud.
pub struct Cloud {
    /// Its name in the configuration.
    pub name: String,
    /// The provider in use, and its replacements.
    pub cell: Arc<ProviderCell>,
    /// Whether its provider could be built; another stands in for it otherwise, and fails every call.
    pub availability: Arc<Availability>,
    /// Nodes without an ID that belong to it.
    pub selector: Option<LabelSelector>,
    /// How Nodes without an ID of its own are matched, if not as its provider does.
    pub matchers: Vec<NodeMatcher>,
    /// The last list of its instances.
    pub inventory: Inventory,
    /// Completes what a list shows in part.
    descriptions: Descriptions,
    scope: Scope,
}

impl Cloud {
    /// A cloud of which nothing has been seen yet.
    pub fn new(
        name: impl Into<String>,
        provider: Arc<dyn CloudProvider>,
        selector: Option<LabelSelector>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        Self::configured(
            name,
            provider,
            (selector, Vec::new()),
            clock,
            Arc::default(),
        )
    }

    /// One with what the configuration says of its Nodes. If its provider could not be built yet, `provider` stands in for it and fails
    /// as `availability` says.
    pub fn configured(
        name: impl Into<String>,
        provider: Arc<dyn CloudProvider>,
        (selector, matchers): (Option<LabelSelector>, Vec<NodeMatcher>),
        clock: Arc<dyn Clock>,
        availability: Arc<Availability>,
    ) -> Arc<Self> {
        let cell = Arc::new(ProviderCell::new(provider));
        Arc::new(Self {
            name: name.into(),
            inventory: Inventory::new(Arc::clone(&cell), clock),
            descriptions: Descriptions::default(),
            scope: Scope::default(),
            availability,
            cell,
            selector,
            matchers,
        })
    }

    /// Which instance of a list is a Node's: by its ID if that is this cloud's, else by the configured matchers, else as the
    /// provider matches.
    pub fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let provider = self.provider();
        let Some(instances) = provider.instances() else {
            return Match::None;
        };
        if self.matchers.is_empty() || has_id_of(&*provider, node) {
            return instances.identify(node, list);
        }
        matchers::identify(&self.matchers, node, list)
    }

    /// Whether it is this very cloud.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// The provider in use. Take it once per operation.
    pub fn provider(&self) -> Arc<dyn CloudProvider> {
        self.cell.current()
    }
}

/// Whether a Node has an ID of this provider's clouds.
fn has_id_of(provider: &dyn CloudProvider, node: &NodeFacts) -> bool {
    node.provider_id.is_some()
        && provider
            .recognize_node(node)
            .is_some_and(|recognition| recognition != Recognition::Foreign)
}
