//! The clouds of this process, what was last seen of each, and which Node belongs to which.

mod foothold;
mod inventory;
mod ownership;
mod replaceable;

use std::sync::Arc;

use cloudkeel_api::{Clock, CloudProvider, LabelSelector, NodeFacts};
use jiff::{SignedDuration, Timestamp};

use foothold::Foothold;
pub(crate) use foothold::{Footing, is_another_machine};
pub use inventory::{Inventory, Snapshot};
pub use ownership::{Owner, owner_of};
pub(crate) use ownership::{vouching_for, with_machines};
pub use replaceable::Replaceable;

/// Whether a Node is so old that every list of its cloud has to show its machine.
pub(crate) fn is_surely_listed(node: &NodeFacts, now: Timestamp) -> bool {
    let age = node.created.map(|created| now.duration_since(created));
    age.is_some_and(|age| age >= SignedDuration::from_mins(5))
}

/// A configured cloud.
pub struct Cloud {
    /// Its name in the configuration.
    pub name: String,
    /// The provider, whichever is in use.
    pub provider: Arc<dyn CloudProvider>,
    /// The same, to be replaced.
    pub replaceable: Replaceable,
    /// Nodes without an ID that belong to it.
    pub selector: Option<LabelSelector>,
    /// What was last seen of its machines.
    pub inventory: Inventory,
    foothold: Foothold,
}

impl Cloud {
    /// A cloud of which nothing has been seen yet.
    pub fn new(
        name: impl Into<String>,
        provider: Arc<dyn CloudProvider>,
        selector: Option<LabelSelector>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let replaceable = Replaceable::new(provider);
        let provider: Arc<dyn CloudProvider> = Arc::new(replaceable.clone());
        Arc::new(Self {
            name: name.into(),
            inventory: Inventory::new(Arc::clone(&provider), clock),
            foothold: Foothold::default(),
            provider,
            replaceable,
            selector,
        })
    }
}
