//! What a client sees of TLS and HTTP.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cloudkeel_manager::options::{ListenerOptions, SniPair};
use cloudkeel_testkit::cluster::eventually;
use http::Method;
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::caller::Caller;
use crate::server::{Authority, Running, endpoints, listener_options};

/// Generous: machines that compile at the same time are slow.
const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn both_http_versions_are_served_unless_one_is_switched_off() {
    for (http2, served) in [(true, true), (false, false)] {
        let options = ListenerOptions {
            http2,
            ..listener_options()
        };
        let running = Running::start(&options, endpoints()).await.unwrap();
        assert_eq!(running.caller().get("/healthz").await.body, "ok");
        let answer = running
            .caller()
            .over_http2()
            .call(Method::GET, "/healthz", "")
            .await;
        assert_eq!(answer.is_ok(), served, "{answer:?}");
    }
}

#[tokio::test]
async fn the_lowest_tls_version_can_be_raised() {
    for (lowest, versions, agreed) in [
        (
            "VersionTLS12",
            &[&TLS12][..],
            Some(ProtocolVersion::TLSv1_2),
        ),
        (
            "VersionTLS12",
            &[&TLS12, &TLS13],
            Some(ProtocolVersion::TLSv1_3),
        ),
        ("VersionTLS13", &[&TLS12], None),
        ("VersionTLS13", &[&TLS13], Some(ProtocolVersion::TLSv1_3)),
    ] {
        let options = ListenerOptions {
            min_version: lowest.to_owned(),
            ..listener_options()
        };
        let running = Running::start(&options, endpoints()).await.unwrap();
        let caller = running.caller().with_versions(versions);
        let answer = caller.call(Method::GET, "/healthz", "").await;
        assert_eq!(
            answer.ok().map(|answer| answer.tls),
            agreed,
            "{lowest} {versions:?}"
        );
    }
}

#[tokio::test]
async fn cipher_suites_restrict_what_tls_12_can_agree_on() {
    // The self-signed certificate has an ECDSA key, so a suite for RSA leaves nothing for TLS 1.2.
    let options = ListenerOptions {
        cipher_suites: vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()],
        ..listener_options()
    };
    let running = Running::start(&options, endpoints()).await.unwrap();
    let old = running.caller().with_versions(&[&TLS12]);
    assert!(old.call(Method::GET, "/healthz", "").await.is_err());
    assert_eq!(running.caller().get("/healthz").await.body, "ok");
}

#[tokio::test]
async fn a_changed_certificate_is_served_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let [first, second] = ["localhost", "localhost"].map(|name| authority.server(name));
    let files = first.write(directory.path(), "tls");
    let options = ListenerOptions {
        cert_and_key: Some(files),
        ..listener_options()
    };
    let running = Running::start(&options, endpoints()).await.unwrap();
    let caller = running.caller();
    assert_eq!(caller.get("/healthz").await.certificate, first.der);

    second.write(directory.path(), "tls");
    eventually("the second certificate is served", DEADLINE, async || {
        caller.get("/healthz").await.certificate == second.der
    })
    .await;
}

#[tokio::test]
async fn a_certificate_is_chosen_by_server_name_or_address() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let pair = |name: &str, names: &[&str]| {
        let issued = authority.server(name);
        let (cert, key) = issued.write(directory.path(), name);
        let names = names.iter().map(ToString::to_string).collect();
        (SniPair { cert, key, names }, issued.der)
    };
    let (named, named_der) = pair("a.example.com", &[]);
    let (wild, wild_der) = pair("other", &["*.example.com"]);
    let (address, address_der) = pair("127.0.0.1", &[]);
    let options = ListenerOptions {
        sni: vec![named, wild, address],
        ..listener_options()
    };
    let running = Running::start(&options, endpoints()).await.unwrap();
    for (asked, certificate) in [
        ("a.example.com", &named_der),
        ("b.example.com", &wild_der),
        ("127.0.0.1", &address_der),
    ] {
        let answer = running.caller().asking_for(asked).get("/healthz").await;
        assert_eq!(&answer.certificate, certificate, "{asked}");
    }
    let fallback = running
        .caller()
        .asking_for("elsewhere.org")
        .get("/healthz")
        .await;
    for certificate in [named_der, wild_der, address_der] {
        assert_ne!(fallback.certificate, certificate);
    }
}

#[tokio::test]
async fn a_certificate_of_our_own_is_kept_in_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let options = ListenerOptions {
        cert_dir: Some(directory.path().to_owned()),
        ..listener_options()
    };
    let mut served = Vec::new();
    for _ in 0..2 {
        let running = Running::start(&options, endpoints()).await.unwrap();
        served.push(running.caller().get("/healthz").await.certificate);
    }
    assert_eq!(served[0], served[1]);
    assert!(
        directory
            .path()
            .join("cloud-controller-manager.crt")
            .exists()
    );
    assert!(
        directory
            .path()
            .join("cloud-controller-manager.key")
            .exists()
    );
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let running = Running::start(&listener_options(), endpoints())
        .await
        .unwrap();
    let large = |bytes| running.caller().with_header("x-filler", "x".repeat(bytes));
    assert_eq!(large(900_000).get("/healthz").await.status, 200);
    assert_eq!(large(1_060_000).get("/healthz").await.status, 431);
    // HTTP/2 may also end the stream or the connection.
    let answer = large(1_100_000)
        .over_http2()
        .call(Method::GET, "/healthz", "")
        .await;
    assert!(
        answer.as_ref().map_or(true, |answer| answer.status == 431),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_client_without_tls_is_dropped_and_a_silent_one_blocks_no_other() {
    let running = Running::start(&listener_options(), endpoints())
        .await
        .unwrap();
    let _mute = TcpStream::connect(running.address).await.unwrap();
    let mut plain = TcpStream::connect(running.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    // A reset hangs up as well.
    let _ = plain.read_to_end(&mut rest).await;
    assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
    assert_eq!(running.caller().get("/healthz").await.body, "ok");
}

#[tokio::test]
async fn a_client_may_send_a_certificate_of_an_unknown_ca() {
    let running = Running::start(&listener_options(), endpoints())
        .await
        .unwrap();
    let untrusted = Authority::new("untrusted").client("eve");
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let caller = running
            .caller()
            .with_identity(&untrusted.pem, &untrusted.key);
        let answer = caller.with_versions(versions).get("/healthz").await;
        assert_eq!(answer.body, "ok");
    }
}

#[tokio::test]
async fn a_stop_finishes_open_requests_and_accepts_no_more() {
    let slow = || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        "done"
    };
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/", get(|| async { "up" }));
    let mut running = Running::start(&listener_options(), router).await.unwrap();
    let caller = Caller::new(running.address);
    let mut idle = caller.connect().await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut up = Vec::new();
    while !up.ends_with(b"up") {
        assert!(idle.read_buf(&mut up).await.unwrap() > 0);
    }

    let mut began = caller.connect().await.unwrap();
    began
        .write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    began.flush().await.unwrap();
    // The request is on its way; another one that was answered shows that it has arrived.
    assert_eq!(caller.get("/").await.body, "up");
    running.stop.cancel();
    let mut answer = String::new();
    began.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("done"), "{answer}");
    let mut rest = Vec::new();
    assert_eq!(
        idle.read_to_end(&mut rest).await.unwrap(),
        0,
        "a quiet connection is ended"
    );
    tokio::time::timeout(DEADLINE, &mut running.ended)
        .await
        .unwrap()
        .unwrap();
    assert!(caller.connect().await.is_err());
}
