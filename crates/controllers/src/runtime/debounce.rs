//! Merges a burst of news into one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Waits for quiet after news, but not for ever.
pub struct Debounce {
    quiet: Duration,
    longest: Duration,
    burst: Mutex<Option<Burst>>,
    news: Notify,
}

#[derive(Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Debounce {
    /// A burst ends when nothing has come for `quiet`, or `longest` after its beginning.
    pub fn new(quiet: Duration, longest: Duration) -> Self {
        Self {
            quiet,
            longest,
            burst: Mutex::new(None),
            news: Notify::new(),
        }
    }

    /// There is news.
    pub fn note(&self) {
        let now = Instant::now();
        let mut burst = self.lock();
        let first = burst.map_or(now, |burst| burst.first);
        *burst = Some(Burst { first, last: now });
        drop(burst);
        self.news.notify_one();
    }

    /// Waits until a burst of news has ended, and forgets it. May be dropped and called again.
    pub async fn ended(&self) {
        loop {
            let burst = *self.lock();
            let Some(Burst { first, last }) = burst else {
                self.news.notified().await;
                continue;
            };
            let due = (last + self.quiet).min(first + self.longest);
            if due <= Instant::now() {
                *self.lock() = None;
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Burst>> {
        self.burst.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// News at these tenths of a second; the tenths at which bursts ended.
    async fn ends(news: &[u64]) -> Vec<u64> {
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
        let told = async {
            for tenths in news {
                tokio::time::sleep_until(started + Duration::from_millis(tenths * 100)).await;
                debounce.note();
            }
        };
        futures::join!(ended, told).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_after_quiet_and_at_the_latest_after_its_time() {
        let steady: Vec<u64> = (0..240).step_by(7).collect();
        for (case, news, expected) in [
            ("no news", &[][..], vec![]),
            ("one", &[3], vec![13]),
            ("close together", &[0, 5, 12, 20], vec![30]),
            ("apart", &[0, 20], vec![10, 30]),
            ("without end", &steady, vec![100, 205, 248]),
        ] {
            assert_eq!(ends(news).await, expected, "{case}");
        }
    }
}
