//! How candidates stop, and what they leave behind.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::core::DynamicObject;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::link::{Fate, Link};
use super::support::{RELEASED, clock, config, leader, leader_by, seconds, start};
use crate::election::RELEASE_TIMEOUT;
use crate::election::{
    ElectionConfig, Elector, Ended, Leadership, LeaseEvent, LeaseEvents, LeaseStore, Loss, Record,
    StoreError, StoredLease,
};

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once_by_who_watches_and_soon_by_who_polls() {
    for (case, watch, most) in [("watch", true, 100), ("poll", false, 4_400)] {
        let cluster = Cluster::new();
        let (first, _) = leader(&cluster).await;
        let link = if watch {
            Link::new(&cluster)
        } else {
            Link::without_watch(&cluster)
        };
        let second = start(config("b"), &link);
        sleep(seconds(31)).await;

        let began = Instant::now();
        assert_eq!(first.stop().await, RELEASED, "{case}");
        let fence = second.election.leading().await.unwrap();
        let took = began.elapsed();
        assert!(took <= Duration::from_millis(most), "{case}: {took:?}");
        assert!(fence.is_open(), "{case}");
        assert_eq!(fence.epoch(), Some(1), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_has_the_shape_that_go_writes() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    sleep(seconds(60)).await;
    let recorded = Arc::clone(&leader.recorded);
    assert_eq!(leader.stop().await, RELEASED);
    let now = Timestamp::from_second(1_770_000_060).unwrap();
    assert_eq!(
        cluster.record(),
        Record {
            holder: String::new(),
            lease_seconds: 1,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        }
    );
    assert_eq!(
        *recorded.0.lock().unwrap(),
        [LeaseEvent::BecameLeader, LeaseEvent::StoppedLeading]
    );
}

#[tokio::test(start_paused = true)]
async fn the_fence_is_closed_before_the_lease_is_given_back() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let fence = leader.election.fence();
    cluster.observed_by(Box::new(move |write| {
        assert!(!write.after.holder.is_empty() || !fence.is_open());
    }));
    assert_eq!(leader.stop().await, RELEASED);
    assert_eq!(cluster.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_crash_closes_the_fence_and_releases_nothing() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let (fence, mut status) = (leader.election.fence(), leader.status());
    leader.crash().await;
    assert!(!fence.is_open());
    assert!(fence.token().is_cancelled());
    assert_eq!(cluster.record().holder, "a");
    let lost = Leadership::Lost(Loss::Abandoned);
    assert_eq!(*status.borrow_and_update(), lost);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stops_leaves_the_lease_alone() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let second = start(config("b"), &Link::new(&cluster));
    sleep(seconds(31)).await;
    let (recorded, status) = (Arc::clone(&second.recorded), second.status());
    assert_eq!(second.stop().await, RELEASED);
    assert_eq!(*status.borrow(), Leadership::Stopped);
    assert_eq!(*recorded.0.lock().unwrap(), []);
    assert_eq!(cluster.record().holder, "a");
    assert!(leader.election.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stops_while_it_acquires_gives_the_lease_back() {
    let cluster = Cluster::new();
    let link = Link::without_watch(&cluster);
    let mut requests = 0;
    link.turn_each(move || {
        requests += 1;
        Fate {
            answer_lost: requests == 2,
            ..Fate::default()
        }
    });
    let candidate = start(config("a"), &link);
    sleep(seconds(1)).await;
    assert_eq!(cluster.record().holder, "a", "it does not know yet");
    assert_eq!(candidate.stop().await, RELEASED);
    assert_eq!(cluster.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_does_not_come_through_ends_in_bounded_time() {
    let cluster = Cluster::new();
    let (leader, link) = leader(&cluster).await;
    link.cut();
    let began = Instant::now();
    let ended = leader.stop().await;
    assert_eq!(ended, Ended::Stopped { released: false });
    assert_eq!(began.elapsed(), RELEASE_TIMEOUT);
    assert_eq!(cluster.record().holder, "a");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_after_a_conflict() {
    let cluster = Cluster::new();
    let (leader, link) = leader_by(Link::without_watch(&cluster)).await;
    let mut requests = 0;
    link.turn_each(move || {
        requests += 1;
        Fate {
            refused: (requests == 2).then_some(StoreError::Conflict),
            ..Fate::default()
        }
    });
    assert_eq!(leader.stop().await, RELEASED);
    assert_eq!(cluster.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_on_request() {
    let cluster = Cluster::new();
    let keeping = ElectionConfig {
        release_on_stop: false,
        ..config("a")
    };
    let candidate = start(keeping, &Link::new(&cluster));
    candidate.election.leading().await.unwrap();
    let fence = candidate.election.fence();
    let ended = candidate.stop().await;
    assert_eq!(ended, Ended::Stopped { released: false });
    assert!(!fence.is_open());
    assert_eq!(cluster.record().holder, "a");
}

#[tokio::test(start_paused = true)]
async fn fields_of_others_survive_a_change_of_holder() {
    let cluster = Cluster::new();
    let (first, link) = leader(&cluster).await;
    let lease = cluster.get().unwrap();
    let mut strange = lease.object().clone();
    strange.data["spec"]["strategy"] = "OldestEmulationVersion".into();
    let strange = StoredLease::read(strange).unwrap();
    link.update(&strange, lease.record()).await.unwrap();
    assert_eq!(first.stop().await, RELEASED);
    let (_second, _) = leader(&cluster).await;
    let spec = cluster.get().unwrap().object().data["spec"].clone();
    assert_eq!(spec["strategy"], "OldestEmulationVersion");
    assert_eq!(spec["leaseTransitions"], 1);
}

/// Never finishes.
struct Stuck;

#[async_trait]
impl LeaseEvents for Stuck {
    async fn record(&self, _lease: &DynamicObject, _event: LeaseEvent, _at: Timestamp) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_written_hold_nothing_up() {
    let cluster = Cluster::new();
    let elector = Elector::new(config("a"), Link::new(&cluster), Arc::new(Stuck), clock());
    let elector = elector.unwrap();
    let (election, stop) = (elector.election(), CancellationToken::new());
    let task = tokio::spawn(elector.run(stop.clone()));
    election.leading().await.unwrap();
    sleep(seconds(60)).await;
    assert!(election.is_leader());
    let began = Instant::now();
    stop.cancel();
    assert_eq!(task.await.unwrap(), RELEASED);
    assert_eq!(began.elapsed().as_secs(), 1);
}
