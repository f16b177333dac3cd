//! Wall clocks that may be wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cloudkeel_api::{Clock, TokioClock};
use jiff::{SignedDuration, Timestamp};

/// The clock of one manager's machine. How long things take it measures right; what time it is may be
/// off.
#[derive(Debug, Clone)]
pub(crate) struct MachineClock {
    right: TokioClock,
    off_by_seconds: Arc<AtomicI64>,
}

impl MachineClock {
    pub(crate) fn new(right: TokioClock) -> Self {
        Self {
            right,
            off_by_seconds: Arc::default(),
        }
    }

    pub(crate) fn jump(&self, seconds: i64) {
        self.off_by_seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn put_right(&self) {
        self.off_by_seconds.store(0, Ordering::Relaxed);
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let off_by = SignedDuration::from_secs(self.off_by_seconds.load(Ordering::Relaxed));
        let now = self.right.now();
        now.checked_add(off_by).unwrap_or(now)
    }
}
