use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;

const LONG: Duration = Duration::from_hours(2);

fn paced(interval_ms: u64, burst: u32) -> Limiter {
    Limiter::new(LimiterSettings {
        rate: Some(RequestRate {
            interval: Duration::from_millis(interval_ms),
            burst,
        }),
        ..LimiterSettings::default()
    })
}

fn budget_headers(limit: u64, remaining: u64, reset_seconds: u64) -> HeaderMap {
    [
        ("ratelimit-limit", limit),
        ("ratelimit-remaining", remaining),
        ("ratelimit-reset", reset_seconds),
    ]
    .into_iter()
    .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from(value)))
    .collect()
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

#[tokio::test(start_paused = true)]
async fn a_limiter_without_limits_lets_every_call_through() {
    let limiter = Limiter::default();
    for _ in 0..1000 {
        let permit = limiter
            .acquire(Priority::Background, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(permit.waited(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_kept_after_the_burst() {
    let limiter = paced(500, 2);
    let mut waited = Vec::new();
    for _ in 0..5 {
        let permit = limiter.acquire(Priority::Normal, LONG).await.unwrap();
        waited.push(permit.waited().as_millis());
    }
    assert_eq!(waited, [0, 0, 500, 500, 500]);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_is_kept_by_priority() {
    for (remaining, background, normal, urgent) in [
        (100, true, true, true),
        (21, true, true, true),
        (20, false, true, true),
        (11, false, true, true),
        (10, false, false, true),
        (1, false, false, true),
        (0, false, false, false),
    ] {
        for (priority, allowed) in [
            (Priority::Background, background),
            (Priority::Normal, normal),
            (Priority::Urgent, urgent),
        ] {
            let limiter = Limiter::default();
            let seen = limiter.learn(&budget_headers(100, remaining, 30), now());
            assert_eq!(
                seen,
                Some(BudgetRecord {
                    limit: 100,
                    remaining
                })
            );
            let got = limiter.acquire(priority, Duration::ZERO).await;
            assert_eq!(got.is_ok(), allowed, "{priority:?} with {remaining} left");
            if let Err(held) = got {
                assert_eq!(held.wait, Duration::from_secs(30));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_call_waits_for_the_reset_if_it_may() {
    let limiter = Limiter::default();
    limiter.learn(&budget_headers(100, 5, 30), now());
    let permit = limiter.acquire(Priority::Background, LONG).await.unwrap();
    assert_eq!(permit.waited(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_gradual_refill_is_waited_for_one_request_at_a_time() {
    let limiter = Limiter::new(LimiterSettings {
        refill: Refill::Gradual,
        ..LimiterSettings::default()
    });
    limiter.learn(&budget_headers(3600, 720, 2880), now());
    for expected in [1, 1, 1] {
        let permit = limiter.acquire(Priority::Background, LONG).await.unwrap();
        assert_eq!(permit.waited(), Duration::from_secs(expected));
    }
    let urgent = limiter.acquire(Priority::Urgent, Duration::ZERO).await;
    assert!(urgent.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_blocks_all_callers() {
    let limiter = Limiter::default();
    limiter.refused(Some(Duration::from_secs(8)));
    let held = limiter
        .acquire(Priority::Urgent, Duration::from_secs(7))
        .await
        .unwrap_err();
    assert_eq!(held.wait, Duration::from_secs(8));
    let permit = limiter
        .acquire(Priority::Urgent, Duration::from_secs(8))
        .await
        .unwrap();
    assert_eq!(permit.waited(), Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn a_shorter_refusal_does_not_open_the_gate_earlier() {
    let limiter = Limiter::default();
    limiter.refused(Some(Duration::from_secs(8)));
    limiter.refused(Some(Duration::from_secs(1)));
    let permit = limiter.acquire(Priority::Urgent, LONG).await.unwrap();
    assert_eq!(permit.waited(), Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn refusals_without_a_time_close_the_gate_longer_and_longer() {
    let limiter = Limiter::default();
    let mut waited = Vec::new();
    for _ in 0..8 {
        limiter.refused(None);
        let permit = limiter.acquire(Priority::Normal, LONG).await.unwrap();
        waited.push(permit.waited().as_secs());
    }
    assert_eq!(waited, [1, 2, 4, 8, 16, 32, 60, 60]);
    limiter.served();
    limiter.refused(None);
    let permit = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    assert_eq!(permit.waited().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn refusals_of_requests_that_were_under_way_together_count_as_one() {
    let limiter = Limiter::default();
    let mut waited = Vec::new();
    for _ in 0..3 {
        for _ in 0..20 {
            limiter.refused(None);
        }
        let permit = limiter.acquire(Priority::Normal, LONG).await.unwrap();
        waited.push(permit.waited().as_secs());
    }
    assert_eq!(waited, [1, 2, 4]);
}

/// A hundred blocked requests; each gets its response after 5 ms, as `answer` says. Their deadline is the very
/// moment when they are unblocked.
async fn callers_at_the_gate(limiter: &Limiter, answer: fn(&Limiter, u32)) -> u32 {
    limiter.refused(Some(Duration::from_secs(15)));
    let sent = Arc::new(AtomicU32::new(0));
    let mut waiting = JoinSet::new();
    for _ in 0..100 {
        let (limiter, sent) = (limiter.clone(), Arc::clone(&sent));
        waiting.spawn(async move {
            let longest = Duration::from_secs(15);
            let Ok(mut permit) = limiter.acquire(Priority::Normal, longest).await else {
                return;
            };
            let number = sent.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
            permit.finished();
            answer(&limiter, number);
        });
    }
    waiting.join_all().await;
    sent.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn one_request_finds_out_for_all_whether_the_gate_opens() {
    let refused = |limiter: &Limiter, _| limiter.refused(Some(Duration::from_mins(1)));
    assert_eq!(callers_at_the_gate(&Limiter::default(), refused).await, 1);

    let begun = Instant::now();
    let served = |limiter: &Limiter, _| limiter.served();
    assert_eq!(callers_at_the_gate(&Limiter::default(), served).await, 100);
    assert_eq!(
        begun.elapsed(),
        Duration::from_millis(15_010),
        "then all at once"
    );

    let begun = Instant::now();
    let broken = |limiter: &Limiter, number| {
        if number == 2 {
            limiter.served();
        }
    };
    assert_eq!(callers_at_the_gate(&Limiter::default(), broken).await, 100);
    assert_eq!(
        begun.elapsed(),
        Duration::from_millis(15_020),
        "who got no answer is followed by one other"
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_hangs_does_not_hold_the_others_for_long() {
    let limiter = Limiter::default();
    limiter.refused(Some(Duration::from_secs(1)));
    let _hangs = limiter.acquire(Priority::Background, LONG).await.unwrap();
    let next = limiter.acquire(Priority::Urgent, LONG).await.unwrap();
    assert_eq!(next.waited(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_closes_sends_away_at_once_those_who_cannot_wait_that_long() {
    let limiter = paced(1000, 1);
    let _first = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let closed = Instant::now();
    let mut waiting = Vec::new();
    for longest in [500, 5, 6] {
        let limiter = limiter.clone();
        waiting.push(tokio::spawn(async move {
            let longest = Duration::from_secs(longest);
            let got = limiter.acquire(Priority::Normal, longest).await;
            (got.is_ok(), closed.elapsed().as_secs())
        }));
    }
    tokio::task::yield_now().await;
    limiter.refused(Some(Duration::from_mins(1)));
    let mut results = Vec::new();
    for waiter in waiting {
        results.push(waiter.await.unwrap());
    }
    assert_eq!(results, [(true, 60), (false, 0), (false, 0)]);
}

#[tokio::test(start_paused = true)]
async fn callers_whose_deadline_is_the_reset_itself_may_still_go() {
    let limiter = Limiter::default();
    limiter.learn(&budget_headers(100, 0, 30), now());
    let mut waiting = JoinSet::new();
    for priority in [Priority::Background, Priority::Normal, Priority::Urgent] {
        let limiter = limiter.clone();
        waiting.spawn(async move {
            let permit = limiter.acquire(priority, Duration::from_secs(30)).await;
            permit.map(|permit| permit.waited().as_secs())
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.join_all().await, [Ok(30); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_was_next_keeps_its_deadline_if_the_one_before_may_not_go() {
    let limiter = Limiter::default();
    limiter.learn(&budget_headers(100, 0, 30), now());
    let began = Instant::now();
    let (first, second) = (limiter.clone(), limiter.clone());
    let mut first = Box::pin(async move { first.acquire(Priority::Urgent, LONG).await });
    assert!(poll_once(&mut first).await.is_none(), "until the reset");
    tokio::time::advance(Duration::from_secs(30)).await;
    let longest = Duration::from_secs(5);
    let mut second = Box::pin(async move { second.acquire(Priority::Normal, longest).await });
    assert!(
        poll_once(&mut second).await.is_none(),
        "the first goes this very moment"
    );
    limiter.learn(&budget_headers(100, 0, 600), now());
    let second = tokio::spawn(async move { (second.await.is_ok(), began.elapsed().as_secs()) });
    assert!(first.await.is_ok());
    assert_eq!(second.await.unwrap(), (false, 35));
}

/// The result of polling a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| match Pin::new(&mut *future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_are_counted_against_what_the_cloud_says() {
    let limiter = Limiter::default();
    let in_flight = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let list = || limiter.acquire(Priority::Background, Duration::ZERO);
    limiter.learn(&budget_headers(100, 21, 30), now());
    assert!(
        list().await.is_err(),
        "the one under way may not be in that number"
    );
    limiter.learn(&budget_headers(100, 22, 30), now());
    assert!(list().await.is_ok(), "only one is under way");
    drop(in_flight);
    limiter.learn(&budget_headers(100, 21, 30), now());
    assert!(list().await.is_ok(), "none is under way");
}

#[tokio::test(start_paused = true)]
async fn the_urgent_go_first_and_equals_in_order() {
    let limiter = paced(1000, 1);
    let _first = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = JoinSet::new();
    for (name, priority) in [
        ("list", Priority::Background),
        ("work 1", Priority::Normal),
        ("proof 1", Priority::Urgent),
        ("work 2", Priority::Normal),
        ("proof 2", Priority::Urgent),
    ] {
        let (limiter, order) = (limiter.clone(), Arc::clone(&order));
        waiting.spawn(async move {
            let _permit = limiter.acquire(priority, LONG).await.unwrap();
            order.lock().unwrap().push(name);
        });
        tokio::task::yield_now().await;
    }
    waiting.join_all().await;
    let order = order.lock().unwrap();
    assert_eq!(*order, ["proof 1", "proof 2", "work 1", "work 2", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_gives_its_place_to_the_next() {
    let limiter = paced(1000, 1);
    let _first = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let other = limiter.clone();
    let doomed = tokio::spawn(async move { other.acquire(Priority::Urgent, LONG).await });
    tokio::task::yield_now().await;
    let other = limiter.clone();
    let next = tokio::spawn(async move { other.acquire(Priority::Normal, LONG).await });
    tokio::task::yield_now().await;
    doomed.abort();
    let permit = next.await.unwrap().unwrap();
    assert_eq!(permit.waited(), Duration::from_secs(1), "not two turns");
}

#[tokio::test(start_paused = true)]
async fn a_caller_too_far_back_in_the_queue_fails_at_once() {
    let limiter = paced(1000, 1);
    let _first = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..10 {
        let limiter = limiter.clone();
        waiting.spawn(async move { limiter.acquire(Priority::Normal, LONG).await.is_ok() });
    }
    tokio::task::yield_now().await;
    let before = Instant::now();
    let held = limiter
        .acquire(Priority::Normal, Duration::from_secs(5))
        .await
        .unwrap_err();
    assert_eq!(held.wait, Duration::from_secs(11));
    assert_eq!(Instant::now(), before, "it did not wait to say so");
    assert_eq!(waiting.join_all().await, [true; 10]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_runs_out_behind_others_is_sent_away() {
    let limiter = paced(1000, 1);
    let _first = limiter.acquire(Priority::Normal, LONG).await.unwrap();
    let other = limiter.clone();
    let patient = tokio::spawn(async move {
        other
            .acquire(Priority::Normal, Duration::from_secs(1))
            .await
    });
    tokio::task::yield_now().await;
    let more_urgent = AtomicU32::new(0);
    for _ in 0..3 {
        limiter.acquire(Priority::Urgent, LONG).await.unwrap();
        more_urgent.fetch_add(1, Ordering::Relaxed);
    }
    assert!(patient.await.unwrap().is_err());
    assert_eq!(more_urgent.load(Ordering::Relaxed), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the callers and their deadlines, no more go than the burst and the rate allow, no caller waits
    /// longer than its deadline, and every caller gets a result.
    #[test]
    fn the_rate_holds_for_any_number_of_callers(
        burst in 1u32..5,
        interval_ms in 1u64..2_000,
        callers in prop::collection::vec((0u64..5_000, 0u64..20_000, 0usize..3), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (start, went) = runtime.block_on(async move {
            let limiter = paced(interval_ms, burst);
            let start = Instant::now();
            let mut callers: JoinSet<_> = callers
                .into_iter()
                .map(|(arrives, longest, priority)| {
                    let limiter = limiter.clone();
                    let priority =
                        [Priority::Background, Priority::Normal, Priority::Urgent][priority];
                    async move {
                        tokio::time::sleep(Duration::from_millis(arrives)).await;
                        let longest = Duration::from_millis(longest);
                        let permit = limiter.acquire(priority, longest).await.ok()?;
                        // The runtime's timer counts in milliseconds.
                        assert!(permit.waited() <= longest + Duration::from_millis(1));
                        Some(Instant::now())
                    }
                })
                .collect();
            let mut went = Vec::new();
            while let Some(result) = callers.join_next().await {
                went.extend(result.unwrap());
            }
            went.sort();
            (start, went)
        });
        prop_assert!(!went.is_empty());
        let interval = Duration::from_millis(interval_ms);
        for (at, first) in went.iter().enumerate() {
            for (after, last) in went.iter().enumerate().skip(at) {
                let count = u32::try_from(after - at + 1).unwrap();
                let allowed = burst + u32::try_from(
                    (*last - *first).as_nanos() / interval.as_nanos()
                ).unwrap();
                prop_assert!(
                    count <= allowed,
                    "{count} went from {:?} to {:?}", *first - start, *last - start
                );
            }
        }
    }
}
