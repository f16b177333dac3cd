//! The interposer as a proxy on loopback.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use cloudkeel_emulation::interposer::{Classifier, Interposer, Proxy};
use cloudkeel_emulation::{CommonFault, FaultInjector as _, FaultMatch, Served};
use cloudkeel_http::{HttpSettings, HyperTransport, TlsSettings};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::interposer::{CLASSIFIER, Disks, SHAPE, app, body_of, send};

pub(crate) fn client(tls: TlsSettings) -> HyperTransport {
    let settings = HttpSettings {
        tls,
        ..HttpSettings::default()
    };
    HyperTransport::new(settings).unwrap()
}

#[tokio::test]
async fn a_proxy_stands_in_front_of_several_servers_and_counts_them_together() {
    let interposer = Interposer::new(CLASSIFIER).with_list_shape(SHAPE);
    let (first, second) = (Disks::default(), Disks::default());
    let mut servers = Vec::new();
    let mut proxies = Vec::new();
    for disks in [&first, &second] {
        let served = Served::on_loopback(app(disks)).await.unwrap();
        proxies.push(Proxy::start(&interposer, &served.url()).await.unwrap());
        servers.push(served);
    }
    let client = client(TlsSettings::default());
    for proxy in &proxies {
        let uri = format!("{}/disks", proxy.url());
        let made = send(&client, Method::POST, &uri, "a").await.unwrap();
        assert_eq!(made.status(), 201);
    }
    assert_eq!(
        (first.lock().unwrap().len(), second.lock().unwrap().len()),
        (1, 1)
    );
    assert_eq!(interposer.calls_of("create-disk"), 2);

    let uri = format!("{}/disks", proxies[0].url());
    let on = || FaultMatch::operation("list-disks");
    interposer.once(on(), CommonFault::throttled(3));
    let throttled = send(&client, Method::GET, &uri, "").await.unwrap();
    assert_eq!(
        (
            throttled.status().as_u16(),
            &throttled.headers()["retry-after"]
        ),
        (429, &"3".parse().unwrap())
    );
    for fault in [CommonFault::BrokenBefore, CommonFault::BrokenAfter] {
        interposer.once(on(), fault.clone());
        let broken = send(&client, Method::GET, &uri, "").await;
        assert!(broken.is_err(), "{fault:?}: {broken:?}");
    }
    interposer.once(on(), CommonFault::TruncatedPage);
    let truncated = send(&client, Method::GET, &uri, "").await.unwrap();
    assert_eq!(body_of(&truncated)["disks"], json!([]));
    interposer.once(on(), CommonFault::MalformedJson);
    let malformed = send(&client, Method::GET, &uri, "").await.unwrap();
    assert_eq!(body_of(&malformed), Value::Null);
    drop(servers);
    let gone = send(&client, Method::POST, &uri, "b").await;
    assert!(
        gone.is_err(),
        "a server that is gone does not answer: {gone:?}"
    );
}

#[tokio::test]
async fn clients_stay_behind_the_proxy_when_answers_name_the_server() {
    let own = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&own);
    let catalogue = async move || {
        let url = shown.lock().unwrap().clone();
        let link = [("location", format!("{url}/v2/next"))];
        (
            StatusCode::OK,
            link,
            json!({"endpoint": format!("{url}/v2")}).to_string(),
        )
    };
    let served = Served::on_loopback(Router::new().route("/v1/catalogue", get(catalogue))).await;
    let served = served.unwrap();
    *own.lock().unwrap() = served.url();
    let interposer = Interposer::new(Classifier::BY_METHOD);
    let upstream = format!("{}/v1", served.url());
    let proxy = Proxy::start(&interposer, &upstream).await.unwrap();
    let client = client(TlsSettings::default());
    let uri = format!("{}/catalogue", proxy.url());
    let answer = send(&client, Method::GET, &uri, "").await.unwrap();
    let own = proxy.url().trim_end_matches("/v1").to_owned();
    assert_eq!(body_of(&answer)["endpoint"], format!("{own}/v2"));
    assert_eq!(
        answer.headers()["location"],
        format!("{own}/v2/next").as_str()
    );
    assert_eq!(interposer.calls_of("GET /v1/catalogue"), 1);
}

#[tokio::test]
async fn a_proxy_reaches_a_server_behind_tls_and_trusts_the_given_ca() {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let pem = key.cert.pem();
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let upstream = format!("https://{}", listener.local_addr().unwrap());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = tokio::spawn(async move {
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            // The client that does not trust it ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let interposer = Interposer::new(Classifier::BY_METHOD);
    let client = client(TlsSettings::default());
    for (tls, answers) in [
        (TlsSettings::default(), false),
        (TlsSettings::default().trust(pem), true),
    ] {
        let proxy = Proxy::start_with(&interposer, &upstream, tls)
            .await
            .unwrap();
        let answer = send(&client, Method::GET, &proxy.url(), "").await;
        assert_eq!(answer.is_ok(), answers, "{answer:?}");
    }
    server.await.unwrap();
    assert_eq!(interposer.call_totals().total, 2);
}

#[tokio::test]
async fn many_calls_at_once_are_each_counted_and_a_fault_is_met_once() {
    let disks = Disks::default();
    let served = Served::on_loopback(app(&disks)).await.unwrap();
    let interposer = Interposer::new(CLASSIFIER);
    let proxy = Proxy::start(&interposer, &served.url()).await.unwrap();
    interposer.once(FaultMatch::any(), CommonFault::status(503));
    let client = client(TlsSettings::default());
    let uri = format!("{}/disks", proxy.url());
    let calls = (0..50).map(|_| send(&client, Method::POST, &uri, "a"));
    let answers = futures::future::join_all(calls).await;
    let made = answers.iter().filter(|answer| {
        let answer = answer.as_ref();
        answer.is_ok_and(|answer| answer.status() == 201)
    });
    assert_eq!(made.count(), 49);
    assert_eq!(disks.lock().unwrap().len(), 49);
    assert_eq!(interposer.calls_of("create-disk"), 50);
}

#[tokio::test]
async fn a_url_that_is_none_is_refused() {
    let interposer = Interposer::new(Classifier::BY_METHOD);
    for url in ["/only/a/path", "127.0.0.1:5000", "http://"] {
        let refused = Proxy::start(&interposer, url).await;
        assert!(refused.is_err(), "{url}");
    }
}
