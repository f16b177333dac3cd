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

    /// The turn, or `None` if another Service has it: then `service` is filed again when that ends.
    pub(super) fn take(&self, cloud: &str, lock: LockKey, service: &str) -> Option<Turn<'_>> {
        let place = (cloud.to_owned(), lock);
        let mut taken = self.lock();
        if let Some(waiting) = taken.get_mut(&place) {
            waiting.insert(service.to_owned());
            return None;
        }
        taken.insert(place.clone(), BTreeSet::new());
        Some(Turn { turns: self, place })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, BTreeSet<String>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to work on a balancer, until dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    place: Place,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = self.turns.lock().remove(&self.place).unwrap_or_default();
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
        let shared = || LockKey::new("lb-1");
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
}
