//! Merges a burst of changes into one.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Waits until changes stop, but not for ever.
pub struct Debounce {
    quiet: Duration,
    longest: Duration,
    /// When the first and the last change of a burst came.
    burst: Mutex<Option<(Instant, Instant)>>,
    changed: Notify,
}

impl Debounce {
    /// A burst ends when nothing has come for `quiet`, or `longest` after its beginning.
    pub fn new(quiet: Duration, longest: Duration) -> Self {
        Self {
            quiet,
            longest,
            burst: Mutex::new(None),
            changed: Notify::new(),
        }
    }

    /// Something has changed.
    pub fn note(&self) {
        let now = Instant::now();
        self.burst.lock().get_or_insert((now, now)).1 = now;
        self.changed.notify_one();
    }

    /// Whether a burst has begun that has not ended.
    pub fn is_pending(&self) -> bool {
        self.burst.lock().is_some()
    }

    /// Waits until a burst has ended, and forgets it. May be dropped and called again.
    pub async fn ended(&self) {
        loop {
            let burst = *self.burst.lock();
            let Some((first, last)) = burst else {
                self.changed.notified().await;
                continue;
            };
            let due = (last + self.quiet).min(first + self.longest);
            if due <= Instant::now() {
                *self.burst.lock() = None;
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Changes at these tenths of a second; the tenths at which bursts ended.
    async fn ends(changes: &[u64]) -> Vec<u64> {
        let started = Instant::now();
        let debounce = Arc::new(Debounce::new(SECOND, 10 * SECOND));
        let ended = async {
            let mut ends = Vec::new();
            while tokio::time::timeout(60 * SECOND, debounce.ended())
                .await
                .is_ok()
            {
                let tenths = started.elapsed().as_millis() / 100;
                ends.push(u64::try_from(tenths).unwrap());
            }
            ends
        };
        let changing = async {
            for tenths in changes {
                tokio::time::sleep_until(started + Duration::from_millis(tenths * 100)).await;
                debounce.note();
            }
        };
        futures::join!(ended, changing).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_after_quiet_and_at_the_latest_after_its_time() {
        let steady: Vec<u64> = (0..240).step_by(7).collect();
        for (case, changes, expected) in [
            ("no change", &[][..], vec![]),
            ("one", &[3], vec![13]),
            ("close together", &[0, 5, 12, 20], vec![30]),
            ("apart", &[0, 20], vec![10, 30]),
            ("without end", &steady, vec![100, 205, 248]),
        ] {
            assert_eq!(ends(changes).await, expected, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_pending_until_it_has_ended() {
        let debounce = Debounce::new(SECOND, 10 * SECOND);
        assert!(!debounce.is_pending());
        debounce.note();
        assert!(debounce.is_pending());
        debounce.ended().await;
        assert!(!debounce.is_pending());
    }
}
