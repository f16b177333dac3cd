//! Real connections to the node ports of simulated kubelets.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::SystemClock;
use cloudkeel_embedded::{EmbeddedApi, Health, Kubelet, KubeletConfig, Runs};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

/// How long a port may take to open or close.
const TIMEOUT: Duration = Duration::from_secs(20);

fn address(last: u8) -> IpAddr {
    // The process is part of the address, so that two runs at once do not meet.
    let process = std::process::id().to_be_bytes();
    IpAddr::from([127, 64 | (process[2] & 0x3f), process[3], last])
}

fn kubelet(api: &EmbeddedApi, last: u8) -> Kubelet {
    let config = KubeletConfig::new(format!("n{last}"), address(last)).serve_ports();
    Kubelet::start(&api.client("kubelet"), Arc::new(SystemClock), config)
}

async fn service(api: &EmbeddedApi, policy: &str) -> Service {
    let services: Api<Service> = Api::namespaced(api.client("test"), "default");
    let ports =
        json!([{"name": "tcp", "port": 80}, {"name": "udp", "port": 53, "protocol": "UDP"}]);
    let service = json!({
        "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": ports, "externalTrafficPolicy": policy},
    });
    let service = serde_json::from_value(service).expect("a service");
    services
        .create(&PostParams::default(), &service)
        .await
        .expect("a service")
}

fn health_port(service: &Service) -> u16 {
    let spec = service.spec.as_ref();
    let port = spec.and_then(|spec| spec.health_check_node_port);
    u16::try_from(port.expect("a port for health checks")).expect("a port")
}

fn node_port(service: &Service, name: &str) -> u16 {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let port = ports
        .into_iter()
        .flatten()
        .find(|port| port.name.as_deref() == Some(name));
    let number = port.and_then(|port| port.node_port).expect("a node port");
    u16::try_from(number).expect("a port")
}

/// Connects as soon as that is possible.
async fn connect(at: SocketAddr) -> TcpStream {
    let attempt = async {
        loop {
            match TcpStream::connect(at).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, attempt)
        .await
        .expect("the port opens")
}

/// Waits until nothing answers there.
async fn closed(at: SocketAddr) {
    let attempt = async {
        while TcpStream::connect(at).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, attempt)
        .await
        .expect("the port closes");
}

async fn get(at: SocketAddr, path: &str) -> String {
    ask(connect(at).await, path).await
}

async fn ask(mut stream: TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn every_machine_answers_on_the_node_ports_of_a_service() {
    let api = EmbeddedApi::new();
    let kubelets = [kubelet(&api, 1), kubelet(&api, 2)];
    let service = service(&api, "Cluster").await;
    let port = node_port(&service, "tcp");
    for last in [1, 2] {
        let at = SocketAddr::new(address(last), port);
        let answer = get(at, "/hello").await;
        assert!(
            answer.ends_with(&format!("default/web on n{last} /hello\n")),
            "{answer}"
        );
        let mut stream = connect(at).await;
        stream.write_all(b"ping").await.expect("a word");
        let mut echo = [0; 4];
        stream.read_exact(&mut echo).await.expect("an echo");
        assert_eq!(&echo, b"ping");
    }
    let socket = UdpSocket::bind((address(9), 0)).await.expect("a socket");
    let at = SocketAddr::new(address(1), node_port(&service, "udp"));
    socket.send_to(b"ping", at).await.expect("a datagram");
    let mut echo = [0; 8];
    let (length, from) = socket.recv_from(&mut echo).await.expect("an echo");
    assert_eq!((&echo[..length], from), (&b"ping"[..], at));

    let services: Api<Service> = Api::namespaced(api.client("test"), "default");
    services
        .delete("web", &DeleteParams::default())
        .await
        .expect("a deletion");
    closed(SocketAddr::new(address(1), port)).await;
    for kubelet in kubelets {
        kubelet.stop().await;
    }
}

#[tokio::test]
async fn local_traffic_is_answered_only_where_a_pod_runs() {
    let api = EmbeddedApi::new();
    let kubelets = [kubelet(&api, 11), kubelet(&api, 12)];
    kubelets[1].set_runs(Runs::Only(BTreeSet::new()));
    let service = service(&api, "Local").await;
    let health = health_port(&service);
    let here = get(SocketAddr::new(address(11), health), "/healthz").await;
    assert!(here.starts_with("HTTP/1.1 200 OK"), "{here}");
    let elsewhere = get(SocketAddr::new(address(12), health), "/healthz").await;
    assert!(elsewhere.starts_with("HTTP/1.1 503 "), "{elsewhere}");
    let port = node_port(&service, "tcp");
    get(SocketAddr::new(address(11), port), "/").await;
    closed(SocketAddr::new(address(12), port)).await;

    kubelets[1].set_runs(Runs::Everything);
    let answer = get(SocketAddr::new(address(12), port), "/").await;
    assert!(answer.contains("on n12"), "{answer}");
    for kubelet in kubelets {
        kubelet.stop().await;
    }
}

#[tokio::test]
async fn a_machine_that_is_off_does_not_answer_and_may_move() {
    let api = EmbeddedApi::new();
    let kubelet = kubelet(&api, 21);
    let port = node_port(&service(&api, "Cluster").await, "tcp");
    let at = SocketAddr::new(address(21), port);
    get(at, "/").await;
    kubelet.set_health(Health::Off);
    closed(at).await;
    kubelet.move_to(address(22));
    kubelet.set_health(Health::Ready);
    get(SocketAddr::new(address(22), port), "/").await;
    closed(at).await;
    kubelet.stop().await;
    closed(SocketAddr::new(address(22), port)).await;
}

#[tokio::test]
async fn what_runs_beside_a_kubelet_that_hangs_goes_on_answering() {
    let api = EmbeddedApi::new();
    let kubelet = kubelet(&api, 31);
    let port = node_port(&service(&api, "Cluster").await, "tcp");
    let at = SocketAddr::new(address(31), port);
    get(at, "/").await;
    kubelet.set_health(Health::Silent);
    for _ in 0..20 {
        let answer = get(at, "/").await;
        assert!(answer.contains("on n31"), "{answer}");
    }
    kubelet.stop().await;
}

#[tokio::test]
async fn who_waits_at_the_door_of_a_machine_that_is_switched_off_is_answered() {
    let api = EmbeddedApi::new();
    let kubelet = kubelet(&api, 41);
    let port = node_port(&service(&api, "Cluster").await, "tcp");
    let at = SocketAddr::new(address(41), port);
    get(at, "/").await;
    let mut waiting = Vec::new();
    for _ in 0..50 {
        // One thread: the system takes these connections, no other part has seen them yet.
        waiting.push(std::net::TcpStream::connect(at).expect("a connection"));
    }
    kubelet.set_health(Health::Off);
    for stream in waiting {
        stream.set_nonblocking(true).expect("a socket");
        let stream = TcpStream::from_std(stream).expect("a stream");
        let answer = ask(stream, "/").await;
        assert!(answer.contains("on n41"), "{answer}");
    }
    closed(at).await;
    kubelet.stop().await;
}

#[tokio::test]
async fn a_health_check_port_changes_its_answer_and_never_closes() {
    let api = EmbeddedApi::new();
    let kubelet = kubelet(&api, 51);
    let at = SocketAddr::new(address(51), health_port(&service(&api, "Local").await));
    let answer = get(at, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for (runs, expected) in [
        (Runs::Only(BTreeSet::new()), "HTTP/1.1 503 "),
        (Runs::Everything, "HTTP/1.1 200 "),
    ] {
        kubelet.set_runs(runs);
        let reported = async {
            loop {
                let stream = TcpStream::connect(at).await.expect("an open port");
                if ask(stream, "/healthz").await.starts_with(expected) {
                    return;
                }
            }
        };
        let reported = tokio::time::timeout(TIMEOUT, reported).await;
        reported.expect("the other answer");
    }
    kubelet.stop().await;
}
