//! A queue of keys, like client-go's work queue, and its workers: keys are merged, retried with backoff, and never
//! processed twice at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Retry};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::Backoff;
use super::panics::{panic_text, restart_after_panics};
use crate::log_messages::WORK_PANICKED;
use crate::planted::Bug;
use crate::report::QueueReport;

/// A key that is delayed for no longer than this waits for a burst to end or for the watch to catch up, not for a cloud.
const DUE_SOON: Duration = Duration::from_secs(2);

/// What became of the work on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done: failures are forgotten.
    Done,
    /// Requeued after exactly this long; failures count as before.
    AgainAfter(Duration),
    /// Requeued after a growing pause.
    Failed,
    /// Needs a change of the object or the configuration: requeued after the longest pause.
    UserAction,
}

impl Verdict {
    /// What an error of a cloud asks for.
    pub fn of(error: &CloudError) -> Self {
        if matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Denied) {
            // Permissions take effect late and tokens are rotated: most refusals of a credential pass by themselves.
            return Self::Failed;
        }
        match error.retry() {
            Retry::After(delay) => Self::AgainAfter(delay),
            Retry::Backoff => Self::Failed,
            Retry::UserAction => Self::UserAction,
            Retry::Never => Self::Done,
        }
    }

    /// How long the queue waits after it and so many failures before; `None` if the key does not come back by itself.
    pub(crate) fn retry_after(self, backoff: Backoff, failures: u32) -> Option<Duration> {
        match self {
            Self::Done => None,
            Self::AgainAfter(delay) => Some(delay),
            Self::Failed => Some(backoff.pause(failures.saturating_add(1))),
            Self::UserAction => Some(backoff.longest),
        }
    }
}

/// How urgent a key is. The more urgent are handed out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Urgency {
    /// New objects, which wait to be usable.
    New,
    /// Changes.
    #[default]
    Change,
    /// Refreshes, which can wait.
    Refresh,
}

/// Observes a queue. The manager turns it into metrics.
pub trait QueueObserver: Send + Sync {
    /// A key was added; `depth` keys wait now.
    fn added(&self, _depth: usize) {}
    /// A key was handed out after waiting this long; `depth` keys wait now.
    fn taken(&self, _waited: Duration, _depth: usize) {}
    /// Work on a key ended after this long.
    fn finished(&self, _worked: Duration) {}
    /// A key will be tried again.
    fn retried(&self) {}
    /// Work on a key panicked.
    fn panicked(&self) {}
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl QueueObserver for Unobserved {}

/// A queue of keys.
///
/// A key that is added while it waits is merged. One that is added while it is worked on is handed out again
/// afterwards. A failure delays only the key that failed, and adding a key ends its delay, because the cause of the
/// failure may be gone.
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
    /// Keys in work: since when, and how urgently they were added again meanwhile.
    working: BTreeMap<K, (Instant, Option<Urgency>)>,
    failures: BTreeMap<K, u32>,
    arrivals: u64,
    panics: u64,
    last_panic: Option<String>,
}

#[derive(Clone, Copy)]
enum Waiting {
    /// How urgently, as which arrival, and since when.
    Ready(Urgency, u64, Instant),
    /// Until then.
    Delayed(Instant),
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
                panics: 0,
                last_panic: None,
            }),
            changed: Notify::new(),
            backoff,
            observer,
        }
    }

    /// Adds a key to be worked on now, also if it was delayed.
    pub fn add(&self, key: K, urgency: Urgency) {
        let mut state = self.state.lock();
        if let Some((_, again)) = state.working.get_mut(&key) {
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
        self.state.lock().failures.remove(&key);
        self.add(key, urgency);
    }

    /// Forgets a key that waits, and its failures.
    pub fn remove(&self, key: &K) {
        let mut state = self.state.lock();
        state.take_out(key);
        state.failures.remove(key);
    }

    /// Ends the delays of all keys that failed: the cause may be gone.
    pub fn retry_failed_now(&self) {
        let mut state = self.state.lock();
        let failed: Vec<_> = state.failures.keys().cloned().collect();
        for key in failed {
            if matches!(state.waiting.get(&key), Some(Waiting::Delayed(_))) {
                state.make_ready(key, Urgency::Change, Instant::now());
                self.observer.added(state.ready.len());
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// How many keys wait to be handed out or are in work.
    pub fn load(&self) -> usize {
        let state = self.state.lock();
        state.ready.len() + state.working.len()
    }

    /// Whether nothing waits to be handed out or is in work, and no delayed key is due soon.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let soon = Instant::now() + DUE_SOON;
        let is_due = state.delayed.first().is_some_and(|(due, _)| *due <= soon);
        state.ready.is_empty() && state.working.is_empty() && !is_due
    }

    /// How it stands.
    pub fn report(&self) -> QueueReport {
        let state = self.state.lock();
        QueueReport {
            ready: state.ready.len(),
            working: state.working.len(),
            delayed: state.delayed.len(),
            panics: state.panics,
            last_panic: state.last_panic.clone(),
        }
    }

    /// Waits for the next key, and says how often work on it has failed in a row. It is in work until that is
    /// [finished](Self::finish).
    pub(crate) async fn next(&self) -> (K, u32) {
        loop {
            let changed = self.changed.notified();
            let next_due = match self.try_next() {
                Ok(next) => return next,
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

    /// A key, or when the next delayed one is due.
    fn try_next(&self) -> Result<(K, u32), Option<Instant>> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.release_due(now);
        let Some((_, _, key)) = state.ready.pop_first() else {
            return Err(state.delayed.first().map(|(due, _)| *due));
        };
        let waited = match state.waiting.remove(&key) {
            Some(Waiting::Ready(_, _, since)) => now.duration_since(since),
            _ => Duration::ZERO,
        };
        state.working.insert(key.clone(), (now, None));
        let failures = state.failures.get(&key).copied().unwrap_or(0);
        let depth = state.ready.len();
        drop(state);
        if depth > 0 {
            // A notification is one permit: pass it on while there is more.
            self.changed.notify_one();
        }
        self.observer.taken(waited, depth);
        Ok((key, failures))
    }

    /// Ends the work on a key.
    pub(crate) fn finish(&self, key: K, verdict: Verdict) {
        let mut state = self.state.lock();
        let Some((started, again)) = state.working.remove(&key) else {
            return;
        };
        self.observer.finished(started.elapsed());
        let failures = state.failures.get(&key).copied().unwrap_or(0);
        match verdict {
            Verdict::AgainAfter(_) => {}
            Verdict::Done => _ = state.failures.remove(&key),
            Verdict::Failed | Verdict::UserAction => {
                let failures = failures.saturating_add(1);
                state.failures.insert(key.clone(), failures);
            }
        }
        let delay = verdict.retry_after(self.backoff, failures);
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
}

impl<K: Ord + Clone> State<K> {
    /// Whether the key was not ready before. One that was keeps its place, and may become more urgent.
    fn make_ready(&mut self, key: K, urgency: Urgency, now: Instant) -> bool {
        let before = self.waiting.get(&key).copied();
        self.take_out(&key);
        let (urgency, arrival, since) = match before {
            Some(Waiting::Ready(earlier, arrival, since)) => (urgency.min(earlier), arrival, since),
            Some(Waiting::Delayed(_)) | None => {
                self.arrivals += 1;
                (urgency, self.arrivals, now)
            }
        };
        self.ready.insert((urgency, arrival, key.clone()));
        let ready = Waiting::Ready(urgency, arrival, since);
        self.waiting.insert(key, ready);
        !matches!(before, Some(Waiting::Ready(..)))
    }

    fn delay(&mut self, key: K, due: Instant) {
        self.delayed.insert((due, key.clone()));
        self.waiting.insert(key, Waiting::Delayed(due));
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
            Some(Waiting::Ready(urgency, arrival, _)) => {
                self.ready.remove(&(urgency, arrival, key.clone()));
            }
            Some(Waiting::Delayed(due)) => {
                self.delayed.remove(&(due, key.clone()));
            }
            None => {}
        }
    }
}

impl<K: Ord + Clone + Debug> Queue<K> {
    /// What became of the work. A panic is a bug in the program, but it concerns one key: the work on it failed, and
    /// that on all others goes on.
    async fn contained(&self, key: &K, work: impl Future<Output = Verdict>) -> Verdict {
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Verdict::Failed) if Bug::ForgetFailures.is_planted() => Verdict::Done,
            Ok(verdict) => verdict,
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                error!(?key, panic, "{WORK_PANICKED}");
                self.note_panic(format_args!("{key:?}"), panic);
                Verdict::Failed
            }
        }
    }
}

impl<K> Queue<K> {
    /// Counts a panic of the controller that this queue is for, also one outside of the work on a key.
    pub(crate) fn note_panic(&self, place: impl Display, panic: &str) {
        self.observer.panicked();
        let mut state = self.state.lock();
        state.panics += 1;
        state.last_panic = Some(format!("{place}: {panic}"));
    }
}

/// Works on keys, at most `at_once` of them, until `stop`; then finishes what was begun and returns. A caller that
/// cannot wait for that drops the future: what was cut short is found again by observing. Work that panics has failed.
async fn work<K, F, W>(queue: &Queue<K>, at_once: usize, stop: &CancellationToken, handle: F)
where
    K: Ord + Clone + Debug + Send,
    F: Fn(K, u32) -> W,
    W: Future<Output = Verdict> + Send,
{
    let mut running = FuturesUnordered::new();
    loop {
        let may_start = running.len() < at_once.max(1);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            (key, failures) = queue.next(), if may_start => {
                let work = handle(key.clone(), failures);
                running.push(async move {
                    let verdict = queue.contained(&key, work).await;
                    queue.finish(key, verdict);
                });
            }
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Runs a controller until `stop`: waits until it has `synced`, then [works](work), and does what goes on `beside`,
/// which begins anew after a panic.
pub(crate) async fn run<K, F, W, B>(
    (queue, at_once): (&Arc<Queue<K>>, usize),
    stop: &CancellationToken,
    synced: impl Future<Output = ()>,
    beside: impl Fn() -> B,
    handle: F,
) where
    K: Ord + Clone + Debug + Send,
    F: Fn(K, u32) -> W,
    W: Future<Output = Verdict> + Send,
    B: Future,
{
    if stop.run_until_cancelled(synced).await.is_none() {
        return;
    }
    let note = |panic: &str| queue.note_panic("beside the queue", panic);
    let beside = async {
        restart_after_panics("beside the queue", note, beside).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = work(queue, at_once, stop, handle) => {}
        () = beside => {}
    }
}

#[cfg(test)]
mod tests;
