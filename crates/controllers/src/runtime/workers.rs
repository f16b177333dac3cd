//! Workers: so many keys at once, until told to stop.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Retry};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::{Job, Queue};
use crate::planted::Bug;

/// What became of the work on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing more to do until there is news.
    Done,
    /// Look again after exactly this long.
    AgainAfter(Duration),
    /// Try again after a growing pause.
    Failed,
    /// Only a person can help: try again at the slowest pace.
    NeedsPerson,
}

impl Verdict {
    /// What an error of a cloud asks for.
    pub fn of(error: &CloudError) -> Self {
        match error.retry() {
            Retry::After(delay) => Self::AgainAfter(delay),
            Retry::Backoff => Self::Failed,
            Retry::NeedsPerson => Self::NeedsPerson,
            Retry::Never => Self::Done,
        }
    }
}

/// Works on keys, at most `at_once` of them, until `stop`; then finishes what was begun and returns.
/// Whoever cannot wait for that drops the future: what was cut short is found again by observing.
pub async fn work<K, F, W>(
    queue: &Arc<Queue<K>>,
    at_once: usize,
    stop: &CancellationToken,
    handle: F,
) where
    K: Ord + Clone + Send,
    F: Fn(K, u32) -> W,
    W: Future<Output = Verdict> + Send,
{
    let mut running = FuturesUnordered::new();
    loop {
        let has_room = running.len() < at_once.max(1);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            job = queue.next(), if has_room => {
                if let Some(key) = job.key().cloned() {
                    let work = handle(key, job.failures());
                    running.push(async move { settle(job, work.await) });
                }
            }
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
    while running.next().await.is_some() {}
}

fn settle<K: Ord + Clone>(job: Job<K>, verdict: Verdict) {
    match verdict {
        Verdict::Done => job.done(),
        Verdict::AgainAfter(delay) => job.again_after(delay),
        Verdict::Failed if Bug::ForgetFailures.is_planted() => job.done(),
        Verdict::Failed => job.failed(),
        Verdict::NeedsPerson => job.failed_for_good(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{Backoff, Unobserved, Urgency};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_are_worked_on_side_by_side_but_never_more_than_allowed() {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(1),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        for key in 0..10 {
            queue.add(key, Urgency::Change);
        }
        let stop = CancellationToken::new();
        let (running, most, done) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        let handle = |_key: i32, _failures| async {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            if done.fetch_add(1, Ordering::SeqCst) == 9 {
                stop.cancel();
            }
            Verdict::Done
        };
        work(&queue, 3, &stop, handle).await;
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert_eq!(done.load(Ordering::SeqCst), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_begun_is_finished_after_the_stop_and_nothing_new_begins() {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(1),
        };
        let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
        queue.add("begun", Urgency::New);
        queue.add("waiting", Urgency::Refresh);
        let stop = &CancellationToken::new();
        let finished = &std::sync::Mutex::new(Vec::new());
        let handle = |key: &'static str, _failures| async move {
            stop.cancel();
            tokio::time::sleep(Duration::from_secs(5)).await;
            finished.lock().unwrap().push(key);
            Verdict::Done
        };
        work(&queue, 1, stop, handle).await;
        assert_eq!(*finished.lock().unwrap(), ["begun"]);
    }

    #[test]
    fn an_error_says_what_happens_to_its_key() {
        use cloudkeel_api::ErrorKind;
        let of = |kind| Verdict::of(&CloudError::new("op", kind, "m"));
        let five = Duration::from_secs(5);
        let throttled = ErrorKind::Throttled {
            retry_after: Some(five),
        };
        assert_eq!(of(throttled), Verdict::AgainAfter(five));
        assert_eq!(of(ErrorKind::Unavailable), Verdict::Failed);
        assert_eq!(of(ErrorKind::Invalid), Verdict::NeedsPerson);
        assert_eq!(of(ErrorKind::ImplementedElsewhere), Verdict::Done);
    }
}
