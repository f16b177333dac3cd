//! Clients of the API's port that mean no good.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use cloudkeel_embedded::{EmbeddedApi, Identity, Served};
use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn client(served: &Served) -> Client {
    let kubeconfig = served.kubeconfig(Identity::admin("jane"));
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn connect(served: &Served) -> TcpStream {
    let url = served.url();
    let address = url.trim_start_matches("https://");
    TcpStream::connect(address).await.expect("a connection")
}

async fn is_well(served: &Served) {
    let nodes: Api<Node> = Api::all(client(served).await);
    let listed = nodes.list(&kube::api::ListParams::default()).await;
    listed.expect("an honest client is served");
}

#[tokio::test]
async fn bytes_that_are_no_tls_end_the_connection_and_nothing_else() {
    let served = EmbeddedApi::new().serve(0).await.expect("it listens");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], &[0xff; 16_000]] {
        let mut stream = connect(&served).await;
        // It may hang up before the end.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        is_well(&served).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_handshake_is_dropped() {
    let served = EmbeddedApi::new().serve(0).await.expect("it listens");
    let mut stream = connect(&served).await;
    stream.write_all(&[0x16, 3, 1]).await.expect("a beginning");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    served.stop().await;
}

#[tokio::test]
async fn silent_clients_keep_no_client_out() {
    let served = EmbeddedApi::new().serve(0).await.expect("it listens");
    let mut mute = Vec::new();
    for _ in 0..100 {
        mute.push(connect(&served).await);
    }
    is_well(&served).await;
}

#[tokio::test]
async fn headers_and_bodies_that_are_too_large_are_refused() {
    let served = EmbeddedApi::new().serve(0).await.expect("it listens");
    let client = client(&served).await;
    let long = "x".repeat(200 * 1024);
    let headers = Request::get("/api/v1/nodes").header("x-long", &long);
    let headers = headers.body(Body::empty()).expect("a request");
    match client.send(headers).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        // It may hang up before the end.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let node = format!(
        "{{\"metadata\": {{\"name\": \"n\", \"annotations\": {{\"a\": \"{}\"}}}}}}",
        "x".repeat(4 << 20)
    );
    let body = Request::builder().method(Method::POST).uri("/api/v1/nodes");
    let body = body.body(Body::from(node.into_bytes())).expect("a request");
    if let Ok(answer) = client.send(body).await {
        assert_eq!(answer.status(), 413);
    }
    let nodes: Api<Node> = Api::all(client);
    let listed = nodes.list(&kube::api::ListParams::default()).await;
    assert!(listed.expect("a list").items.is_empty(), "nothing was made");
    is_well(&served).await;
}
