//! Conditions that are normal for a short time, and worth a warning only if they last.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Delays a warning until its cause has lasted for a while.
///
/// When an instance is replaced, its Node stays for a minute or two. Everything that concerns the Node finds no
/// instance in that time, and no action is needed.
#[derive(Debug)]
pub struct WarningDelay {
    delay: Duration,
    causes: Mutex<BTreeMap<String, Observed>>,
}

/// When a cause was observed for the first and the last time.
#[derive(Debug, Clone, Copy)]
struct Observed {
    first: Instant,
    last: Instant,
}

/// A cause that is not observed for this many delays is over. Retries may be far apart.
const OVER_AFTER_DELAYS: u32 = 10;

impl WarningDelay {
    /// For Nodes whose instances are missing: longer than it takes to delete such a Node.
    pub const fn for_missing_instances() -> Self {
        Self::new(Duration::from_mins(3))
    }

    /// Warnings are delayed by this much.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            causes: Mutex::new(BTreeMap::new()),
        }
    }

    /// Records that the cause is observed now. Returns whether it has lasted long enough for a warning.
    pub fn has_elapsed(&self, cause: &str) -> bool {
        let now = Instant::now();
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        let over_after = self.delay.saturating_mul(OVER_AFTER_DELAYS);
        causes.retain(|_, observed| now.duration_since(observed.last) < over_after);
        let observed = causes.entry(cause.to_owned()).or_insert(Observed {
            first: now,
            last: now,
        });
        observed.last = now;
        now.duration_since(observed.first) >= self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_warning_is_due_only_when_its_cause_lasts_and_a_cause_that_ended_starts_anew() {
        let delay = WarningDelay::new(Duration::from_mins(1));
        let after = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        assert!(!delay.has_elapsed("instance 1"));
        after(59).await;
        assert!(!delay.has_elapsed("instance 1"));
        assert!(!delay.has_elapsed("instance 2"));
        after(1).await;
        assert!(delay.has_elapsed("instance 1"));
        assert!(!delay.has_elapsed("instance 2"));
        // Retries that are further apart than the delay concern the same cause.
        after(300).await;
        assert!(delay.has_elapsed("instance 1"));
        after(601).await;
        assert!(!delay.has_elapsed("instance 1"));
        assert_eq!(
            delay.causes.lock().unwrap().len(),
            1,
            "the other one is over"
        );
    }
}
