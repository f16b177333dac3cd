//! Who leads, and how the lease is kept and lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::link::{Fate, Link};
use super::support::{RELEASED, clock, config, leader, leader_by, seconds, start};
use crate::election::{
    ElectionConfig, Elector, Ended, Leadership, LeaseEvent, Loss, NoLeaseEvents, Record, StoreError,
};

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
        error: None,
    };
    assert_eq!(*second.status().borrow(), waiting);
    assert!(!second.election.fence().is_open());
    assert_eq!(second.events(), []);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_read_the_lease_names_its_holder_only_while_it_lasts() {
    let cluster = Cluster::new();
    let (_leader, _) = leader(&cluster).await;
    let link = Link::without_watch(&cluster);
    let second = start(config("b"), &link);
    sleep(seconds(10)).await;
    link.turn_each(|| Fate {
        refused: Some(StoreError::Forbidden("no leases for you".to_owned())),
        ..Fate::default()
    });
    let seen = |holder: Option<&str>| {
        let Leadership::Standby { holder: of, error } = second.status().borrow().clone() else {
            panic!("it stands by")
        };
        assert!(error.unwrap().contains("no leases for you"));
        assert_eq!(of.as_deref(), holder);
    };
    sleep(seconds(4)).await;
    seen(Some("a"));
    sleep(seconds(60)).await;
    seen(None);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_followed_when_its_lease_expires() {
    for (case, link) in [
        ("watch", Link::new as fn(&_) -> _),
        ("poll", Link::without_watch),
    ] {
        let cluster = Cluster::new();
        let (first, _) = leader(&cluster).await;
        let second = start(config("b"), &link(&cluster));
        sleep(seconds(31)).await;
        first.crash().await;
        let last_renewal = cluster.writes().last().unwrap().at;
        second.election.leading().await.unwrap();
        let took = last_renewal.elapsed();
        // Without the watch, the last renewal is observed up to one pause late.
        let most = if case == "watch" { 15_100 } else { 19_500 };
        assert!(took >= seconds(15), "{case}: {took:?}");
        assert!(took <= Duration::from_millis(most), "{case}: {took:?}");
        assert_eq!(cluster.record().transitions, 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_may_lead() {
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
        assert_eq!(first.recorded.0.lock().unwrap().len(), 2, "{case}");
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
    assert_eq!(
        election.leading().await.unwrap_err(),
        Leadership::Lost(loss)
    );
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
    for (case, holder, loss) in [("another", "b", "b"), ("none", "", "")] {
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
            "{case}: the watch reported it"
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
    assert_eq!(first.stop().await, RELEASED);
    second.election.leading().await.unwrap();
    sleep(seconds(60)).await;
    assert!(second.election.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_put_back_by_its_leader() {
    let cluster = Cluster::new();
    let (first, _) = leader(&cluster).await;
    assert_eq!(first.stop().await, RELEASED);
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
async fn a_wrong_configuration_is_refused() {
    let wrong = ElectionConfig {
        renew_deadline: seconds(15),
        ..config("a")
    };
    let link = Link::new(&Cluster::new());
    let refused = Elector::new(wrong, link, Arc::new(NoLeaseEvents), clock());
    let problems = refused.err().expect("it is wrong").to_string();
    assert!(
        problems.contains("leader-elect-lease-duration"),
        "{problems}"
    );
}
