//! One story each.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::core::DynamicObject;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::link::{Fate, Link};
use super::support::{Running, clock, config, seconds, start};
use crate::election::{
    ElectionConfig, Elector, Ended, LeaseEvent, LeaseEvents, LeaseStore, Leadership, Loss,
    NoLeaseEvents, Record, StoreError,
};

const ALWAYS_RELEASED: Ended = Ended::Stopped { released: true };

/// A leader, alone.
async fn leader(cluster: &Arc<Cluster>) -> (Running, Arc<Link>) {
    leader_by(Link::new(cluster)).await
}

async fn leader_by(link: Arc<Link>) -> (Running, Arc<Link>) {
    let leader = start(config("a"), &link);
    leader.election.leading().await.unwrap();
    (leader, link)
}

#[tokio::test(start_paused = true)]
async fn a_fresh_lease_goes_to_the_first_candidate() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let since = Timestamp::from_second(1_770_000_000).unwrap();
    assert_eq!(
        cluster.record(),
        Record {
            holder: "a".to_owned(),
            lease_seconds: 15,
            acquired: Some(since),
            renewed: Some(since),
            transitions: 0,
        }
    );
    let leading = Leadership::Leading { since, epoch: 0 };
    assert_eq!(*leader.status().borrow(), leading);
    assert!(leader.election.is_leader());
    assert_eq!(leader.election.lease_name(), "ccm");
    tokio::task::yield_now().await;
    assert_eq!(leader.events(), [LeaseEvent::BecameLeader]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_every_retry_period_and_keeps_its_acquire_time() {
    let cluster = Cluster::new();
    let (leader, link) = leader(&cluster).await;
    let acquired = cluster.record().acquired;
    sleep(Duration::from_millis(60_500)).await;
    let writes = cluster.writes();
    assert_eq!(writes.len(), 31, "one creation and a renewal every 2 s");
    let last = cluster.record();
    assert_eq!(last.acquired, acquired);
    assert_ne!(last.renewed, acquired);
    assert_eq!(last.transitions, 0);
    assert_eq!(leader.election.slow_path_total(), 0);
    assert_eq!(
        link.requests.load(Ordering::Relaxed),
        32,
        "a renewal is one request"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_candidate_waits_and_says_for_whom() {
    let cluster = Cluster::new();
    let (_leader, _) = leader(&cluster).await;
    let second = start(config("b"), &Link::new(&cluster));
    sleep(seconds(120)).await;
    let waiting = Leadership::Standby {
        holder: Some("a".to_owned()),
    };
    assert_eq!(*second.status().borrow(), waiting);
    assert!(!second.election.fence().is_open());
    assert_eq!(second.events(), []);
}

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
        assert_eq!(first.stop().await, ALWAYS_RELEASED, "{case}");
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
    let told = Arc::clone(&leader.told);
    assert_eq!(leader.stop().await, ALWAYS_RELEASED);
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
        *told.0.lock().unwrap(),
        [LeaseEvent::BecameLeader, LeaseEvent::StoppedLeading]
    );
}

#[tokio::test(start_paused = true)]
async fn the_fence_is_closed_before_the_lease_is_given_back() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let fence = leader.election.fence();
    cluster.witnessed_by(Box::new(move |write| {
        assert!(!write.after.holder.is_empty() || !fence.is_open());
    }));
    assert_eq!(leader.stop().await, ALWAYS_RELEASED);
    assert_eq!(cluster.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_followed_when_its_lease_expires() {
    for (case, link) in [("watch", Link::new as fn(&_) -> _), ("poll", Link::without_watch)] {
        let cluster = Cluster::new();
        let (first, _) = leader(&cluster).await;
        let second = start(config("b"), &link(&cluster));
        sleep(seconds(31)).await;
        first.crash().await;
        let last_renewal = cluster.writes().last().unwrap().at;
        second.election.leading().await.unwrap();
        let took = last_renewal.elapsed();
        // Without the watch the last renewal is seen up to one pause late.
        let most = if case == "watch" { 15_100 } else { 19_500 };
        assert!(took >= seconds(15), "{case}: {took:?}");
        assert!(took <= Duration::from_millis(most), "{case}: {took:?}");
        assert_eq!(cluster.record().transitions, 1, "{case}");
    }
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
async fn a_leader_that_is_cut_off_stops_before_anybody_may_follow() {
    for (case, fate) in [
        (
            "no request arrives",
            Fate {
                lost: true,
                ..Fate::default()
            },
        ),
        (
            "every answer takes longer than a request may",
            Fate {
                there: seconds(60),
                ..Fate::default()
            },
        ),
        (
            "the server refuses",
            Fate {
                refused: Some(StoreError::Failed("overloaded (503)".to_owned())),
                ..Fate::default()
            },
        ),
    ] {
        let cluster = Cluster::new();
        let (first, link) = leader(&cluster).await;
        let second = start(config("b"), &Link::new(&cluster));
        sleep(seconds(31)).await;
        let last_renewal = cluster.writes().last().unwrap().at;
        link.turn(fate);

        first.election.fence().closed().await;
        assert_eq!(last_renewal.elapsed().as_secs(), 10, "{case}");
        let ended = first.task.await.unwrap();
        assert!(
            matches!(&ended, Ended::Lost(Loss::NotRenewed { .. })),
            "{case}: {ended:?}"
        );
        second.election.leading().await.unwrap();
        assert!(last_renewal.elapsed() >= seconds(15), "{case}");
        assert_eq!(first.told.0.lock().unwrap().len(), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_names_the_last_error_and_is_final() {
    let cluster = Cluster::new();
    let (leader, link) = leader(&cluster).await;
    link.turn(Fate {
        refused: Some(StoreError::Failed("overloaded (503)".to_owned())),
        ..Fate::default()
    });
    let loss = Loss::NotRenewed {
        last_error: Some("overloaded (503)".to_owned()),
    };
    let election = leader.election.clone();
    assert_eq!(leader.task.await.unwrap(), Ended::Lost(loss.clone()));
    assert_eq!(election.leading().await.unwrap_err(), Leadership::Lost(loss));
    assert!(!election.is_leader());
    assert_eq!(cluster.record().holder, "a", "nothing is released");
    sleep(seconds(40)).await;
    let health = election.health().check(Instant::now());
    assert!(health.is_err(), "a process that goes on is not healthy");
}

#[tokio::test(start_paused = true)]
async fn one_short_outage_costs_nothing() {
    let cluster = Cluster::new();
    let (leader, link) = leader(&cluster).await;
    sleep(seconds(31)).await;
    link.cut();
    sleep(seconds(4)).await;
    link.heal();
    sleep(seconds(60)).await;
    assert!(leader.election.fence().is_open());
    assert_eq!(leader.election.slow_path_total(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_is_found_out_by_reading() {
    let cluster = Cluster::new();
    let (leader, link) = leader_by(Link::without_watch(&cluster)).await;
    let mut first = true;
    link.turn_each(move || Fate {
        answer_lost: std::mem::take(&mut first),
        ..Fate::default()
    });
    sleep(seconds(30)).await;
    assert!(leader.election.fence().is_open());
    assert_eq!(leader.election.slow_path_total(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_answer_is_lost_is_found_out_by_reading() {
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
    let fence = candidate.election.leading().await.unwrap();
    assert_eq!(fence.epoch(), Some(0));
    assert_eq!(cluster.writes().len(), 2, "created, then renewed as ours");
}

#[tokio::test(start_paused = true)]
async fn a_leader_steps_down_as_soon_as_it_sees_another_holder() {
    for (case, holder, loss) in [
        ("another", "b", "b"),
        ("nobody", "", ""),
    ] {
        let cluster = Cluster::new();
        let (leader, _) = leader(&cluster).await;
        sleep(seconds(31)).await;
        cluster.edit(|record| record.holder = holder.to_owned());
        let edited = Instant::now();
        let ended = leader.task.await.unwrap();
        let holder = loss.to_owned();
        assert_eq!(ended, Ended::Lost(Loss::Superseded { holder }), "{case}");
        assert!(
            edited.elapsed() < Duration::from_millis(100),
            "{case}: the watch told it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_state_from_the_watch_does_not_make_a_leader_step_down() {
    let cluster = Cluster::new();
    let (first, _) = leader(&cluster).await;
    let late = Link::new(&cluster);
    late.turn(Fate {
        back: Duration::from_millis(900),
        ..Fate::default()
    });
    let second = start(config("b"), &late);
    sleep(seconds(31)).await;
    assert_eq!(first.stop().await, ALWAYS_RELEASED);
    second.election.leading().await.unwrap();
    sleep(seconds(60)).await;
    assert!(second.election.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_put_back_by_its_leader() {
    let cluster = Cluster::new();
    let (first, _) = leader(&cluster).await;
    assert_eq!(first.stop().await, ALWAYS_RELEASED);
    let (second, _) = leader(&cluster).await;
    let before = cluster.record();
    assert_eq!(before.transitions, 1);
    cluster.delete();
    sleep(seconds(3)).await;
    assert!(second.election.fence().is_open());
    let after = cluster.record();
    assert_eq!(after.transitions, 1, "the count goes on");
    assert_eq!(after.acquired, before.acquired);
}

#[tokio::test(start_paused = true)]
async fn a_role_without_watch_is_asked_once_and_then_polls() {
    let cluster = Cluster::new();
    let (_leader, _) = leader(&cluster).await;
    let link = Link::without_watch(&cluster);
    let _second = start(config("b"), &link);
    sleep(seconds(600)).await;
    assert_eq!(link.watches.load(Ordering::Relaxed), 1);
    let looks = link.requests.load(Ordering::Relaxed);
    assert!((136..=300).contains(&looks), "every 2 to 4.4 s: {looks}");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_fails_is_not_hammered() {
    let cluster = Cluster::new();
    let link = Link::new(&cluster);
    link.turn(Fate {
        refused: Some(StoreError::Failed("overloaded (503)".to_owned())),
        ..Fate::default()
    });
    let candidate = start(config("a"), &link);
    sleep(seconds(600)).await;
    let looks = link.requests.load(Ordering::Relaxed);
    assert!((136..=300).contains(&looks), "every 2 to 4.4 s: {looks}");
    link.heal();
    candidate.election.leading().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stops_leaves_the_lease_alone() {
    let cluster = Cluster::new();
    let (leader, _) = leader(&cluster).await;
    let second = start(config("b"), &Link::new(&cluster));
    sleep(seconds(31)).await;
    let (told, status) = (Arc::clone(&second.told), second.status());
    assert_eq!(second.stop().await, ALWAYS_RELEASED);
    assert_eq!(*status.borrow(), Leadership::Stopped);
    assert_eq!(*told.0.lock().unwrap(), []);
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
    assert_eq!(candidate.stop().await, ALWAYS_RELEASED);
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
    assert_eq!(began.elapsed().as_secs(), 10, "the renew deadline");
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
    assert_eq!(leader.stop().await, ALWAYS_RELEASED);
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
    let strange = crate::election::StoredLease::read(strange).unwrap();
    link.update(&strange, lease.record()).await.unwrap();
    assert_eq!(first.stop().await, ALWAYS_RELEASED);
    let (_second, _) = leader(&cluster).await;
    let spec = cluster.get().unwrap().object().data["spec"].clone();
    assert_eq!(spec["strategy"], "OldestEmulationVersion");
    assert_eq!(spec["leaseTransitions"], 1);
}

/// Never finishes.
struct Stuck;

#[async_trait]
impl LeaseEvents for Stuck {
    async fn tell(&self, _lease: &DynamicObject, _event: LeaseEvent, _at: Timestamp) {
        std::future::pending().await
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
    assert_eq!(task.await.unwrap(), ALWAYS_RELEASED);
    assert_eq!(began.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_configuration_is_refused() {
    let wrong = ElectionConfig {
        renew_deadline: seconds(15),
        ..config("a")
    };
    let link = Link::new(&Cluster::new());
    let refused = Elector::new(wrong, link, Arc::new(NoLeaseEvents), clock());
    let problems = refused.err().expect("it is wrong").to_string();
    assert!(problems.contains("leader-elect-lease-duration"), "{problems}");
}
