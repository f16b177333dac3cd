//! How long it takes until all balancers have followed a change of Nodes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Changes of Nodes, and who has yet to follow them.
#[derive(Default)]
pub(super) struct Following(Mutex<Vec<Pass>>);

struct Pass {
    began: Instant,
    behind: BTreeSet<String>,
}

impl Following {
    /// These Services have to follow a change.
    pub(super) fn begin(&self, services: impl IntoIterator<Item = String>) {
        self.lock().push(Pass {
            began: Instant::now(),
            behind: services.into_iter().collect(),
        });
    }

    /// A Service was attended to. Returns how long the changes took that nobody is behind any more.
    pub(super) fn finished(&self, service: &str) -> Vec<Duration> {
        let mut passes = self.lock();
        let mut ended = Vec::new();
        passes.retain_mut(|pass| {
            pass.behind.remove(service);
            if pass.behind.is_empty() {
                ended.push(pass.began.elapsed());
            }
            !pass.behind.is_empty()
        });
        ended
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Pass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_lasts_until_the_last_has_followed() {
        let following = Following::default();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        following.begin(names(&["a", "b"]));
        tokio::time::advance(Duration::from_secs(2)).await;
        following.begin(names(&["b"]));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(following.finished("a").is_empty());
        let ended = following.finished("b");
        assert_eq!(ended, [Duration::from_secs(5), Duration::from_secs(3)]);
        assert!(following.finished("b").is_empty());
    }
}
