//! What is normal for a while, and worth a word only if it lasts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Keeps a warning back until its cause has lasted.
///
/// When a machine is replaced, its Node stays for a minute or two. Whatever has to do with the Node finds no
/// machine meanwhile, and nobody has to do anything about it.
#[derive(Debug)]
pub struct Patience {
    longest: Duration,
    met: Mutex<BTreeMap<String, Met>>,
}

/// When something was met for the first and the last time.
#[derive(Debug, Clone, Copy)]
struct Met {
    first: Instant,
    last: Instant,
}

/// What is not met again for so many times the patience has passed. Retries may be far apart.
const PASSED_AFTER: u32 = 10;

impl Patience {
    /// With Nodes whose machines are missing: longer than it takes to delete them.
    pub const fn with_missing_machines() -> Self {
        Self::of(Duration::from_mins(3))
    }

    /// For so long.
    pub const fn of(longest: Duration) -> Self {
        Self {
            longest,
            met: Mutex::new(BTreeMap::new()),
        }
    }

    /// It is met now. Whether it has lasted long enough for a warning.
    pub fn is_over(&self, what: &str) -> bool {
        let now = Instant::now();
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let passes = self.longest.saturating_mul(PASSED_AFTER);
        met.retain(|_, met| now.duration_since(met.last) < passes);
        let met = met.entry(what.to_owned()).or_insert(Met {
            first: now,
            last: now,
        });
        met.last = now;
        now.duration_since(met.first) >= self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_lasts_is_told_and_what_passed_begins_anew() {
        let patience = Patience::of(Duration::from_mins(1));
        let after = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        assert!(!patience.is_over("machine 1"));
        after(59).await;
        assert!(!patience.is_over("machine 1"));
        assert!(!patience.is_over("machine 2"));
        after(1).await;
        assert!(patience.is_over("machine 1"));
        assert!(!patience.is_over("machine 2"));
        // Retries with pauses longer than the patience are about the same trouble.
        after(300).await;
        assert!(patience.is_over("machine 1"));
        after(601).await;
        assert!(!patience.is_over("machine 1"));
        assert_eq!(
            patience.met.lock().unwrap().len(),
            1,
            "the other is forgotten"
        );
    }
}
