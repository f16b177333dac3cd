//! A plain HTTP server for a page or two.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::ApiMetrics;

/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Scrapers are few.
const MAX_CONNECTIONS: usize = 16;

/// When to try again to open the port: a provider that is replaced gives it up soon.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// More than any scraper sends.
const MAX_HEAD: usize = 16 * 1024;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a plain server shows.
#[async_trait]
pub trait Pages: Send + Sync + 'static {
    /// What is at a path; `None` if there is nothing.
    async fn get(&self, path: &str) -> Option<(StatusCode, String)>;
}

/// Metrics are at `/metrics`.
#[async_trait]
impl Pages for ApiMetrics {
    async fn get(&self, path: &str) -> Option<(StatusCode, String)> {
        (path == "/metrics").then(|| match self.page() {
            Ok(page) => (StatusCode::OK, page),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        })
    }
}

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct MetricsServer(JoinHandle<()>);

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl MetricsServer {
    /// Gives the port up.
    pub fn stop(&self) {
        self.0.abort();
    }

    /// Serves pages at an address such as `:8233`. A port that cannot be opened is logged and
    /// tried again; nothing depends on it.
    pub fn start(address: String, pages: impl Pages) -> Self {
        Self(tokio::spawn(async move {
            let listener = open(&address).await;
            serve(listener, Arc::new(pages)).await;
        }))
    }
}

async fn open(address: &str) -> TcpListener {
    let mut logged = false;
    loop {
        match bind(address).await {
            Ok(listener) => return listener,
            Err(err) if !logged => {
                tracing::warn!(address, %err, "failed to listen for metrics");
                logged = true;
            }
            Err(_) => {}
        }
        sleep(RETRY_AFTER).await;
    }
}

/// As Go reads addresses: without a host, all of them.
async fn bind(address: &str) -> std::io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await;
    };
    let port = port.parse().map_err(std::io::Error::other)?;
    let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    match TcpListener::bind(both).await {
        Ok(listener) => Ok(listener),
        // A machine without IPv6.
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

async fn serve(listener: TcpListener, pages: Arc<dyn Pages>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            // Each has its timeout, so one ends soon.
            let _ = connections.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // Out of sockets, most likely.
            sleep(RETRY_AFTER).await;
            continue;
        };
        let pages = Arc::clone(&pages);
        // A slow client does not hold up the others.
        connections.spawn(async move {
            let _ = timeout(REQUEST_TIMEOUT, answer(stream, &*pages)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, pages: &dyn Pages) -> std::io::Result<()> {
    let head = read_head(&mut stream).await?;
    let target = head
        .strip_prefix("GET ")
        .and_then(|rest| rest.split(' ').next());
    let path = target.map_or("", |target| target.split('?').next().unwrap_or(target));
    let found = pages.get(path).await;
    let (status, body) =
        found.unwrap_or_else(|| (StatusCode::NOT_FOUND, "there is nothing here\n".to_owned()));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part).await?;
        head.extend(part.iter().take(read));
        if read == 0 || head.len() > MAX_HEAD {
            return Err(std::io::Error::other("not a request"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_page_is_served_at_its_path_only() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = ApiMetrics::new("127.0.0.1:0", super::super::EXAMPLE);
        let server = tokio::spawn(async move { serve(listener, Arc::new(metrics)).await });
        let page = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(page.contains("example_api_in_flight_requests 0"), "{page}");
        let other = get(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        server.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_send_nothing_do_not_hold_up_others_for_long() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = ApiMetrics::new("127.0.0.1:0", super::super::EXAMPLE);
        let server = tokio::spawn(async move { serve(listener, Arc::new(metrics)).await });
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS * 2 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let page = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        server.abort();
    }

    #[tokio::test]
    async fn a_provider_that_is_replaced_frees_the_port_for_the_next() {
        let first = bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let (first, second) = (
            async move {
                tokio::task::yield_now().await;
                drop(first);
            },
            open_later(address),
        );
        let ((), second) = tokio::join!(first, second);
        assert_eq!(second.local_addr().unwrap(), address);
    }

    async fn open_later(address: SocketAddr) -> TcpListener {
        tokio::time::pause();
        open(&address.to_string()).await
    }
}
