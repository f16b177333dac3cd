//! A queue of keys: merged, retried with backoff, and never worked on twice at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Backoff;
use crate::report::QueueReport;

/// How urgent a key is. The more urgent are handed out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Urgency {
    /// New things, for which somebody waits.
    New,
    /// Changes.
    #[default]
    Change,
    /// Refreshes, which can wait.
    Refresh,
}

/// Hears what happens in a queue. The manager turns it into metrics.
pub trait QueueObserver: Send + Sync {
    /// A key was added; `depth` keys wait now.
    fn added(&self, depth: usize);
    /// A key was handed out after waiting this long; `depth` keys wait now.
    fn taken(&self, waited: Duration, depth: usize);
    /// Work on a key ended after this long.
    fn finished(&self, worked: Duration);
    /// A key will be tried again.
    fn retried(&self);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl QueueObserver for Unobserved {
    fn added(&self, _depth: usize) {}
    fn taken(&self, _waited: Duration, _depth: usize) {}
    fn finished(&self, _worked: Duration) {}
    fn retried(&self) {}
}

/// A queue of keys.
///
/// A key that is added while it waits is merged. One that is added while it is worked on is handed
/// out again afterwards. A failure delays only the key that failed, and news about a key end its
/// delay, because the cause of the failure may be gone.
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: Backoff,
    observer: Arc<dyn QueueObserver>,
}

struct State<K> {
    /// Keys that can be handed out, in order of urgency, then of arrival.
    ready: BTreeSet<(Urgency, u64, K)>,
    /// Where each waiting key stands.
    waiting: BTreeMap<K, Waiting>,
    /// When delayed keys become ready.
    delayed: BTreeSet<(Instant, K)>,
    /// Keys in work, and how urgently they were added again meanwhile.
    working: BTreeMap<K, Option<Urgency>>,
    failures: BTreeMap<K, u32>,
    arrivals: u64,
}

#[derive(Clone, Copy)]
enum Waiting {
    Ready {
        urgency: Urgency,
        arrival: u64,
        since: Instant,
    },
    Delayed {
        due: Instant,
    },
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff, observer: Arc<dyn QueueObserver>) -> Self {
        Self {
            state: Mutex::new(State {
                ready: BTreeSet::new(),
                waiting: BTreeMap::new(),
                delayed: BTreeSet::new(),
                working: BTreeMap::new(),
                failures: BTreeMap::new(),
                arrivals: 0,
            }),
            changed: Notify::new(),
            backoff,
            observer,
        }
    }

    /// Adds a key to be worked on now, also if it was delayed.
    pub fn add(&self, key: K, urgency: Urgency) {
        let mut state = self.lock();
        if let Some(again) = state.working.get_mut(&key) {
            *again = Some(again.map_or(urgency, |earlier| earlier.min(urgency)));
            return;
        }
        if state.make_ready(key, urgency, Instant::now()) {
            self.observer.added(state.ready.len());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key that has changed, so that its failures so far say nothing about the next: pauses begin
    /// with the shortest again.
    pub fn add_anew(&self, key: K, urgency: Urgency) {
        self.lock().failures.remove(&key);
        self.add(key, urgency);
    }

    /// Forgets a key that waits, and its failures.
    pub fn remove(&self, key: &K) {
        let mut state = self.lock();
        state.take_out(key);
        state.failures.remove(key);
    }

    /// How many keys can be handed out.
    pub fn depth(&self) -> usize {
        self.lock().ready.len()
    }

    /// How many keys wait to be handed out or are in work.
    pub fn load(&self) -> usize {
        let state = self.lock();
        state.ready.len() + state.working.len()
    }

    /// How it stands.
    pub fn report(&self) -> QueueReport {
        let state = self.lock();
        QueueReport {
            ready: state.ready.len(),
            working: state.working.len(),
            delayed: state.delayed.len(),
        }
    }

    /// Waits for the next key. It stays in work until the job is [finished](Job::finish) or dropped.
    pub async fn next(self: &Arc<Self>) -> Job<K> {
        loop {
            let changed = self.changed.notified();
            let next_due = match self.try_next() {
                Ok(job) => return job,
                Err(next_due) => next_due,
            };
            match next_due {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// A job, or when the next delayed key is due.
    fn try_next(self: &Arc<Self>) -> Result<Job<K>, Option<Instant>> {
        let now = Instant::now();
        let mut state = self.lock();
        state.release_due(now);
        let Some((_, _, key)) = state.ready.pop_first() else {
            return Err(state.delayed.first().map(|(due, _)| *due));
        };
        let waited = match state.waiting.remove(&key) {
            Some(Waiting::Ready { since, .. }) => now.duration_since(since),
            _ => Duration::ZERO,
        };
        state.working.insert(key.clone(), None);
        let failures = state.failures.get(&key).copied().unwrap_or(0);
        let depth = state.ready.len();
        drop(state);
        if depth > 0 {
            // A notification is one permit: pass it on while there is more.
            self.changed.notify_one();
        }
        self.observer.taken(waited, depth);
        Ok(Job {
            queue: Arc::clone(self),
            key: Some(key),
            failures,
            started: now,
        })
    }

    fn settle(&self, key: K, verdict: Settle) {
        let mut state = self.lock();
        let again = state.working.remove(&key).flatten();
        let delay = match verdict {
            Settle::Forget => {
                state.failures.remove(&key);
                None
            }
            Settle::After(delay) => Some(delay),
            Settle::Failed { slowest } => {
                let failures = state.failures.entry(key.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                let count = *failures;
                Some(if slowest {
                    self.backoff.longest
                } else {
                    self.backoff.pause(count)
                })
            }
        };
        match (again, delay) {
            (Some(urgency), _) => {
                state.make_ready(key, urgency, Instant::now());
                self.observer.added(state.ready.len());
            }
            (None, Some(delay)) => {
                state.delay(key, Instant::now() + delay);
                self.observer.retried();
            }
            (None, None) => {}
        }
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> State<K> {
    /// Whether the key was not ready before.
    fn make_ready(&mut self, key: K, urgency: Urgency, now: Instant) -> bool {
        let mut since = now;
        let mut arrival = None;
        let mut urgency = urgency;
        if let Some(Waiting::Ready {
            urgency: earlier,
            arrival: place,
            since: first,
        }) = self.waiting.get(&key)
        {
            since = *first;
            arrival = Some(*place);
            urgency = urgency.min(*earlier);
        }
        self.take_out(&key);
        let is_new = arrival.is_none();
        let arrival = arrival.unwrap_or_else(|| {
            self.arrivals += 1;
            self.arrivals
        });
        self.ready.insert((urgency, arrival, key.clone()));
        self.waiting.insert(
            key,
            Waiting::Ready {
                urgency,
                arrival,
                since,
            },
        );
        is_new
    }

    fn delay(&mut self, key: K, due: Instant) {
        self.delayed.insert((due, key.clone()));
        self.waiting.insert(key, Waiting::Delayed { due });
    }

    fn release_due(&mut self, now: Instant) {
        while self.delayed.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.make_ready(key, Urgency::Change, now);
            }
        }
    }

    fn take_out(&mut self, key: &K) {
        match self.waiting.remove(key) {
            Some(Waiting::Ready {
                urgency, arrival, ..
            }) => {
                self.ready.remove(&(urgency, arrival, key.clone()));
            }
            Some(Waiting::Delayed { due }) => {
                self.delayed.remove(&(due, key.clone()));
            }
            None => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Settle {
    Forget,
    After(Duration),
    Failed { slowest: bool },
}

/// A key in work. Dropping it unfinished counts as a failure, so that a cancelled or panicked worker
/// loses nothing.
pub struct Job<K: Ord + Clone> {
    queue: Arc<Queue<K>>,
    key: Option<K>,
    failures: u32,
    started: Instant,
}

impl<K: Ord + Clone> Job<K> {
    /// The key. `None` only after the job was finished.
    pub const fn key(&self) -> Option<&K> {
        self.key.as_ref()
    }

    /// How often work on this key has failed in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Done: failures are forgotten.
    pub fn done(self) {
        self.finish(Settle::Forget);
    }

    /// To be looked at again after exactly this long; failures stand as they are.
    pub fn again_after(self, delay: Duration) {
        self.finish(Settle::After(delay));
    }

    /// Failed: to be tried again after a growing pause.
    pub fn failed(self) {
        self.finish(Settle::Failed { slowest: false });
    }

    /// Failed, and only a person can help: to be tried again at the slowest pace.
    pub fn failed_for_good(self) {
        self.finish(Settle::Failed { slowest: true });
    }

    fn finish(mut self, verdict: Settle) {
        self.settle(verdict);
    }

    fn settle(&mut self, verdict: Settle) {
        if let Some(key) = self.key.take() {
            self.queue.observer.finished(self.started.elapsed());
            self.queue.settle(key, verdict);
        }
    }
}

impl<K: Ord + Clone> Drop for Job<K> {
    fn drop(&mut self) {
        self.settle(Settle::Failed { slowest: false });
    }
}

impl<K: Ord + Clone + fmt::Debug> fmt::Debug for Job<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("key", &self.key)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
