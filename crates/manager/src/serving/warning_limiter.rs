//! Limits how often the same warning is logged, so that not every request logs it.

use std::time::Duration;

use super::ttl_cache::TtlCache;

/// How long the same cause is not logged again.
const WARNING_INTERVAL: Duration = Duration::from_mins(10);

/// How many causes are remembered.
const MAX_CAUSES: usize = 64;

/// Remembers the causes that were logged recently.
pub(super) struct WarningLimiter(TtlCache<String, ()>);

impl WarningLimiter {
    pub(super) fn new() -> Self {
        Self(TtlCache::new(MAX_CAUSES))
    }

    /// Whether a warning with this cause should be logged now.
    pub(super) fn should_log(&self, cause: &str) -> bool {
        let key = cause.to_owned();
        if self.0.get(&key).is_some() {
            return false;
        }
        self.0.insert(key, (), WARNING_INTERVAL);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_logged_once_per_interval_and_another_one_at_once() {
        let warnings = WarningLimiter::new();
        assert!(warnings.should_log("denied"));
        assert!(!warnings.should_log("denied"));
        assert!(warnings.should_log("late"));
        tokio::time::advance(WARNING_INTERVAL).await;
        assert!(warnings.should_log("denied"));
    }
}
