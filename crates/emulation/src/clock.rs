//! Wall-clock time that follows tokio's.

use jiff::Timestamp;
use tokio::time::Instant;

/// Says which time it was at any instant. A paused runtime stops it.
#[derive(Debug, Clone, Copy)]
pub struct EmulatedClock {
    started: Instant,
    epoch: Timestamp,
}

impl EmulatedClock {
    /// A clock that shows this time now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            started: Instant::now(),
            epoch,
        }
    }

    /// The time at an instant.
    pub fn time_at(&self, instant: Instant) -> Timestamp {
        let since = instant.saturating_duration_since(self.started);
        self.epoch.checked_add(since).unwrap_or(self.epoch)
    }
}
