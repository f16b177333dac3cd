use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};

use axum::routing::{get, post};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const LIMITS: Limits = Limits {
    connections: 3,
    headers: Duration::from_secs(30),
    request: Duration::from_mins(5),
    stall: Duration::from_secs(30),
    header_bytes: 16 * 1024,
    body_bytes: 1024,
};

/// A server whose time passes only while no task can run.
async fn served() -> SocketAddr {
    let router = Router::new()
        .route("/", get(async || "well"))
        .route("/much", get(async || vec![0; 16 * 1024 * 1024]))
        .route("/body", post(async |body: Bytes| body.len().to_string()))
        .route("/never", get(async || pending::<()>().await));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, router, LIMITS, pending()));
    address
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Sends this, and reads until the server hangs up.
async fn send(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address).await;
    // A server that has heard enough may hang up before the end.
    let _ = stream.write_all(bytes).await;
    rest(stream).await
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // What came before a reset counts.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn is_well(address: SocketAddr) {
    let answer = send(
        address,
        b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("well"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn garbage_and_excess_are_refused_and_others_are_served() {
    let address = served().await;
    let headers = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(64 * 1024));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(2_000));
    let head = |length: usize| {
        format!("POST /body HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n")
    };
    let long = format!("{}{}", head(2_000), "z".repeat(2_000));
    let fair = format!("{}{}", head(1_000), "z".repeat(1_000));
    for (case, bytes, expected) in [
        (
            "a TLS hello",
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage\r\n\r\n"[..],
            "HTTP/1.1 400",
        ),
        ("zeros", &[0; 4096], "HTTP/1.1 400"),
        ("a long header", headers.as_bytes(), "HTTP/1.1 431"),
        ("many headers", many.as_bytes(), "HTTP/1.1 431"),
        ("a long body", long.as_bytes(), "HTTP/1.1 413"),
        ("a fair body", fair.as_bytes(), "HTTP/1.1 200"),
        (
            "a body that is said to be endless",
            head(usize::MAX).as_bytes(),
            "HTTP/1.1 431",
        ),
    ] {
        let answer = send(address, bytes).await;
        assert!(answer.starts_with(expected), "{case}: {answer}");
        is_well(address).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_headers_is_dropped() {
    let address = served().await;
    let mut slow = connect(address).await;
    slow.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
    // One letter now and then does not win time.
    let (mut reading, mut writing) = slow.into_split();
    let drip = async {
        while writing.write_all(b"y").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    };
    let mut heard = Vec::new();
    tokio::select! {
        _ = reading.read_to_end(&mut heard) => {}
        () = drip => {}
    }
    is_well(address).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_body_is_dropped() {
    let address = served().await;
    let answer = send(
        address,
        b"POST /body HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    is_well(address).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_given_up() {
    let answer = send(served().await, b"GET /never HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn mute_clients_that_take_every_place_lose_it() {
    let address = served().await;
    let mut mute = Vec::new();
    for _ in 0..LIMITS.connections * 4 {
        mute.push(connect(address).await);
    }
    is_well(address).await;
    drop(mute);
}

#[tokio::test(start_paused = true)]
async fn clients_that_ask_and_never_listen_lose_their_place() {
    let address = served().await;
    let mut deaf = Vec::new();
    for _ in 0..LIMITS.connections {
        let mut stream = connect(address).await;
        stream
            .write_all(b"GET /much HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        deaf.push(stream);
    }
    let patience = Duration::from_hours(1);
    let well = tokio::time::timeout(patience, is_well(address)).await;
    assert!(well.is_ok(), "every place is taken for ever");
    drop(deaf);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_quiet_connections_and_takes_no_others() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "well"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let server = tokio::spawn(serve(listener, router, LIMITS, stopped));
    let mut quiet = connect(address).await;
    quiet.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    quiet.read_exact(&mut first).await.unwrap();
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(rest(quiet).await.ends_with("well"), "the answer was whole");
    assert!(TcpStream::connect(address).await.is_err());
}
