//! Locks for Services that share a balancer, which is changed for one Service at a time. A Service that waits occupies
//! no worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::LockKey;
use parking_lot::Mutex;

use crate::runtime::{Queue, Urgency};

/// A cloud's name, and a key of its choice.
type Key = (String, LockKey);

/// Which keys are locked, and which Services wait for each.
pub(super) struct KeyedLocks {
    /// Services that waited are enqueued here.
    queue: Arc<Queue<String>>,
    locked: Mutex<BTreeMap<Key, BTreeSet<String>>>,
}

impl KeyedLocks {
    pub(super) fn new(queue: Arc<Queue<String>>) -> Self {
        let locked = Mutex::default();
        Self { queue, locked }
    }

    /// All of these locks, or `None` if another Service has one of them: then `service` is enqueued when
    /// that ends.
    pub(super) fn acquire(
        &self,
        cloud: &str,
        locks: BTreeSet<LockKey>,
        service: &str,
    ) -> Option<KeyGuard<'_>> {
        let keys = locks.into_iter().map(|lock| (cloud.to_owned(), lock));
        let keys: Vec<Key> = keys.collect();
        let mut locked = self.locked.lock();
        for key in &keys {
            if let Some(waiting) = locked.get_mut(key) {
                waiting.insert(service.to_owned());
                return None;
            }
        }
        locked.extend(keys.iter().map(|key| (key.clone(), BTreeSet::new())));
        Some(KeyGuard { locks: self, keys })
    }
}

/// Holds keys until dropped.
pub(super) struct KeyGuard<'a> {
    locks: &'a KeyedLocks,
    keys: Vec<Key>,
}

impl Drop for KeyGuard<'_> {
    fn drop(&mut self) {
        let mut locked = self.locks.locked.lock();
        let freed = self.keys.iter().filter_map(|key| locked.remove(key));
        let waiting: BTreeSet<String> = freed.flatten().collect();
        drop(locked);
        for service in waiting {
            self.locks.queue.add(service, Urgency::Change);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::{Backoff, Unobserved};

    #[tokio::test(start_paused = true)]
    async fn a_service_that_waits_is_enqueued_when_the_lock_is_free() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(5),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        let locks = KeyedLocks::new(Arc::clone(&queue));
        let shared = || BTreeSet::from([LockKey::new("lb-1")]);
        let first = locks.acquire("a", shared(), "ns/one");
        assert!(first.is_some());
        assert!(locks.acquire("a", shared(), "ns/two").is_none());
        assert!(
            locks.acquire("b", shared(), "ns/three").is_some(),
            "elsewhere"
        );
        assert_eq!(queue.report().ready, 0);
        drop(first);
        let (key, _) = queue.next().await;
        assert_eq!(key, "ns/two");
        assert!(locks.acquire("a", shared(), "ns/two").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_key_in_common_is_enough_to_wait_and_takes_nothing() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(5),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        let locks = KeyedLocks::new(Arc::clone(&queue));
        let keys = |names: &[&str]| names.iter().map(|name| LockKey::new(*name)).collect();
        let first = locks.acquire("a", keys(&["lb-1", "group"]), "ns/one");
        assert!(first.is_some());
        assert!(
            locks
                .acquire("a", keys(&["group", "lb-2"]), "ns/two")
                .is_none()
        );
        assert!(locks.acquire("a", keys(&["lb-2"]), "ns/three").is_some());
        drop(first);
        let (key, _) = queue.next().await;
        assert_eq!(key, "ns/two");
        assert!(
            locks
                .acquire("a", keys(&["group", "lb-2"]), "ns/two")
                .is_some()
        );
    }
}
