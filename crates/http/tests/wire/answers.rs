use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cloudkeel_api::{BudgetRecord, CallObserver, CallRecord, ErrorKind, Secret};
use cloudkeel_http::{CallFailure, HeaderAuth, HttpSettings, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::client;
use crate::server::{Server, raw};

#[tokio::test]
async fn a_request_arrives_as_its_value_says() {
    let server = Server::plain().await;
    let base = format!("http://{}/v1", server.address);
    let client = client(base, HttpSettings::default())
        .authorizer(HeaderAuth::bearer(Secret::new("abc")))
        .build()
        .unwrap();
    let request = Request::post("/servers/{id}/actions")
        .param("id", "a/b")
        .query("q", "x y")
        .header("X-One", "1")
        .json(json!({"type": "reset"}));
    let answer: Value = client.fetch(request).await.unwrap();
    assert_eq!(answer, json!({"ok": true}));

    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].method(), "POST");
    assert_eq!(seen[0].uri(), "/v1/servers/a%2Fb/actions?q=x%20y");
    let expected = [
        ("host", server.address.to_string()),
        ("authorization", "Bearer abc".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("content-length", "16".to_owned()),
        ("accept", "application/json".to_owned()),
        ("x-one", "1".to_owned()),
    ];
    for (name, value) in expected {
        assert_eq!(seen[0].headers()[name], value, "{name}");
    }
    assert_eq!(&seen[0].body()[..], br#"{"type":"reset"}"#);
}

#[tokio::test]
async fn connections_are_kept_and_shared() {
    let server = Server::plain().await;
    let base = format!("http://{}", server.address);
    let client = client(base, HttpSettings::default()).build().unwrap();
    let derived = client.derive().build().unwrap();
    for _ in 0..5 {
        client.send(Request::get("/a")).await.unwrap();
        derived.send(Request::get("/b")).await.unwrap();
    }
    assert_eq!(server.seen().len(), 10);
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

/// Serves these bytes to each connection, the last of them to all further ones, and then hangs up.
async fn serving(answers: &'static [&'static str]) -> String {
    let address = raw(move |number, mut stream, _| async move {
        let at = usize::try_from(number).unwrap().min(answers.len() - 1);
        stream.write_all(answers[at].as_bytes()).await.unwrap();
    })
    .await;
    format!("http://{address}")
}

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
const SHORT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"ok\":true}";

#[tokio::test]
async fn bodies_of_every_framing_are_read_whole_or_not_at_all() {
    let cases: [(&str, &'static [&'static str], bool); 6] = [
        ("with a length", &[GOOD], true),
        (
            "in chunks",
            &[
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"ok\"\r\n6\r\n:true}\r\n0\r\n\r\n",
            ],
            true,
        ),
        (
            "to the end of the connection",
            &["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"ok\":true}"],
            true,
        ),
        ("shorter than announced", &[SHORT], false),
        (
            "in chunks without the last",
            &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\n{\"ok\":true}\r\n"],
            false,
        ),
        ("no answer at all", &[""], false),
    ];
    for (case, answers, whole) in cases {
        let client = client(serving(answers).await, HttpSettings::default());
        let answer = client.build().unwrap().send(Request::post("/x")).await;
        match answer {
            Ok(answer) => {
                assert!(whole, "{case}");
                assert_eq!(answer.body(), &br#"{"ok":true}"#[..], "{case}");
            }
            Err(error) => {
                assert!(!whole, "{case}: {error}");
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{case}");
                assert!(
                    error.to_string().contains("connection broke"),
                    "{case}: {error}"
                );
                let attempts = CallFailure::of(&error).unwrap().attempts;
                assert_eq!(attempts, 1, "{case}: a POST is not sent again");
            }
        }
    }
}

#[tokio::test]
async fn a_read_that_was_cut_off_is_repeated() {
    let client = client(serving(&[SHORT, "", GOOD]).await, HttpSettings::default());
    let answer = client.build().unwrap().send(Request::get("/x")).await;
    assert_eq!(answer.unwrap().body(), &br#"{"ok":true}"#[..]);
}

#[tokio::test]
async fn a_connection_reset_within_the_answer_is_an_error() {
    let address = raw(|_, mut stream, _| async move {
        stream.write_all(&SHORT.as_bytes()[..50]).await.unwrap();
        stream.set_zero_linger().unwrap();
    })
    .await;
    let client = client(format!("http://{address}"), HttpSettings::default());
    let error = client
        .build()
        .unwrap()
        .send(Request::post("/x"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn answers_that_never_end_run_out_of_time() {
    for (case, beginning) in [("no answer", ""), ("half an answer", &SHORT[..50])] {
        let address = raw(move |_, mut stream, _| async move {
            stream.write_all(beginning.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        })
        .await;
        let client = client(format!("http://{address}"), HttpSettings::default());
        let request = Request::post("/x").attempt_timeout(Duration::from_millis(50));
        let error = client.build().unwrap().send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{case}");
        assert!(error.to_string().contains("within 50ms"), "{case}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_big_is_refused() {
    let http = HttpSettings {
        max_body_bytes: 10,
        ..HttpSettings::default()
    };
    let client = client(serving(&[GOOD]).await, http).build().unwrap();
    let error = client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(
        error.to_string().contains("bigger than 10 bytes"),
        "{error}"
    );
    assert_eq!(CallFailure::of(&error).unwrap().attempts, 1);
}

#[derive(Default)]
struct Count(AtomicU32);

impl CallObserver for Count {
    fn call_finished(&self, _: &CallRecord<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn call_delayed(&self, _: &str, _: Duration) {}
    fn budget_seen(&self, _: BudgetRecord) {}
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_even_for_a_post() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let count = Arc::new(Count::default());
    let client = client(format!("http://{address}"), HttpSettings::default())
        .observer(Arc::clone(&count) as _)
        .build()
        .unwrap();
    let error = client.send(Request::post("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(count.0.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_connection_that_the_cloud_has_closed_meanwhile_does_no_harm() {
    let closed = Arc::new(Notify::new());
    let signal = Arc::clone(&closed);
    let address = raw(move |_, mut stream, _| {
        let signal = Arc::clone(&signal);
        async move {
            stream.write_all(GOOD.as_bytes()).await.unwrap();
            drop(stream);
            signal.notify_one();
        }
    })
    .await;
    let client = client(format!("http://{address}"), HttpSettings::default());
    let client = client.build().unwrap();
    for _ in 0..3 {
        client.send(Request::get("/x")).await.unwrap();
        closed.notified().await;
    }
}

#[tokio::test]
async fn a_dropped_call_hangs_up() {
    let hung_up = Arc::new(Notify::new());
    let arrived = Arc::new(Notify::new());
    let (tell_hung_up, tell_arrived) = (Arc::clone(&hung_up), Arc::clone(&arrived));
    let address = raw(move |_, mut stream, _| {
        let (hung_up, arrived) = (Arc::clone(&tell_hung_up), Arc::clone(&tell_arrived));
        async move {
            arrived.notify_one();
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
            hung_up.notify_one();
        }
    })
    .await;
    let client = client(format!("http://{address}"), HttpSettings::default());
    let client = client.build().unwrap();
    let call = tokio::spawn(async move { client.send(Request::get("/x")).await });
    arrived.notified().await;
    call.abort();
    hung_up.notified().await;
}
