//! A leader whose other threads are busy.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::link::Link;
use super::support::{RELEASED, RecordedEvents, clock, config};
use crate::election::{ElectionConfig, Elector, RunningElection};

/// More renewals than a leader can miss.
const RENEWALS: usize = 20;

/// Blocks this thread until the condition holds, for a minute at most.
#[expect(
    clippy::disallowed_methods,
    reason = "blocking the runtime is what this is about"
)]
fn block_until(what: impl Fn() -> bool) -> bool {
    for _ in 0..6_000 {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[tokio::test]
async fn a_busy_main_thread_does_not_lose_the_lease() {
    let cluster = Cluster::new();
    let link = Link::new(&cluster);
    let config = ElectionConfig {
        retry_period: Duration::from_millis(20),
        ..config("a")
    };
    let stop = CancellationToken::new();
    let make = move || {
        let events = std::sync::Arc::new(RecordedEvents::default());
        let elector = Elector::unchecked(config, link, events, clock());
        Ok::<_, std::io::Error>(elector)
    };
    let running = RunningElection::on_own_thread(make, stop.clone());
    let running = running.await.unwrap();
    let fence = running.election().leading().await.unwrap();
    let before = cluster.writes().len();
    // From here on nothing else runs on this thread, the runtime of this test included.
    let renewed = block_until(|| cluster.writes().len() >= before + RENEWALS);
    assert!(renewed, "{} writes", cluster.writes().len());
    assert!(fence.is_open());
    stop.cancel();
    assert_eq!(running.ended().await, Some(RELEASED));
    assert!(!fence.is_open());
}

#[tokio::test]
async fn who_drops_a_candidate_closes_its_fence() {
    let cluster = Cluster::new();
    let link = Link::new(&cluster);
    let make = move || {
        let events = std::sync::Arc::new(RecordedEvents::default());
        let elector = Elector::unchecked(config("a"), link, events, clock());
        Ok::<_, std::io::Error>(elector)
    };
    let running = RunningElection::on_own_thread(make, CancellationToken::new());
    let running = running.await.unwrap();
    let fence = running.election().leading().await.unwrap();
    drop(running);
    fence.closed().await;
    assert_eq!(cluster.record().holder, "a", "as after a crash");
}

#[tokio::test]
async fn an_elector_that_cannot_be_made_is_an_error() {
    let make = || Err(std::io::Error::other("no way"));
    let failed = RunningElection::on_own_thread(make, CancellationToken::new()).await;
    assert_eq!(failed.err().unwrap().to_string(), "no way");
}
