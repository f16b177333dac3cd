//! A plain HTTP server for one page.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::ApiMetrics;

/// How long a caller may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Scrapers are few.
const MOST_CALLERS: usize = 16;

/// When to try again to open the port: a provider that is replaced gives it up soon.
const AGAIN: Duration = Duration::from_secs(5);

/// More than any scraper says.
const LONGEST_HEAD: usize = 16 * 1024;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Serving {
    /// Gives the port up.
    pub(crate) fn stop(&self) {
        self.0.abort();
    }

    /// Serves the page at an address such as `:8233`. A port that cannot be opened is told and tried
    /// again; nothing depends on it.
    pub(crate) fn start(address: String, metrics: ApiMetrics) -> Self {
        Self(tokio::spawn(async move {
            let listener = open(&address).await;
            serve(listener, &metrics).await;
        }))
    }
}

async fn open(address: &str) -> TcpListener {
    let mut told = false;
    loop {
        match bind(address).await {
            Ok(listener) => return listener,
            Err(error) if !told => {
                tracing::warn!(address, %error, "cannot serve metrics");
                told = true;
            }
            Err(_) => {}
        }
        sleep(AGAIN).await;
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

async fn serve(listener: TcpListener, metrics: &ApiMetrics) {
    let mut callers = JoinSet::new();
    loop {
        while callers.try_join_next().is_some() {}
        if callers.len() >= MOST_CALLERS {
            // Each has its limit, so one leaves soon.
            let _ = callers.join_next().await;
        }
        let Ok((caller, _)) = listener.accept().await else {
            // Out of sockets, most likely: the next moment is better.
            sleep(AGAIN).await;
            continue;
        };
        let metrics = metrics.clone();
        // A slow caller keeps nobody else waiting.
        callers.spawn(async move {
            let _ = timeout(PATIENCE, answer(caller, &metrics)).await;
        });
    }
}

async fn answer(mut caller: TcpStream, metrics: &ApiMetrics) -> std::io::Result<()> {
    let head = read_head(&mut caller).await?;
    let is_page = head.starts_with("GET /metrics ") || head.starts_with("GET /metrics?");
    let (status, body) = match metrics.page() {
        Ok(page) if is_page => ("200 OK", page),
        Ok(_) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        Err(error) => ("500 Internal Server Error", error.to_string()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    caller.write_all(head.as_bytes()).await?;
    caller.write_all(body.as_bytes()).await?;
    caller.shutdown().await
}

async fn read_head(caller: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = caller.read(&mut part).await?;
        head.extend(part.iter().take(read));
        if read == 0 || head.len() > LONGEST_HEAD {
            return Err(std::io::Error::other("not a request"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_page_is_at_its_place_and_nothing_else_is() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = ApiMetrics::new();
        let server = tokio::spawn(async move { serve(listener, &metrics).await });
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(page.contains("hcloud_api_in_flight_requests 0"), "{page}");
        let other = ask(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        server.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_say_nothing_keep_nobody_waiting_for_long() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = ApiMetrics::new();
        let server = tokio::spawn(async move { serve(listener, &metrics).await });
        let mut mute = Vec::new();
        for _ in 0..MOST_CALLERS * 2 {
            mute.push(TcpStream::connect(address).await.unwrap());
        }
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        server.abort();
    }

    #[tokio::test]
    async fn a_provider_that_is_replaced_leaves_the_port_to_the_next() {
        let first = bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let (first, second) = (
            async move {
                tokio::task::yield_now().await;
                drop(first);
            },
            open_soon(address),
        );
        let ((), second) = tokio::join!(first, second);
        assert_eq!(second.local_addr().unwrap(), address);
    }

    async fn open_soon(address: SocketAddr) -> TcpListener {
        tokio::time::pause();
        open(&address.to_string()).await
    }
}
