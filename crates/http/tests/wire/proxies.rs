use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{HttpSettings, ProxySettings, Request, TlsSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::client;
use crate::server::{Server, raw, read_head};
use crate::tls::Ca;

/// A proxy that reaches `upstream` whatever host is asked for, and writes down the heads it read.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn before(upstream: SocketAddr) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let address = raw(move |_, mut stream, head| {
            seen.lock().unwrap().push(head.clone());
            async move {
                if !head.starts_with("CONNECT ") {
                    let answer =
                        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    return;
                }
                let ready = "HTTP/1.1 200 Connection established\r\n\r\n";
                stream.write_all(ready.as_bytes()).await.unwrap();
                let mut upstream = TcpStream::connect(upstream).await.unwrap();
                // Either side may hang up first.
                let _ = copy_bidirectional(&mut stream, &mut upstream).await;
            }
        })
        .await;
        Self { address, heads }
    }

    fn settings(&self) -> ProxySettings {
        let url = format!("http://joe:hunter2@{}", self.address);
        ProxySettings::from_variables(|name| match name {
            "HTTP_PROXY" | "HTTPS_PROXY" => Some(url.clone()),
            _ => None,
        })
        .unwrap()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn plain_requests_are_forwarded_with_the_whole_url_and_the_proxys_credential() {
    let proxy = Proxy::before("127.0.0.1:9".parse().unwrap()).await;
    let http = HttpSettings {
        proxy: proxy.settings(),
        ..HttpSettings::default()
    };
    let client = client("http://cloud.invalid:8774/v2".to_owned(), http);
    client
        .build()
        .unwrap()
        .send(Request::get("/servers"))
        .await
        .unwrap();
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1);
    let head = heads[0].to_ascii_lowercase();
    assert!(
        head.starts_with("get http://cloud.invalid:8774/v2/servers http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("host: cloud.invalid:8774\r\n"), "{head}");
    assert!(
        head.contains("proxy-authorization: basic am9lomh1bnrlcji=\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn secure_requests_go_through_a_tunnel_and_are_checked_at_its_end() {
    let ca = Ca::new();
    let server = Server::tls(ca.acceptor("cloud.invalid", None)).await;
    let proxy = Proxy::before(server.address).await;
    let http = HttpSettings {
        proxy: proxy.settings(),
        tls: TlsSettings::default().trust(ca.pem.as_str()),
        ..HttpSettings::default()
    };
    let trusting = client("https://cloud.invalid:6443/v2".to_owned(), http.clone());
    trusting
        .build()
        .unwrap()
        .send(Request::get("/servers"))
        .await
        .unwrap();
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].starts_with("CONNECT cloud.invalid:6443 HTTP/1.1\r\n"),
        "{}",
        heads[0]
    );
    assert!(
        heads[0].contains("Proxy-Authorization: Basic am9lOmh1bnRlcjI="),
        "{}",
        heads[0]
    );
    let seen = server.seen();
    assert_eq!(seen[0].uri(), "/v2/servers");
    assert!(!seen[0].headers().contains_key("proxy-authorization"));

    let http = HttpSettings {
        tls: TlsSettings::default().trust(Ca::new().pem),
        ..http
    };
    let wary = client("https://cloud.invalid:6443/v2".to_owned(), http);
    let error = wary
        .build()
        .unwrap()
        .send(Request::get("/servers"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn loopback_is_reached_directly() {
    let server = Server::plain().await;
    let proxy = Proxy::before(server.address).await;
    let http = HttpSettings {
        proxy: proxy.settings(),
        ..HttpSettings::default()
    };
    let direct = client(format!("http://{}", server.address), http.clone());
    direct
        .build()
        .unwrap()
        .send(Request::get("/x"))
        .await
        .unwrap();
    assert_eq!(server.seen().len(), 1);
    assert!(proxy.heads().is_empty());
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let address = raw(|_, mut stream, _| async move {
        let answer = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let proxy = ProxySettings::from_variables(|name| {
        (name == "HTTPS_PROXY").then(|| format!("http://joe:hunter2@{address}"))
    });
    let http = HttpSettings {
        proxy: proxy.unwrap(),
        ..HttpSettings::default()
    };
    let client = client("https://cloud.invalid".to_owned(), http)
        .build()
        .unwrap();
    let error = client.send(Request::post("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("proxy authorization required"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_proxy_can_be_spoken_to_over_tls() {
    let ca = Ca::new();
    let server = Server::tls(ca.acceptor("cloud.invalid", None)).await;
    let upstream = server.address;
    let acceptor = ca.acceptor("127.0.0.1", None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let head = read_head(&mut stream).await;
        let ready = "HTTP/1.1 200 Connection established\r\n\r\n";
        stream.write_all(ready.as_bytes()).await.unwrap();
        let mut upstream = TcpStream::connect(upstream).await.unwrap();
        // Either side may hang up first.
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
        head
    });
    let settings = ProxySettings::from_variables(|name| {
        (name == "HTTPS_PROXY").then(|| format!("https://{address}"))
    });
    let http = HttpSettings {
        proxy: settings.unwrap(),
        tls: TlsSettings::default().trust(ca.pem.as_str()),
        ..HttpSettings::default()
    };
    let client = client("https://cloud.invalid".to_owned(), http)
        .build()
        .unwrap();
    client.send(Request::get("/servers")).await.unwrap();
    drop(client);
    assert_eq!(server.seen()[0].uri(), "/servers");
    let head = proxy.await.unwrap();
    assert!(head.starts_with("CONNECT cloud.invalid:443 "), "{head}");
}

/// Speaks SOCKS5 with one client, connects it with `upstream`, and returns who asked for what.
async fn socks(mut stream: TcpStream, upstream: SocketAddr) -> String {
    let mut greeting = [0; 3];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(greeting, [5, 1, 2], "SOCKS5 with a name and a password");
    stream.write_all(&[5, 2]).await.unwrap();
    let mut version = [0; 1];
    stream.read_exact(&mut version).await.unwrap();
    let user = counted_text(&mut stream).await;
    let password = counted_text(&mut stream).await;
    stream.write_all(&[1, 0]).await.unwrap();
    let mut request = [0; 4];
    stream.read_exact(&mut request).await.unwrap();
    assert_eq!(request, [5, 1, 0, 3], "a connection to a name");
    let host = counted_text(&mut stream).await;
    let port = stream.read_u16().await.unwrap();
    stream
        .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut upstream = TcpStream::connect(upstream).await.unwrap();
    // Either side may hang up first.
    let _ = copy_bidirectional(&mut stream, &mut upstream).await;
    format!("{user}:{password} {host}:{port}")
}

async fn counted_text(stream: &mut TcpStream) -> String {
    let length = stream.read_u8().await.unwrap();
    let mut text = vec![0; length.into()];
    stream.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_socks_proxy_resolves_names_and_is_shown_the_password() {
    let ca = Ca::new();
    for (case, server, url, asked) in [
        (
            "https",
            Server::tls(ca.acceptor("cloud.invalid", None)).await,
            "https://cloud.invalid/v2",
            "joe:hunter2 cloud.invalid:443",
        ),
        (
            "http",
            Server::plain().await,
            "http://cloud.invalid/v2",
            "joe:hunter2 cloud.invalid:80",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = server.address;
        let proxy = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            socks(stream, upstream).await
        });
        let settings = ProxySettings::from_variables(|name| match name {
            "HTTP_PROXY" | "HTTPS_PROXY" => Some(format!("socks5://joe:hunter2@{address}")),
            _ => None,
        });
        let http = HttpSettings {
            proxy: settings.unwrap(),
            tls: TlsSettings::default().trust(ca.pem.as_str()),
            ..HttpSettings::default()
        };
        let client = client(url.to_owned(), http).build().unwrap();
        client.send(Request::get("/servers")).await.unwrap();
        drop(client);
        let seen = server.seen();
        assert_eq!(seen[0].uri(), "/v2/servers", "{case}");
        assert!(!seen[0].headers().contains_key("proxy-authorization"));
        assert_eq!(proxy.await.unwrap(), asked, "{case}");
    }
}
