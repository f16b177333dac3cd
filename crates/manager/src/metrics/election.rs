//! Metrics of leader election.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::catalogue::{Catalogue, Counter, Gauge, Labelled};

/// The metrics of leader election, by the name of the lease.
#[derive(Clone)]
pub struct ElectionMetrics {
    leading: Labelled<Gauge, 1>,
    slow_path: Labelled<Counter, 1>,
    followed: Arc<Mutex<Vec<Followed>>>,
}

/// The state of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElectionState {
    /// Whether this process holds the lease.
    pub leading: bool,
    /// Renewals so far that had to read the lease first.
    pub slow_paths: u64,
}

struct Followed {
    leading: Gauge,
    slow_path: Counter,
    ask: Box<dyn Fn() -> ElectionState + Send + Sync>,
}

impl ElectionMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const NAME: [&str; 1] = ["name"];
        Self {
            leading: catalogue.gauges(
                "leader_election_master_status",
                NAME,
                "1 while this process holds the lease, 0 while it is a standby.",
            ),
            slow_path: catalogue.counters(
                "leader_election_slowpath_total",
                NAME,
                "Renewals of the lease that had to read it first.",
            ),
            followed: Arc::default(),
        }
    }

    /// Publishes the state of an election, which is read at every scrape.
    pub fn follow(&self, lease: &str, ask: impl Fn() -> ElectionState + Send + Sync + 'static) {
        let followed = Followed {
            leading: self.leading.with([lease]),
            slow_path: self.slow_path.with([lease]),
            ask: Box::new(ask),
        };
        self.followed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(followed);
    }

    /// Reads the states.
    pub(super) fn refresh(&self) {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for election in followed.iter() {
            let state = (election.ask)();
            election.leading.set(if state.leading { 1.0 } else { 0.0 });
            let new = state.slow_paths.saturating_sub(election.slow_path.get());
            election.slow_path.inc_by(new);
        }
    }
}

impl fmt::Debug for ElectionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionMetrics").finish_non_exhaustive()
    }
}
