//! Objects of a cluster as real components write them, and waiting for what a controller does to them.
//!
//! Tests share one control plane and keep apart by names of their own: [`unique_name`] for cluster-wide
//! objects, [`TestNamespace`] for the rest.

mod conditions;
mod kubelet;
mod names;
mod namespace;
mod node;
mod node_status;
mod report;
mod service;
mod time;
mod wait;

pub use kubelet::{Kubelet, LiveKubelet, NotReady};
pub use names::unique_name;
pub use namespace::TestNamespace;
pub use node::{NodeBuilder, PROVIDED_NODE_IP, UNINITIALIZED_TAINT};
pub use report::Unmet;
pub use service::ServiceBuilder;
pub use wait::{
    Observation, eventually, try_eventually, try_wait_for_node, try_wait_for_service,
    wait_for_node, wait_for_node_gone, wait_for_service, wait_for_service_gone,
};
