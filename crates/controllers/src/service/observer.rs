//! What the service controller tells of itself.

use std::time::Duration;

/// Hears what becomes of load balancers. The manager turns it into metrics.
pub trait ServiceObserver: Send + Sync {
    /// A balancer followed a change of Nodes, or failed to.
    fn hosts_updated(&self, took: Duration, failed: bool);
    /// All balancers have followed a change of Nodes, this long after it was taken up.
    fn nodes_followed(&self, took: Duration);
    /// A Service got its address, this long after it was first seen.
    fn published(&self, cloud: &str, took: Duration);
    /// A balancer was not as it had been left.
    fn drifted(&self, cloud: &str);
    /// So many balancers carry this cluster's mark and have no Service any more.
    fn left_over(&self, cloud: &str, balancers: usize);
}
