//! How often changes of one Service are worked on: each costs requests, of which all Services of a cloud share a budget.

use std::time::Duration;

use tokio::time::Instant;

/// So many changes in a row are worked on at once.
const BURST: u32 = 10;

/// After them, one in this time.
const PERIOD: Duration = Duration::from_secs(30);

/// What a Service waits for that changes more often.
pub(super) const TOO_MANY_CHANGES: &str =
    "the Service has changed too often: its last change is worked on within 30s";

/// The changes of one Service.
#[derive(Debug, Default)]
pub(super) struct ChangeLimit {
    /// Whether it has changed since it was last worked on.
    is_changed: bool,
    /// When all that was worked on would have been, one in each period.
    paid_until: Option<Instant>,
}

impl ChangeLimit {
    /// The Service has changed.
    pub(super) const fn note(&mut self) {
        self.is_changed = true;
    }

    /// Counts the work that begins, unless it has to wait: then says how long.
    pub(super) fn begin(&mut self) -> Option<Duration> {
        if !self.is_changed {
            return None;
        }
        let now = Instant::now();
        let paid_until = self.paid_until.map_or(now, |until| until.max(now));
        let ahead = paid_until.duration_since(now);
        let wait = ahead.saturating_sub(PERIOD * (BURST - 1));
        if wait.is_zero() {
            self.is_changed = false;
            self.paid_until = Some(paid_until + PERIOD);
            return None;
        }
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_one_change_in_each_period_is_worked_on() {
        let mut limit = ChangeLimit::default();
        let mut worked_on = 0;
        for _ in 0..600 {
            limit.note();
            worked_on += u32::from(limit.begin().is_none());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(worked_on, BURST + 600 / 30 - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_change_does_not_wait() {
        let mut limit = ChangeLimit::default();
        for _ in 0..BURST {
            limit.note();
            assert_eq!(limit.begin(), None);
        }
        for _ in 0..100 {
            assert_eq!(limit.begin(), None);
        }
        limit.note();
        assert_eq!(limit.begin(), Some(PERIOD));
        tokio::time::advance(PERIOD).await;
        assert_eq!(limit.begin(), None);
    }
}
