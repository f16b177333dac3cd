//! What the rest of the process sees of an election.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{ElectionConfig, Fence};

/// How long after its expiry a lease may be held before the health check fails: something hangs.
const RENEWAL_TOLERANCE: Duration = Duration::from_secs(20);

/// The state of this candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// Another candidate leads, or none does yet.
    Standby {
        /// The leader, if known.
        holder: Option<String>,
        /// Why the lease could not be read or acquired in the last attempt.
        error: Option<String>,
    },
    /// This candidate leads.
    Leading {
        /// Since when.
        since: Timestamp,
        /// The number of this leadership; see [`Fence::epoch`].
        epoch: u32,
    },
    /// It led and lost the lease. This is final: the process should exit.
    Lost(Loss),
    /// The election was stopped by its caller. This is final.
    Stopped,
}

/// Why a leadership ended involuntarily.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// No renewal succeeded within the renew deadline.
    NotRenewed {
        /// The error of the last attempt.
        last_error: Option<String>,
    },
    /// Another candidate holds the lease now; empty if none does.
    Superseded {
        /// Its identity.
        holder: String,
    },
    /// The elector was dropped while it ran.
    Abandoned,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRenewed {
                last_error: Some(error),
            } => write!(
                f,
                "the lease could not be renewed in time; the last attempt failed: {error}"
            ),
            Self::NotRenewed { last_error: None } => {
                f.write_str("the lease could not be renewed in time: no answer came")
            }
            Self::Superseded { holder } if holder.is_empty() => {
                f.write_str("another client removed the holder of the lease")
            }
            Self::Superseded { holder } => write!(f, "the lease is held by {holder:?}"),
            Self::Abandoned => f.write_str("the election was abandoned"),
        }
    }
}

/// What the elector and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    name: String,
    lease_duration: Duration,
    pub(super) fence: Fence,
    /// The start of the last successful renewal, as long as the lease may be held.
    renewed: Mutex<Option<Instant>>,
    slow_path: AtomicU64,
}

impl Shared {
    pub(super) fn new(config: &ElectionConfig) -> Self {
        Self {
            name: config.name.clone(),
            lease_duration: config.lease_duration,
            fence: Fence::not_yet(),
            renewed: Mutex::new(None),
            slow_path: AtomicU64::new(0),
        }
    }

    pub(super) fn renewed(&self, at: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(super) fn count_slow_path(&self) {
        self.slow_path.fetch_add(1, Ordering::Relaxed);
    }
}

/// A handle for observing a running election. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Election {
    shared: Arc<Shared>,
    status: watch::Receiver<Leadership>,
}

impl Election {
    pub(super) fn new(shared: Arc<Shared>, status: watch::Receiver<Leadership>) -> Self {
        Self { shared, status }
    }

    /// The state, now and after every change.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.status.clone()
    }

    /// The permission to write. It is closed until this candidate leads.
    pub fn fence(&self) -> Fence {
        self.shared.fence.clone()
    }

    /// Waits until this candidate leads. If that will never happen, the final state is the error.
    pub async fn leading(&self) -> Result<Fence, Leadership> {
        let mut status = self.status.clone();
        // An elector leaves a final state behind, so its end is no error here.
        let reached = status.wait_for(|now| !matches!(now, Leadership::Standby { .. }));
        let now = reached.await.map_or(Leadership::Stopped, |now| now.clone());
        match now {
            Leadership::Leading { .. } => Ok(self.fence()),
            ended => Err(ended),
        }
    }

    /// The name of the lease, the `name` label of both metrics.
    pub fn lease_name(&self) -> &str {
        &self.shared.name
    }

    /// Whether this candidate leads: the metric `leader_election_master_status`.
    pub fn is_leader(&self) -> bool {
        self.shared.fence.is_open()
    }

    /// How often a renewal had to read the lease first: the metric `leader_election_slowpath_total`.
    pub fn slow_path_total(&self) -> u64 {
        self.shared.slow_path.load(Ordering::Relaxed)
    }

    /// The health check `leaderElection`.
    pub fn health(&self) -> ElectionHealth {
        ElectionHealth(Arc::clone(&self.shared))
    }
}

/// Fails when a process that led hangs instead of exiting.
#[derive(Debug, Clone)]
pub struct ElectionHealth(Arc<Shared>);

impl ElectionHealth {
    /// An error if the lease is held but was not renewed for its duration and 20 seconds.
    pub fn check(&self, now: Instant) -> Result<(), String> {
        let renewed = *self
            .0
            .renewed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let limit = self.0.lease_duration + RENEWAL_TOLERANCE;
        match renewed.map(|renewed| now.saturating_duration_since(renewed)) {
            Some(age) if age > limit => Err(format!(
                "failed election to renew leadership on lease {}: the last renewal was {} s ago",
                self.0.name,
                age.as_secs()
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn health_fails_only_for_a_holder_that_has_not_renewed_for_too_long() {
        let config = ElectionConfig::new("kube-system", "ccm", "me");
        let shared = Arc::new(Shared::new(&config));
        let health = ElectionHealth(Arc::clone(&shared));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(health.check(after(1_000)), Ok(()), "never held");
        shared.renewed(Some(start));
        assert_eq!(health.check(after(35)), Ok(()), "just tolerated");
        assert_eq!(
            health.check(after(36)).unwrap_err(),
            "failed election to renew leadership on lease ccm: the last renewal was 36 s ago"
        );
        shared.renewed(None);
        assert_eq!(health.check(after(36)), Ok(()), "given back");
    }

    #[test]
    fn a_loss_says_what_happened() {
        for (loss, text) in [
            (
                Loss::NotRenewed {
                    last_error: Some("no route".to_owned()),
                },
                "the lease could not be renewed in time; the last attempt failed: no route",
            ),
            (
                Loss::NotRenewed { last_error: None },
                "the lease could not be renewed in time: no answer came",
            ),
            (
                Loss::Superseded {
                    holder: "b".to_owned(),
                },
                "the lease is held by \"b\"",
            ),
            (
                Loss::Superseded {
                    holder: String::new(),
                },
                "another client removed the holder of the lease",
            ),
            (Loss::Abandoned, "the election was abandoned"),
        ] {
            assert_eq!(loss.to_string(), text);
        }
    }
}
