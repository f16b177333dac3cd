//! What a connection carries.

use std::net::Ipv4Addr;

use cloudkeel_local_cloud::simulated_cloud::wire::ProxyProtocol;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::lab::{Backend, DEADLINE, Lab, first_line, listener};

/// Bytes that are never the same for long.
fn noise(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|_| random.u8(..)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_transfer_arrives_whole_and_is_counted() {
    const LENGTH: usize = 32 * 1024 * 1024;
    let lab = Lab::new().await;
    let backend = Backend::one("echo").await;
    let front = lab.balancer(&[&backend], |_| {}).await;
    let mut stream = front.connect().await;
    assert_eq!(first_line(&mut stream).await.as_deref(), Some("echo"));
    let sent = noise(LENGTH);
    let (mut from, mut to) = stream.into_split();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        to.write_all(&sent).await.expect("it takes everything");
        to.shutdown().await.expect("it takes the end");
    });
    let mut heard = Vec::with_capacity(LENGTH);
    timeout(DEADLINE * 2, from.read_to_end(&mut heard))
        .await
        .expect("everything in time")
        .expect("a good end");
    sending.await.expect("the sender is done");
    assert!(
        heard == expected,
        "{} of {LENGTH} bytes came back",
        heard.len()
    );
    lab.until(&front, "everything is counted", |targets| {
        let bytes = u64::try_from(LENGTH).expect("it fits");
        targets[0].bytes_in == bytes && targets[0].bytes_out == bytes + 5 && targets[0].active == 0
    })
    .await;
}

#[tokio::test]
async fn who_has_said_everything_still_hears_the_answer() {
    let lab = Lab::new().await;
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = server.local_addr().expect("an address");
    let answering = tokio::spawn(async move {
        loop {
            let (mut stream, _) = server.accept().await.expect("a connection");
            let mut question = Vec::new();
            stream
                .read_to_end(&mut question)
                .await
                .expect("the whole question");
            if question.is_empty() {
                continue; // a health check
            }
            let answer = [b"you said: ".as_slice(), &question].concat();
            stream
                .write_all(&answer)
                .await
                .expect("it takes the answer");
            return;
        }
    });
    let front = lab
        .balancer(&[], |new| {
            new.listeners = vec![listener(8080, address.port())];
            new.targets = vec![target(address.ip())];
        })
        .await;
    let mut stream = front.connect().await;
    stream
        .write_all(b"all of it")
        .await
        .expect("it takes the question");
    stream.shutdown().await.expect("it takes the end");
    let mut answer = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut answer))
        .await
        .expect("an answer in time")
        .expect("a good end");
    assert_eq!(answer, "you said: all of it");
    answering.await.expect("the server is done");
}

fn target(ip: std::net::IpAddr) -> cloudkeel_local_cloud::simulated_cloud::wire::Target {
    use cloudkeel_local_cloud::simulated_cloud::wire::{Target, TargetAt, TargetState};
    Target {
        at: TargetAt::Ip(ip),
        state: TargetState::Serving,
    }
}

/// The next connection that says something, and what it says first.
async fn first_words(server: &TcpListener, length: usize) -> Vec<u8> {
    let hearing = async {
        loop {
            let (mut stream, _) = server.accept().await.expect("a connection");
            let mut words = vec![0; length];
            if stream.read_exact(&mut words).await.is_ok() {
                return words;
            }
        }
    };
    timeout(DEADLINE, hearing).await.expect("words in time")
}

#[tokio::test]
async fn targets_learn_who_the_client_is() {
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let lab = Lab::new().await;
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = server.local_addr().expect("an address");
        let (tell, reported) = tokio::sync::oneshot::channel();
        // Checks of a bare connection also come with a header; those of the client have its port.
        let cloud = lab.local.cloud().clone();
        let front = {
            let new = cloudkeel_local_cloud::simulated_cloud::wire::NewBalancer {
                name: "proxied".to_owned(),
                listeners: vec![listener(8080, address.port())],
                targets: vec![target(address.ip())],
                proxy_protocol: Some(version),
                ..Default::default()
            };
            let balancer = cloud.add_balancer(new).expect("a balancer");
            cloud.settle().await.expect("it works");
            std::net::SocketAddr::new(balancer.addresses[0], 8080)
        };
        let mut client = TcpStream::connect(front).await.expect("a connection");
        let from = client.local_addr().expect("an address");
        client
            .write_all(b"hello")
            .await
            .expect("it takes the words");
        let expected = match version {
            ProxyProtocol::V1 => format!(
                "PROXY TCP4 {} {} {} 8080\r\nhello",
                from.ip(),
                front.ip(),
                from.port()
            )
            .into_bytes(),
            ProxyProtocol::V2 => {
                let octets = |ip| match ip {
                    std::net::IpAddr::V4(ip) => ip.octets(),
                    std::net::IpAddr::V6(ip) => panic!("{ip} is not IPv4"),
                };
                let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
                header.extend(octets(from.ip()));
                header.extend(octets(front.ip()));
                header.extend(from.port().to_be_bytes());
                header.extend(8080_u16.to_be_bytes());
                header.extend(b"hello");
                header
            }
        };
        let length = expected.len();
        tokio::spawn(async move { tell.send(first_words(&server, length).await) });
        let heard = reported.await.expect("the words");
        assert_eq!(heard, expected, "{version:?}");
    }
}

#[tokio::test]
async fn only_clients_of_the_given_ranges_come_in() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let front = lab
        .balancer(&[&backend], |new| {
            new.source_ranges = ["127.0.5.0/24".parse().expect("a range")].into();
        })
        .await;
    let (inside, outside) = (Ipv4Addr::new(127, 0, 5, 9), Ipv4Addr::new(127, 0, 6, 9));
    assert_eq!(front.ask_from(inside).await.as_deref(), Some("a"));
    assert_eq!(front.ask_from(outside).await, None);
    let port = lab.stats(&front).await.ports.remove(0);
    assert_eq!((port.denied, port.targets[0].connections), (1, 1));
    lab.edit(&front, |balancer| balancer.source_ranges.clear())
        .await;
    assert_eq!(front.ask_from(outside).await.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_passed_over_within_the_same_connection() {
    let lab = Lab::new().await;
    let mut backends = Backend::several(["a", "b"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab.balancer(&targets, |_| {}).await;
    backends[0].stop().await;
    for _ in 0..6 {
        assert_eq!(front.ask().await.as_deref(), Some("b"));
    }
}

#[tokio::test]
async fn without_a_target_the_client_is_refused_at_once() {
    let lab = Lab::new().await;
    let front = lab.balancer(&[], |_| {}).await;
    assert_eq!(front.ask().await, None);
    assert_eq!(lab.stats(&front).await.ports[0].unserved, 1);
}

#[tokio::test]
async fn an_abrupt_end_of_the_target_is_an_abrupt_end_for_the_client() {
    let lab = Lab::new().await;
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = server.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            let mut word = [0; 4];
            if stream.read_exact(&mut word).await.is_ok() {
                socket2::SockRef::from(&stream)
                    .set_linger(Some(std::time::Duration::ZERO))
                    .expect("it can be reset");
            }
        }
    });
    let front = lab
        .balancer(&[], |new| {
            new.listeners = vec![listener(8080, address.port())];
            new.targets = vec![target(address.ip())];
        })
        .await;
    let mut stream = front.connect().await;
    stream.write_all(b"word").await.expect("it takes the word");
    let ended = timeout(DEADLINE, stream.read_u8())
        .await
        .expect("an end in time");
    let kind = ended.expect_err("no answer").kind();
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
}
