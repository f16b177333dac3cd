use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn queue() -> Arc<Queue<&'static str>> {
    let backoff = Backoff {
        first: Duration::from_secs(5),
        longest: Duration::from_mins(5),
    };
    Arc::new(Queue::new(backoff, Arc::new(Unobserved)))
}

/// A key in work.
struct Job<'a> {
    queue: &'a Queue<&'static str>,
    key: &'static str,
    failures: u32,
}

impl Job<'_> {
    fn finish(self, verdict: Verdict) {
        self.queue.finish(self.key, verdict);
    }
}

/// The next key, if there is one within an hour.
async fn next<'a>(queue: &'a Queue<&'static str>) -> Option<Job<'a>> {
    let next = tokio::time::timeout(Duration::from_hours(1), queue.next());
    let (key, failures) = next.await.ok()?;
    Some(Job {
        queue,
        key,
        failures,
    })
}

async fn next_key(queue: &Queue<&'static str>) -> Option<&'static str> {
    let job = next(queue).await?;
    let key = job.key;
    job.finish(Verdict::Done);
    Some(key)
}

#[tokio::test(start_paused = true)]
async fn keys_are_merged_and_come_by_urgency_then_arrival() {
    let queue = queue();
    queue.add("refresh", Urgency::Refresh);
    queue.add("b", Urgency::Change);
    queue.add("a", Urgency::Change);
    queue.add("b", Urgency::Change);
    queue.add("new", Urgency::New);
    let mut order = Vec::new();
    while let Some(key) = next_key(&queue).await {
        order.push(key);
    }
    assert_eq!(order, ["new", "b", "a", "refresh"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_can_become_more_urgent_but_not_less() {
    let queue = queue();
    queue.add("first", Urgency::Change);
    queue.add("second", Urgency::Refresh);
    queue.add("second", Urgency::New);
    queue.add("second", Urgency::Refresh);
    assert_eq!(next_key(&queue).await, Some("second"));
    assert_eq!(next_key(&queue).await, Some("first"));
}

#[tokio::test(start_paused = true)]
async fn a_key_in_work_is_never_handed_out_twice_and_comes_again_if_added_meanwhile() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    let job = next(&queue).await.unwrap();
    queue.add("a", Urgency::Change);
    assert!(next(&queue).await.is_none(), "it is being worked on");
    job.finish(Verdict::Done);
    assert_eq!(next_key(&queue).await, Some("a"));
    assert!(next(&queue).await.is_none(), "merged into one");
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_each_time_and_success_forgets_them() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let before = Instant::now();
        let job = next(&queue).await.unwrap();
        pauses.push((before.elapsed().as_secs(), job.failures));
        job.finish(Verdict::Failed);
    }
    assert_eq!(pauses, [(0, 0), (5, 1), (10, 2)]);
    next(&queue).await.unwrap().finish(Verdict::Done);
    queue.add("a", Urgency::Change);
    assert_eq!(next(&queue).await.unwrap().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn adding_a_key_ends_its_delay() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    next(&queue).await.unwrap().finish(Verdict::UserAction);
    let before = Instant::now();
    queue.add("a", Urgency::Change);
    let job = next(&queue).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(job.failures, 1, "the failure still counts");
    job.finish(Verdict::Done);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_needs_a_person_waits_longest() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    next(&queue).await.unwrap().finish(Verdict::UserAction);
    let before = Instant::now();
    next(&queue).await.unwrap().finish(Verdict::Done);
    assert_eq!(before.elapsed(), Duration::from_mins(5));
}

#[tokio::test(start_paused = true)]
async fn an_exact_delay_neither_counts_nor_forgets_failures() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    next(&queue).await.unwrap().finish(Verdict::Failed);
    let job = next(&queue).await.unwrap();
    job.finish(Verdict::AgainAfter(Duration::from_secs(42)));
    let before = Instant::now();
    let job = next(&queue).await.unwrap();
    assert_eq!((before.elapsed().as_secs(), job.failures), (42, 1));
}

#[tokio::test(start_paused = true)]
async fn the_load_counts_what_waits_and_what_is_in_work() {
    let queue = queue();
    queue.add("later", Urgency::Change);
    next(&queue).await.unwrap().finish(Verdict::Failed);
    queue.add("a", Urgency::Change);
    queue.add("b", Urgency::Change);
    let job = next(&queue).await.unwrap();
    assert_eq!((queue.report().ready, queue.load()), (1, 2));
    job.finish(Verdict::Done);
    assert_eq!(queue.load(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_has_changed_begins_with_the_shortest_pause() {
    let queue = queue();
    queue.add("a", Urgency::Change);
    for _ in 0..3 {
        next(&queue).await.unwrap().finish(Verdict::Failed);
    }
    queue.add_anew("a", Urgency::Change);
    let (before, job) = (Instant::now(), next(&queue).await.unwrap());
    assert_eq!((before.elapsed(), job.failures), (Duration::ZERO, 0));
    job.finish(Verdict::Failed);
    assert_eq!(next(&queue).await.unwrap().failures, 1);
}

#[tokio::test(start_paused = true)]
async fn removed_keys_never_come() {
    let queue = queue();
    for (key, delay) in [("a", 10), ("gone", 1)] {
        queue.add(key, Urgency::Refresh);
        let job = next(&queue).await.unwrap();
        job.finish(Verdict::AgainAfter(Duration::from_secs(delay)));
    }
    queue.remove(&"gone");
    let before = Instant::now();
    assert_eq!(next_key(&queue).await, Some("a"));
    assert_eq!(before.elapsed().as_secs(), 10);
    assert!(next(&queue).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn several_waiters_each_get_a_key() {
    let queue = queue();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.next().await.0 })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in ["a", "b", "c"] {
        queue.add(key, Urgency::Change);
    }
    let mut keys = Vec::new();
    for waiter in waiters {
        keys.push(waiter.await.unwrap());
    }
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c"]);
}

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
    let finished = &Mutex::new(Vec::new());
    let handle = |key: &'static str, _failures| async move {
        stop.cancel();
        tokio::time::sleep(Duration::from_secs(5)).await;
        finished.lock().push(key);
        Verdict::Done
    };
    work(&queue, 1, stop, handle).await;
    assert_eq!(*finished.lock(), ["begun"]);
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
    assert_eq!(of(ErrorKind::Invalid), Verdict::UserAction);
    assert_eq!(of(ErrorKind::ImplementedElsewhere), Verdict::Done);
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_idle_when_nothing_is_to_be_done_soon() {
    let backoff = Backoff {
        first: Duration::from_secs(5),
        longest: Duration::from_secs(5),
    };
    let queue = Arc::new(Queue::new(backoff, Arc::new(Unobserved)));
    assert!(queue.is_idle());
    queue.add("a", Urgency::Change);
    assert!(!queue.is_idle(), "one is ready");
    let job = next(&queue).await.unwrap();
    assert!(!queue.is_idle(), "one is in work");
    job.finish(Verdict::AgainAfter(Duration::from_secs(1)));
    assert!(!queue.is_idle(), "one is due soon");
    next(&queue).await.unwrap().finish(Verdict::Failed);
    assert!(queue.is_idle(), "one waits for its retry");
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(!queue.is_idle(), "which is due by now");
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_one_key_which_is_counted_and_retried_while_others_go_on() {
    #[derive(Default)]
    struct Counted(AtomicUsize);
    impl QueueObserver for Counted {
        fn panicked(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let backoff = Backoff {
        first: Duration::from_secs(5),
        longest: Duration::from_mins(5),
    };
    let counted = Arc::<Counted>::default();
    let observer = Arc::<Counted>::clone(&counted);
    let queue = Arc::new(Queue::new(backoff, observer));
    queue.add("bad", Urgency::New);
    queue.add("good", Urgency::New);
    let began = Instant::now();
    let stop = CancellationToken::new();
    let worked = Mutex::new(Vec::new());
    let handle = |key: &'static str, failures| {
        worked
            .lock()
            .push((key, failures, began.elapsed().as_secs()));
        let (stop, attempts) = (&stop, failures);
        async move {
            // A key that panics after it has waited, as most work does.
            tokio::task::yield_now().await;
            assert!(key != "bad" || attempts == 2, "attempt {attempts}");
            if key == "bad" {
                stop.cancel();
            }
            Verdict::Done
        }
    };
    work(&queue, 1, &stop, handle).await;
    let expected = [("bad", 0, 0), ("good", 0, 0), ("bad", 1, 5), ("bad", 2, 15)];
    assert_eq!(*worked.lock(), expected);
    assert_eq!(counted.0.load(Ordering::SeqCst), 2);
    let report = queue.report();
    assert_eq!(report.panics, 2);
    assert_eq!(report.last_panic.as_deref(), Some("\"bad\": attempt 1"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_beside_the_work_is_counted_and_what_goes_on_there_begins_anew() {
    let queue = queue();
    let stop = CancellationToken::new();
    let loops = AtomicUsize::new(0);
    let beside = || {
        let run = loops.fetch_add(1, Ordering::SeqCst);
        let (queue, stop) = (&queue, &stop);
        async move {
            tokio::task::yield_now().await;
            assert!(run > 0, "planted");
            queue.add("key", Urgency::New);
            stop.cancelled().await;
        }
    };
    let handle = |_, _| {
        stop.cancel();
        std::future::ready(Verdict::Done)
    };
    run((&queue, 1), &stop, std::future::ready(()), beside, handle).await;
    assert_eq!(loops.load(Ordering::SeqCst), 2);
    let report = queue.report();
    let last = report.last_panic.as_deref();
    assert_eq!(
        (report.panics, last),
        (1, Some("beside the queue: planted"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_retried_at_once_when_its_cause_may_be_gone() {
    let queue = queue();
    for (key, verdict) in [
        ("failed", Verdict::Failed),
        ("user", Verdict::UserAction),
        ("waits", Verdict::AgainAfter(Duration::from_mins(1))),
    ] {
        queue.add(key, Urgency::New);
        next(&queue).await.unwrap().finish(verdict);
    }
    assert_eq!(queue.report().delayed, 3);
    queue.retry_failed_now();
    let report = queue.report();
    assert_eq!((report.ready, report.delayed), (2, 1));
    assert_eq!(next(&queue).await.unwrap().failures, 1);
}
