//! An API server behind a proxy.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use kube::config::Kubeconfig;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Manager, World};

/// A host that only the proxy can find.
const HOST: &str = "api.cloudkeel.test:6443";

/// A proxy of both kinds that connects everything to one upstream, and records its requests.
#[derive(Clone)]
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn before(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Self {
            address: listener.local_addr().expect("its address"),
            asked: Arc::default(),
        };
        let running = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (proxy, upstream) = (running.clone(), upstream.clone());
                // A client that closes early is no failure.
                tokio::spawn(async move { proxy.serve(stream, upstream).await.ok() });
            }
        });
        proxy
    }

    async fn serve(&self, stream: TcpStream, upstream: String) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let first = *stream.fill_buf().await?.first().unwrap_or(&0);
        let asked = if first == 5 {
            socks(&mut stream).await?
        } else {
            connect(&mut stream).await?
        };
        self.asked.lock().expect("no panic").push(asked);
        let mut upstream = TcpStream::connect(upstream).await?;
        tokio::io::copy_bidirectional(&mut stream, &mut upstream).await?;
        Ok(())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

/// Reads the head of a `CONNECT`, which is what was asked for.
async fn connect(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    Ok(head)
}

/// Speaks SOCKS5 without a password.
async fn socks(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    stream.read_exact(&mut [0; 3]).await?;
    stream.write_all(&[5, 0]).await?;
    stream.read_exact(&mut [0; 4]).await?;
    let length = stream.read_u8().await?;
    let mut host = vec![0; length.into()];
    stream.read_exact(&mut host).await?;
    let port = stream.read_u16().await?;
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    Ok(format!("SOCKS {}:{port}", String::from_utf8_lossy(&host)))
}

/// A world, a proxy before its API server, and a kubeconfig that changes how that is reached.
struct Proxied {
    world: World,
    proxy: Proxy,
    server: String,
}

impl Proxied {
    async fn new() -> Self {
        let world = World::new().await;
        let kubeconfig = Kubeconfig::read_from(&world.kubeconfig).expect("a kubeconfig");
        let cluster = kubeconfig.clusters.first().expect("a cluster");
        let cluster = cluster.cluster.clone().expect("its settings");
        let server = cluster.server.expect("a server");
        let upstream = server.trim_start_matches("https://").trim_end_matches('/');
        let proxy = Proxy::before(upstream.to_owned()).await;
        Self {
            world,
            proxy,
            server,
        }
    }

    /// Names the API server by a name that nothing but the proxy knows.
    fn hide_server(&self, proxy_url: Option<String>) {
        let name = self.server.trim_start_matches("https://");
        let name = name.rsplit_once(':').expect("a port").0;
        let mut kubeconfig = Kubeconfig::read_from(&self.world.kubeconfig).expect("a kubeconfig");
        let cluster = kubeconfig.clusters.first_mut().expect("a cluster");
        let cluster = cluster.cluster.as_mut().expect("its settings");
        cluster.server = Some(format!("https://{HOST}"));
        cluster.tls_server_name = Some(name.to_owned());
        cluster.proxy_url = proxy_url;
        let text = serde_json::to_string(&kubeconfig).expect("JSON");
        std::fs::write(&self.world.kubeconfig, text).expect("the kubeconfig is written");
    }

    /// A manager with these variables, once it leads.
    async fn led_with(&self, variables: &[(&str, String)]) -> Manager {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            program.env_remove(name).env_remove(name.to_lowercase());
        }
        program
            .args(self.world.flags())
            .envs(variables.iter().cloned());
        let manager = Manager::spawn(program, self.world.log_file());
        manager.wait_for_log("controller started").await;
        manager
    }
}

#[tokio::test]
async fn a_proxy_for_others_and_one_that_go_does_not_read_are_left_alone() {
    let it = Proxied::new().await;
    let url = format!("http://joe:hunter2@{}", it.proxy.address);
    let socks = "socks5://joe:hunter2@127.0.0.1:1".to_owned();
    let variables = [
        ("HTTPS_PROXY", url),
        ("ALL_PROXY", socks),
        ("NO_PROXY", "127.0.0.1,.svc,10.0.0.0/8".to_owned()),
    ];
    let manager = it.led_with(&variables).await;
    assert!(it.proxy.asked().is_empty(), "{:?}", it.proxy.asked());
    assert!(!manager.log().contains("hunter2"), "{}", manager.log());
}

#[tokio::test]
async fn the_api_server_is_reached_through_the_proxy_of_the_environment() {
    let it = Proxied::new().await;
    it.hide_server(None);
    let url = format!("http://joe:hunter2@{}", it.proxy.address);
    let manager = it.led_with(&[("https_proxy", url)]).await;
    let asked = it.proxy.asked();
    assert!(!asked.is_empty());
    for head in asked {
        assert!(head.starts_with(&format!("CONNECT {HOST} ")), "{head}");
        let credential = "Proxy-Authorization: Basic am9lOmh1bnRlcjI=\r\n";
        assert!(head.contains(credential), "{head}");
    }
    assert!(!manager.log().contains("hunter2"), "{}", manager.log());
}

#[tokio::test]
async fn the_proxy_of_the_kubeconfig_wins_over_the_environment() {
    let it = Proxied::new().await;
    it.hide_server(Some(format!("socks5://{}", it.proxy.address)));
    let variables = [
        ("HTTPS_PROXY", "http://127.0.0.1:1".to_owned()),
        ("NO_PROXY", "*".to_owned()),
    ];
    let _manager = it.led_with(&variables).await;
    let asked = it.proxy.asked();
    assert!(!asked.is_empty());
    for line in asked {
        assert_eq!(line, format!("SOCKS {HOST}"));
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
    let it = Proxied::new().await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    program
        .args(it.world.flags())
        .env("HTTPS_PROXY", "gopher://joe:hunter2@proxy.test");
    let mut manager = Manager::spawn(program, it.world.log_file());
    assert_eq!(manager.ended().await.code(), Some(1));
    let log = manager.log();
    assert!(
        log.contains("HTTPS_PROXY=gopher://[redacted]@proxy.test: expected"),
        "{log}"
    );
    assert!(!log.contains("hunter2"), "{log}");
}
