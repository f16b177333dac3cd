//! Changes under load: nothing that is established is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cloudkeel_local_cloud::simulated_cloud::wire::{Affinity, Algorithm};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::lab::{Backend, Lab, first_line};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_of_a_balancer_drops_a_connection() {
    const CLIENTS: usize = 20;
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b", "c"]).await;
    let targets: Vec<_> = backends.iter().take(2).collect();
    let front = lab.balancer(&targets, |_| {}).await;
    let done = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = front.connect().await;
        first_line(&mut stream).await.expect("an answer");
        let (done, rounds) = (Arc::clone(&done), Arc::clone(&rounds));
        clients.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                stream.write_all(b"ping").await?;
                let mut word = [0; 4];
                stream.read_exact(&mut word).await?;
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), std::io::Error>(())
        }));
    }
    for round in 0..20_usize {
        let before = rounds.load(Ordering::Relaxed);
        lab.edit(&front, |balancer| match round % 5 {
            0 => balancer.algorithm = Algorithm::LeastConnections,
            1 => balancer.targets.push(backends[2].as_target()),
            2 => balancer.affinity = Some(Affinity { seconds: 60 }),
            3 => balancer.listeners[0].health_check.interval_seconds += 1,
            _ => {
                balancer
                    .targets
                    .retain(|target| target.at != backends[2].at());
                balancer.algorithm = Algorithm::RoundRobin;
                balancer.affinity = None;
            }
        })
        .await;
        assert!(
            front.ask().await.is_some(),
            "new clients are served, round {round}"
        );
        while rounds.load(Ordering::Relaxed) < before + CLIENTS {
            tokio::task::yield_now().await;
        }
    }
    done.store(true, Ordering::Relaxed);
    let mut dropped = 0;
    for client in clients {
        dropped += usize::from(client.await.expect("the client ran").is_err());
    }
    assert_eq!(dropped, 0, "connections were dropped");
}
