//! The clouds of this process, what was last seen of each, and which Node belongs to which.

mod describe;
mod foothold;
mod inventory;
mod ownership;
mod provider_cell;

use std::sync::Arc;

use cloudkeel_api::{Clock, CloudProvider, LabelSelector, NodeFacts};
use jiff::{SignedDuration, Timestamp};

use describe::Descriptions;
use foothold::Foothold;
pub(crate) use foothold::Footing;
pub use inventory::{Inventory, Snapshot};
pub use ownership::{Owner, owner_of};
pub(crate) use ownership::{vouching_for, with_machines};
pub use provider_cell::ProviderCell;

/// Whether a Node is so old that every list of its cloud has to show its machine.
pub(crate) fn is_surely_listed(node: &NodeFacts, now: Timestamp) -> bool {
    let age = node.created.map(|created| now.duration_since(created));
    age.is_some_and(|age| age >= SignedDuration::from_mins(5))
}

/// A configured cloud.
pub struct Cloud {
    /// Its name in the configuration.
    pub name: String,
    /// The provider in use, and its replacements.
    pub cell: Arc<ProviderCell>,
    /// Nodes without an ID that belong to it.
    pub selector: Option<LabelSelector>,
    /// What was last seen of its machines.
    pub inventory: Inventory,
    /// Completes what a list shows in part.
    pub(crate) descriptions: Descriptions,
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
        let cell = Arc::new(ProviderCell::new(provider));
        Arc::new(Self {
            name: name.into(),
            inventory: Inventory::new(Arc::clone(&cell), clock),
            descriptions: Descriptions::new(Arc::clone(&cell)),
            foothold: Foothold::default(),
            cell,
            selector,
        })
    }

    /// The provider in use. Take it once per operation.
    pub fn provider(&self) -> Arc<dyn CloudProvider> {
        self.cell.current()
    }
}
