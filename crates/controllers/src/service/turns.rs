//! One at a time where Services share a balancer. Who has to wait holds no worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudkeel_api::LockKey;

use crate::runtime::{Queue, Urgency};

/// A cloud's name, and a key of its choice.
type Place = (String, LockKey);

/// Who works where, and who waits for it.
pub(super) struct Turns {
    queue: Arc<Queue<String>>,
    taken: Mutex<BTreeMap<Place, BTreeSet<String>>>,
}

impl Turns {
    /// Whoever waited is filed in this queue when its time has come.
    pub(super) fn new(queue: Arc<Queue<String>>) -> Self {
        Self {
            queue,
            taken: Mutex::default(),
        }
    }

    /// The turn for all of these keys, or `None` if another Service has one of them: then `service` is filed
    /// again when that ends.
    pub(super) fn take(
        &self,
        cloud: &str,
        locks: BTreeSet<LockKey>,
        service: &str,
    ) -> Option<Turn<'_>> {
        let places = locks.into_iter().map(|lock| (cloud.to_owned(), lock));
        let places: Vec<Place> = places.collect();
        let mut taken = self.lock();
        for place in &places {
            if let Some(waiting) = taken.get_mut(place) {
                waiting.insert(service.to_owned());
                return None;
            }
        }
        for place in &places {
            taken.insert(place.clone(), BTreeSet::new());
        }
        Some(Turn {
            turns: self,
            places,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, BTreeSet<String>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to work on a balancer, until dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    places: Vec<Place>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = BTreeSet::new();
        {
            let mut taken = self.turns.lock();
            for place in &self.places {
                waiting.extend(taken.remove(place).unwrap_or_default());
            }
        }
        for service in waiting {
            self.turns.queue.add(service, Urgency::Change);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::{Backoff, Unobserved};

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_filed_again_when_the_turn_ends() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(5),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        let turns = Turns::new(Arc::clone(&queue));
        let shared = || BTreeSet::from([LockKey::new("lb-1")]);
        let first = turns.take("a", shared(), "ns/one");
        assert!(first.is_some());
        assert!(turns.take("a", shared(), "ns/two").is_none());
        assert!(turns.take("b", shared(), "ns/three").is_some(), "elsewhere");
        assert_eq!(queue.depth(), 0);
        drop(first);
        let job = queue.next().await;
        assert_eq!(job.key().map(String::as_str), Some("ns/two"));
        assert!(turns.take("a", shared(), "ns/two").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_key_in_common_is_enough_to_wait_and_takes_nothing() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(5),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        let turns = Turns::new(Arc::clone(&queue));
        let keys = |names: &[&str]| names.iter().map(|name| LockKey::new(*name)).collect();
        let first = turns.take("a", keys(&["lb-1", "group"]), "ns/one");
        assert!(first.is_some());
        assert!(
            turns
                .take("a", keys(&["group", "lb-2"]), "ns/two")
                .is_none()
        );
        assert!(turns.take("a", keys(&["lb-2"]), "ns/three").is_some());
        drop(first);
        let job = queue.next().await;
        assert_eq!(job.key().map(String::as_str), Some("ns/two"));
        assert!(
            turns
                .take("a", keys(&["group", "lb-2"]), "ns/two")
                .is_some()
        );
    }
}
