//! Targets and balancers that go: what was begun may finish, nothing new begins.

use std::time::Duration;

use cloudkeel_local_cloud::simulated_cloud::wire::TargetState;
use cloudkeel_local_cloud::{Phase, PlaneSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::lab::{Backend, DEADLINE, Lab, first_line};

async fn echoes(stream: &mut TcpStream) -> bool {
    if stream.write_all(b"ping").await.is_err() {
        return false;
    }
    let mut word = [0; 4];
    let read = timeout(DEADLINE, stream.read_exact(&mut word));
    read.await.expect("an answer in time").is_ok() && &word == b"ping"
}

#[tokio::test]
async fn a_draining_target_finishes_what_it_has_and_gets_nothing_new() {
    let lab = Lab::new().await;
    let backends = Backend::several(["a", "b"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab.balancer(&targets, |_| {}).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = front.connect().await;
        let name = first_line(&mut stream).await.expect("an answer");
        held.push((name, stream));
    }
    lab.edit(&front, |balancer| {
        for target in &mut balancer.targets {
            if target.at == backends[0].at() {
                target.state = TargetState::Draining;
            }
        }
    })
    .await;
    for _ in 0..6 {
        assert_eq!(front.ask().await.as_deref(), Some("b"));
    }
    for (name, stream) in &mut held {
        assert!(echoes(stream).await, "{name} carries on");
    }
    let stats = lab.targets(&front).await;
    let draining = stats.iter().find(|t| t.address == backends[0].address);
    let draining = draining.expect("it is still shown");
    assert_eq!((draining.phase, draining.active), (Phase::Draining, 1));
    drop(held);
    lab.until(&front, "it has nothing left", |targets| {
        targets.iter().all(|target| target.active == 0)
    })
    .await;
}

#[tokio::test]
async fn a_removed_target_may_finish_and_is_cut_when_the_drain_time_is_over() {
    let lab = Lab::with(|options| {
        options.plane = PlaneSettings {
            drain: Duration::from_secs(1),
            ..options.plane
        };
    })
    .await;
    let backend = Backend::one("a").await;
    let front = lab.balancer(&[&backend], |_| {}).await;
    let mut stream = front.connect().await;
    assert_eq!(first_line(&mut stream).await.as_deref(), Some("a"));
    lab.edit(&front, |balancer| balancer.targets.clear()).await;
    assert!(echoes(&mut stream).await, "right after it was removed");
    assert_eq!(lab.targets(&front).await[0].phase, Phase::Leaving);
    assert_eq!(front.ask().await, None, "nothing new");
    let cut = timeout(DEADLINE, stream.read_u8())
        .await
        .expect("an end in time");
    assert!(cut.is_err(), "cut after the drain time");
    lab.until(&front, "it is forgotten", <[_]>::is_empty).await;
}

#[tokio::test]
async fn a_balancer_that_is_deleted_closes_its_frontend_and_lets_connections_finish() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let front = lab.balancer(&[&backend], |_| {}).await;
    let mut stream = front.connect().await;
    assert_eq!(first_line(&mut stream).await.as_deref(), Some("a"));
    lab.edit(&front, |balancer| balancer.listeners.clear())
        .await;
    let refused = async {
        while TcpStream::connect(front.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, refused)
        .await
        .expect("the frontend closes");
    assert!(echoes(&mut stream).await, "what was begun goes on");
}

#[tokio::test]
async fn an_end_of_the_cloud_waits_for_connections() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let front = lab.balancer(&[&backend], |_| {}).await;
    let mut stream = front.connect().await;
    assert_eq!(first_line(&mut stream).await.as_deref(), Some("a"));
    let closing = tokio::spawn(lab.local.close());
    let refused = async {
        while TcpStream::connect(front.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, refused)
        .await
        .expect("the frontend closes");
    assert!(echoes(&mut stream).await, "what was begun goes on");
    assert!(!closing.is_finished());
    drop(stream);
    timeout(DEADLINE, closing)
        .await
        .expect("it ends")
        .expect("well");
}
