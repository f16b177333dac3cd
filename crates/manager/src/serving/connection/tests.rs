//! In-memory connections on a paused clock.

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;

const REQUEST: &str = "GET /ok HTTP/1.1\r\nhost: test\r\n\r\n";

struct Served {
    client: DuplexStream,
    shutdown: Shutdown,
    task: JoinHandle<()>,
    began: Instant,
}

fn router() -> Router {
    let slow = || async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "slow"
    };
    let stuck = || async { std::future::pending::<&str>().await };
    Router::new()
        .route("/ok", get(|| async { "ok" }))
        .route("/slow", get(slow))
        .route("/stuck", get(stuck))
}

fn serve_one() -> Served {
    serve_over(Protocol::Http1)
}

fn serve_over(protocol: Protocol) -> Served {
    let (client, server) = tokio::io::duplex(4 << 20);
    let shutdown = Shutdown {
        stop: CancellationToken::new(),
        kill: CancellationToken::new(),
    };
    let limits = Limits::with_http2_streams(100);
    let context = ConnectionContext {
        peer: Peer::default(),
        activity: Activity::begin(),
        shutdown: shutdown.clone(),
    };
    let served = serve(server, protocol, context, router(), limits);
    Served {
        client,
        shutdown,
        task: tokio::spawn(served),
        began: Instant::now(),
    }
}

impl Served {
    async fn send(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    /// One response, which ends with `end`.
    async fn answer(&mut self, end: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(end.as_bytes()) {
            let read = self.client.read_buf(&mut seen).await.unwrap();
            assert!(read > 0, "ended after {:?}", String::from_utf8_lossy(&seen));
        }
        String::from_utf8(seen).unwrap()
    }

    /// Everything until the server closes the connection, and the second at which it did.
    async fn rest(mut self) -> (String, u64) {
        let mut seen = String::new();
        self.client.read_to_string(&mut seen).await.unwrap();
        let hung_up = self.began.elapsed().as_secs();
        self.task.await.unwrap();
        (seen, hung_up)
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_finishes_its_headers_is_dropped() {
    let mut served = serve_one();
    served.send("GET /ok HTTP/1.1\r\n").await;
    let (mut reader, mut writer) = tokio::io::split(served.client);
    // One more header every ten seconds, for ever.
    let dribble = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(10)).await;
            if writer.write_all(b"x-more: 1\r\n").await.is_err() {
                return;
            }
        }
    });
    let mut seen = String::new();
    reader.read_to_string(&mut seen).await.unwrap();
    let timeouts = served.began.elapsed().as_secs();
    assert!((32..=37).contains(&timeouts), "{timeouts} s");
    assert_eq!(seen, "");
    served.task.await.unwrap();
    dribble.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_at_all_is_dropped() {
    let (seen, hung_up) = serve_one().rest().await;
    assert_eq!((seen.as_str(), hung_up), ("", 32));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_connection_is_kept_for_ninety_seconds_after_each_answer() {
    let mut served = serve_one();
    for _ in 0..3 {
        served.send(REQUEST).await;
        assert!(served.answer("ok").await.starts_with("HTTP/1.1 200"));
        tokio::time::sleep(Duration::from_secs(80)).await;
    }
    let (_, hung_up) = served.rest().await;
    assert_eq!(hung_up, 2 * 80 + 90);
}

#[tokio::test(start_paused = true)]
async fn the_second_request_has_as_little_time_for_its_headers_as_the_first() {
    let mut served = serve_one();
    served.send(REQUEST).await;
    served.answer("ok").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    served.send("GET /ok").await;
    let (_, hung_up) = served.rest().await;
    assert!((82..=87).contains(&hung_up), "{hung_up} s");
}

#[tokio::test(start_paused = true)]
async fn headers_have_a_limit() {
    for (bytes, status) in [(900_000, "HTTP/1.1 200"), (1_100_000, "HTTP/1.1 431")] {
        let mut served = serve_one();
        let filler = "x".repeat(bytes);
        let request = format!(
            "GET /ok HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-filler: {filler}\r\n\r\n"
        );
        served.send(&request).await;
        let (seen, _) = served.rest().await;
        assert!(seen.starts_with(status), "{bytes}: {seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_given_up() {
    let mut served = serve_one();
    served
        .send("GET /stuck HTTP/1.1\r\nhost: test\r\n\r\n")
        .await;
    let answer = served.answer("the request took too long\n").await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert_eq!(served.began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_present_request_finish_and_takes_no_other() {
    let mut served = serve_one();
    served
        .send("GET /slow HTTP/1.1\r\nhost: test\r\n\r\n")
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    served.shutdown.stop.cancel();
    served.send(REQUEST).await;
    let (seen, hung_up) = served.rest().await;
    assert!(seen.ends_with("slow"), "{seen}");
    assert_eq!(seen.matches("HTTP/1.1 200").count(), 1, "{seen}");
    assert_eq!(hung_up, 5);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_quiet_connection_at_once() {
    let mut served = serve_one();
    served.send(REQUEST).await;
    served.answer("ok").await;
    served.shutdown.stop.cancel();
    assert_eq!(served.rest().await, (String::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_kill_drops_what_does_not_end() {
    let mut served = serve_one();
    served
        .send("GET /stuck HTTP/1.1\r\nhost: test\r\n\r\n")
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    served.shutdown.stop.cancel();
    tokio::time::sleep(Duration::from_secs(10)).await;
    served.shutdown.kill.cancel();
    assert_eq!(served.rest().await, (String::new(), 11));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_ends_even_a_new_connection_at_once() {
    let served = serve_one();
    served.shutdown.kill.cancel();
    assert_eq!(served.rest().await, (String::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn on_http2_a_client_that_says_nothing_is_dropped_too() {
    let mut served = serve_over(Protocol::Http2);
    let mut seen = Vec::new();
    served.client.read_to_end(&mut seen).await.unwrap();
    let timeouts = served.began.elapsed().as_secs();
    assert!((32..=37).contains(&timeouts), "{timeouts} s");
}

#[tokio::test(start_paused = true)]
async fn on_http2_a_quiet_connection_ends_after_ninety_seconds_whatever_it_pings() {
    let served = serve_over(Protocol::Http2);
    let client = TokioIo::new(served.client);
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .handshake::<_, Body>(client)
        .await
        .unwrap();
    let ended = tokio::spawn(connection);
    let request = Request::get("http://test/ok").body(Body::empty()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    ended.await.unwrap().unwrap();
    assert_eq!(served.began.elapsed().as_secs(), 90);
    served.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn on_http2_the_headers_of_a_request_are_few_and_small() {
    for (case, count, bytes, status) in [
        ("some", 500, 0, 200),
        ("too many", 600, 0, 431),
        ("a long token", 1, 64 * 1024, 200),
        ("too long", 1, 200 * 1024, 431),
    ] {
        let served = serve_over(Protocol::Http2);
        let client = TokioIo::new(served.client);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), client);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get("http://test/ok");
        for _ in 0..count {
            request = request.header("x-filler", "x".repeat(bytes));
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), status, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_never_takes_its_answer_is_dropped() {
    let (client, server) = tokio::io::duplex(64);
    let big = Router::new().route("/", get(|| async { "x".repeat(1 << 20) }));
    let context = ConnectionContext {
        peer: Peer::default(),
        activity: Activity::begin(),
        shutdown: Shutdown {
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
        },
    };
    let limits = Limits::with_http2_streams(100);
    let began = Instant::now();
    let task = tokio::spawn(serve(server, Protocol::Http1, context, big, limits));
    let (_unread, mut writer) = tokio::io::split(client);
    writer
        .write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n")
        .await
        .unwrap();
    task.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 95);
}
