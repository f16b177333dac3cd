//! Who gets a connection.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use cloudkeel_local_cloud::simulated_cloud::wire::{Affinity, Algorithm};

use crate::lab::{Backend, Lab, by, count};

#[tokio::test]
async fn round_robin_spreads_evenly() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b", "c"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab.balancer(&targets, by(Algorithm::RoundRobin)).await;
    let mut heard = Vec::new();
    for _ in 0..30 {
        heard.push(front.ask().await.expect("an answer"));
    }
    for name in ["a", "b", "c"] {
        assert_eq!(count(&heard, name), 10, "{heard:?}");
    }
}

#[tokio::test]
async fn the_fewest_connections_get_the_next_one() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab
        .balancer(&targets, by(Algorithm::LeastConnections))
        .await;
    let mut held = Vec::new();
    let mut heard = Vec::new();
    for _ in 0..10 {
        let mut stream = front.connect().await;
        let name = crate::lab::first_line(&mut stream).await;
        heard.push(name.expect("an answer"));
        held.push(stream);
    }
    assert_eq!((count(&heard, "a"), count(&heard, "b")), (5, 5));
    // Everything that "a" has ends; it gets the next five.
    let names = heard.clone();
    let mut kept = Vec::new();
    for (stream, name) in held.into_iter().zip(&names) {
        if name == "b" {
            kept.push(stream);
        }
    }
    let is_free = |name: &str| backends[0].name == name;
    lab.until(&front, "the connections have ended", |targets| {
        targets.iter().all(|t| {
            t.active
                == if t.address == backends[0].address {
                    0
                } else {
                    5
                }
        })
    })
    .await;
    for _ in 0..5 {
        let mut stream = front.connect().await;
        let name = crate::lab::first_line(&mut stream)
            .await
            .expect("an answer");
        assert!(is_free(&name), "{name}");
        kept.push(stream);
    }
}

#[tokio::test]
async fn a_client_finds_its_target_by_its_address() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b", "c"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab.balancer(&targets, by(Algorithm::SourceIp)).await;
    let mut heard = Vec::new();
    for last in 1..=40 {
        let client = Ipv4Addr::new(127, 0, 4, last);
        let first = front.ask_from(client).await.expect("an answer");
        let again = front.ask_from(client).await.expect("an answer");
        assert_eq!(first, again, "{client}");
        heard.push(first);
    }
    for name in ["a", "b", "c"] {
        assert!(count(&heard, name) > 3, "clients are spread: {heard:?}");
    }
}

#[tokio::test]
async fn a_client_sticks_to_its_target_although_they_take_turns() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab
        .balancer(&targets, |new| {
            new.affinity = Some(Affinity { seconds: 3600 });
        })
        .await;
    let (one, two) = (Ipv4Addr::new(127, 0, 4, 1), Ipv4Addr::new(127, 0, 4, 2));
    let first = front.ask_from(one).await.expect("an answer");
    let second = front.ask_from(two).await.expect("an answer");
    assert_ne!(first, second);
    for _ in 0..6 {
        assert_eq!(front.ask_from(one).await, Some(first.clone()));
        assert_eq!(front.ask_from(two).await, Some(second.clone()));
    }
    // Its target goes: it moves, once.
    let gone = backends.iter().find(|b| b.name == first).expect("a target");
    lab.edit(&front, |balancer| {
        balancer.targets.retain(|t| t.at != gone.at());
    })
    .await;
    assert_eq!(front.ask_from(one).await, Some(second.clone()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_at_once_are_all_served() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b", "c", "d"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab
        .balancer(&targets, by(Algorithm::LeastConnections))
        .await;
    let clients = (0..200).map(|_| async { front.ask().await.expect("an answer") });
    let heard = futures::future::join_all(clients).await;
    assert_eq!(heard.len(), 200);
    let stats = lab.targets(&front).await;
    assert_eq!(
        stats.iter().map(|target| target.connections).sum::<u64>(),
        200
    );
    assert!(stats.iter().all(|target| target.failures == 0), "{stats:?}");
    for backend in &backends {
        let taken = backend.taken.load(Ordering::Relaxed);
        assert!(taken >= count(&heard, backend.name), "{}", backend.name);
        assert!(count(&heard, backend.name) > 20, "spread: {heard:?}");
    }
}
