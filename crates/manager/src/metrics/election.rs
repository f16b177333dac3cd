//! What leader election measures.

use super::catalogue::{Catalogue, Counter, Gauge, Labelled};

/// The metrics of leader election, by the name of the lease.
#[derive(Debug, Clone)]
pub struct ElectionMetrics {
    leading: Labelled<Gauge, 1>,
    slow_path: Labelled<Counter, 1>,
}

impl ElectionMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const NAME: [&str; 1] = ["name"];
        Self {
            leading: catalogue.gauges(
                "leader_election_master_status",
                NAME,
                "1 while this process holds the lease, 0 while it stands by.",
            ),
            slow_path: catalogue.counters(
                "leader_election_slowpath_total",
                NAME,
                "Renewals of the lease that had to read it first.",
            ),
        }
    }

    /// Whether this process holds the lease.
    pub fn set_leading(&self, lease: &str, leading: bool) {
        self.leading
            .with([lease])
            .set(if leading { 1.0 } else { 0.0 });
    }

    /// A renewal needed a read first.
    pub fn slow_path_taken(&self, lease: &str) {
        self.slow_path.with([lease]).inc();
    }
}
