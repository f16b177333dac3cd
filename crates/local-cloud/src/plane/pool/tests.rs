use cloudkeel_provider_local::wire::Algorithm;

use super::*;

const DRAIN: Duration = Duration::from_secs(10);

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 80).into()
}

fn desired(last: u8, state: TargetState) -> DesiredTarget {
    DesiredTarget {
        at: TargetAt::Machine(last.into()),
        address: address(last),
        state,
    }
}

fn serving(lasts: &[u8]) -> Vec<DesiredTarget> {
    let desired_targets = lasts
        .iter()
        .map(|last| desired(*last, TargetState::Serving));
    desired_targets.collect()
}

fn client(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn round_robin() -> Rules {
    Rules::plain(Algorithm::RoundRobin)
}

/// A pool whose targets all passed a check.
fn healthy(rules: Rules, lasts: &[u8]) -> Arc<Pool> {
    let pool = Pool::new(rules.clone(), DRAIN);
    pool.update(rules, &serving(lasts));
    for target in pool.to_check(false) {
        target.record(Ok::<(), String>(()), 3);
    }
    pool
}

fn chosen(pool: &Pool) -> Option<SocketAddr> {
    let lease = pool.choose(client(1), &[])?;
    Some(lease.target().address)
}

#[tokio::test(start_paused = true)]
async fn a_draining_target_gets_nothing_new_and_what_it_has_ends_with_the_drain_time() {
    let pool = healthy(round_robin(), &[1, 2]);
    let leases: Vec<_> = (0..2).filter_map(|_| pool.choose(client(1), &[])).collect();
    let mut desired_targets = serving(&[1, 2]);
    desired_targets[0].state = TargetState::Draining;
    pool.update(round_robin(), &desired_targets);
    for _ in 0..4 {
        assert_eq!(chosen(&pool), Some(address(2)));
    }
    let drained = leases.iter().find(|l| l.target().address == address(1));
    let kept = leases.iter().find(|l| l.target().address == address(2));
    let (drained, kept) = (drained.unwrap(), kept.unwrap());
    let begun = Instant::now();
    drained.over().await;
    assert_eq!(begun.elapsed(), DRAIN);
    let waited = tokio::time::timeout(DRAIN * 9, kept.over()).await;
    assert!(waited.is_err(), "the other target goes on");
}

#[tokio::test(start_paused = true)]
async fn being_asked_again_gives_no_more_time_and_serving_again_takes_the_end_away() {
    let pool = healthy(round_robin(), &[1]);
    let lease = pool.choose(client(1), &[]).unwrap();
    let begun = Instant::now();
    pool.update(round_robin(), &[desired(1, TargetState::Draining)]);
    tokio::time::sleep(DRAIN / 2).await;
    pool.update(round_robin(), &[]);
    assert_eq!(pool.members()[0].1, Phase::Leaving);
    lease.over().await;
    assert_eq!(begun.elapsed(), DRAIN);

    let pool = healthy(round_robin(), &[1]);
    let lease = pool.choose(client(1), &[]).unwrap();
    pool.update(round_robin(), &[]);
    tokio::time::sleep(DRAIN / 2).await;
    pool.update(round_robin(), &serving(&[1]));
    let waited = tokio::time::timeout(DRAIN * 9, lease.over()).await;
    assert!(waited.is_err(), "it serves again");
    assert_eq!(pool.members().len(), 1, "it is the same target");
    assert_eq!(chosen(&pool), Some(address(1)));
}

#[tokio::test]
async fn a_target_that_left_is_forgotten_with_its_last_connection() {
    let pool = healthy(round_robin(), &[1]);
    let lease = pool.choose(client(1), &[]);
    pool.update(round_robin(), &[]);
    assert_eq!(pool.members().len(), 1);
    assert!(chosen(&pool).is_none());
    drop(lease);
    assert!(pool.members().is_empty());
}

#[tokio::test]
async fn unhealthy_targets_are_passed_over_and_come_back_with_one_good_check() {
    let pool = healthy(round_robin(), &[1, 2]);
    let members = pool.members();
    let (first, second) = (&members[0].0, &members[1].0);
    for failures in 0..3 {
        assert_eq!(first.health(), Health::Healthy, "{failures} failures");
        first.record(Err("no answer"), 3);
    }
    assert_eq!(first.health(), Health::Unhealthy);
    assert_eq!(first.complaint().as_deref(), Some("no answer"));
    assert_eq!(chosen(&pool), Some(address(2)));
    assert_eq!(chosen(&pool), Some(address(2)));
    for _ in 0..3 {
        second.record(Err("no answer"), 3);
    }
    assert_eq!(chosen(&pool), None);
    first.record(Ok::<(), String>(()), 3);
    assert_eq!(chosen(&pool), Some(address(1)));
}

#[tokio::test]
async fn targets_of_which_nothing_is_known_are_used_only_if_none_is_healthy() {
    let pool = Pool::new(round_robin(), DRAIN);
    pool.update(round_robin(), &serving(&[1]));
    assert_eq!(chosen(&pool), Some(address(1)));
    pool.members()[0].0.record(Ok::<(), String>(()), 1);
    pool.update(round_robin(), &serving(&[1, 2]));
    for _ in 0..4 {
        assert_eq!(chosen(&pool), Some(address(1)));
    }
    assert_eq!(
        pool.choose(client(1), &[address(1)])
            .unwrap()
            .target()
            .address,
        address(2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_sticks_until_it_was_away_too_long_or_its_target_is_not_usable() {
    let rules = Rules {
        affinity: Some(Duration::from_mins(1)),
        ..round_robin()
    };
    let pool = healthy(rules.clone(), &[1, 2, 3]);
    let at = |last| pool.choose(client(last), &[]).unwrap().target().address;
    let (one, two) = (at(1), at(2));
    assert_ne!(one, two, "clients are still spread");
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!((at(1), at(2)), (one, two));
    }
    let fewer: Vec<_> = serving(&[1, 2, 3])
        .into_iter()
        .filter(|desired| desired.address != one)
        .collect();
    pool.update(rules, &fewer);
    let moved = at(1);
    assert_ne!(moved, one);
    assert_eq!(at(1), moved, "and sticks there");
    assert_eq!(at(2), two, "others do not move");
}

#[tokio::test]
async fn the_fewest_connections_are_counted_as_they_are_given() {
    let rules = Rules::plain(Algorithm::LeastConnections);
    let pool = healthy(rules, &[1, 2]);
    let leases: Vec<_> = (0..10)
        .filter_map(|_| pool.choose(client(1), &[]))
        .collect();
    let of = |last| {
        leases
            .iter()
            .filter(|l| l.target().address == address(last))
            .count()
    };
    assert_eq!((of(1), of(2)), (5, 5));
    drop(
        leases
            .into_iter()
            .filter(|l| l.target().address == address(2))
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        pool.members().iter().map(|(t, _)| t.active()).sum::<u64>(),
        0
    );
}
