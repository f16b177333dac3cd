//! Datagrams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use cloudkeel_local_cloud::simulated_cloud::wire::{
    HealthCheck, Listener, Probe, Protocol, Target, TargetAt, TargetState,
};
use cloudkeel_local_cloud::{Health, PlaneSettings};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::lab::{DEADLINE, Front, Lab};

/// Answers each datagram with its name and what it heard.
struct Echo {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn echoes<const N: usize>(names: [&'static str; N]) -> [Echo; N] {
    for _ in 0..100 {
        let mut all = Vec::new();
        let mut port = 0;
        for (name, last) in names.into_iter().zip(1..) {
            let address = SocketAddr::new(IpAddr::from([127, 0, 7, last]), port);
            let Ok(socket) = UdpSocket::bind(address).await else {
                break;
            };
            let address = socket.local_addr().expect("an address");
            port = address.port();
            let task = tokio::spawn(async move {
                let mut buffer = vec![0; 65_535];
                while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                    if length == 0 {
                        continue; // a health check
                    }
                    let answer = [name.as_bytes(), b":", &buffer[..length]].concat();
                    // Who left does not want an answer.
                    let _ = socket.send_to(&answer, from).await;
                }
            });
            all.push(Echo { address, task });
        }
        if let Ok(all) = all.try_into() {
            return all;
        }
    }
    panic!("no port is free on {N} addresses at once");
}

async fn balanced(lab: &Lab, targets: &[Echo]) -> Front {
    lab.balancer(&[], |new| {
        new.listeners = vec![Listener {
            protocol: Protocol::Udp,
            port: 5353,
            target_port: targets[0].address.port(),
            health_check: HealthCheck {
                probe: Probe::Udp,
                interval_seconds: 1,
                timeout_seconds: 1,
                retries: 1,
                ..HealthCheck::default()
            },
        }];
        new.targets = targets
            .iter()
            .map(|target| Target {
                at: TargetAt::Ip(target.address.ip()),
                state: TargetState::Serving,
            })
            .collect();
    })
    .await
}

async fn client(front: &Front, address: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).await.expect("a socket");
    socket.connect(front.address).await.expect("connected");
    socket
}

async fn ask(socket: &UdpSocket, word: &[u8]) -> Option<Vec<u8>> {
    socket.send(word).await.expect("sent");
    let mut buffer = vec![0; 65_535];
    let heard = timeout(Duration::from_secs(2), socket.recv(&mut buffer)).await;
    let length = heard.ok()?.ok()?;
    Some(buffer[..length].to_vec())
}

#[tokio::test]
async fn datagrams_of_a_client_go_to_one_target_and_answers_come_back() {
    let lab = Lab::new().await;
    let targets = echoes(["a", "b"]).await;
    let front = balanced(&lab, &targets).await;
    let (one, two) = (
        client(&front, Ipv4Addr::new(127, 0, 8, 1)).await,
        client(&front, Ipv4Addr::new(127, 0, 8, 2)).await,
    );
    let first = ask(&one, b"1").await.expect("an answer");
    let second = ask(&two, b"1").await.expect("an answer");
    assert_ne!(first, second, "two clients, two targets");
    for _ in 0..5 {
        assert_eq!(ask(&one, b"1").await.as_ref(), Some(&first));
        assert_eq!(ask(&two, b"1").await.as_ref(), Some(&second));
    }
    let large = vec![7; 8_000];
    let answer = ask(&one, &large).await.expect("an answer");
    assert_eq!(answer[2..], large[..]);
    let stats = lab.targets(&front).await;
    let flows: Vec<_> = stats.iter().map(|t| (t.connections, t.active)).collect();
    assert_eq!(flows, [(1, 1), (1, 1)]);
}

#[tokio::test]
async fn a_silent_client_is_forgotten() {
    let lab = Lab::with(|options| {
        options.plane = PlaneSettings {
            udp_idle: Duration::from_millis(100),
            ..options.plane
        };
    })
    .await;
    let targets = echoes(["a"]).await;
    let front = balanced(&lab, &targets).await;
    let socket = client(&front, Ipv4Addr::new(127, 0, 8, 1)).await;
    assert_eq!(ask(&socket, b"1").await.as_deref(), Some(&b"a:1"[..]));
    lab.until(&front, "the flow ends", |targets| targets[0].active == 0)
        .await;
    assert_eq!(ask(&socket, b"2").await.as_deref(), Some(&b"a:2"[..]));
    assert_eq!(lab.targets(&front).await[0].connections, 2);
}

#[tokio::test]
async fn a_client_of_a_target_that_fails_finds_another() {
    let lab = Lab::new().await;
    let [first, second] = echoes(["a", "b"]).await;
    let all = [first, second];
    let front = balanced(&lab, &all).await;
    let socket = client(&front, Ipv4Addr::new(127, 0, 8, 1)).await;
    let answer = ask(&socket, b"1").await.expect("an answer");
    let [first, second] = all;
    let (gone, kept) = if answer == b"a:1" {
        (first, second)
    } else {
        (second, first)
    };
    let gone_at = gone.address;
    drop(gone);
    lab.until(&front, "it is found out", |targets| {
        let target = targets.iter().find(|t| t.address == gone_at);
        target.is_some_and(|t| t.health == Health::Unhealthy)
    })
    .await;
    let asking = async {
        loop {
            if let Some(answer) = ask(&socket, b"2").await {
                return answer;
            }
        }
    };
    let answer = timeout(DEADLINE, asking).await.expect("an answer in time");
    assert!(answer.ends_with(b":2"), "{answer:?}");
    drop(kept);
}

#[tokio::test]
async fn datagrams_from_outside_the_ranges_are_dropped() {
    let lab = Lab::new().await;
    let targets = echoes(["a"]).await;
    let front = balanced(&lab, &targets).await;
    let socket = client(&front, Ipv4Addr::new(127, 0, 8, 1)).await;
    assert!(ask(&socket, b"1").await.is_some());
    lab.edit(&front, |balancer| {
        balancer.source_ranges = ["127.0.9.0/24".parse().expect("a range")].into();
    })
    .await;
    assert_eq!(
        ask(&socket, b"2").await,
        None,
        "not even for a client that was in"
    );
    assert_eq!(lab.stats(&front).await.ports[0].denied, 1);
}
