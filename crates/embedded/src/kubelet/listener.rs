//! What answers on a node port: an echo that also speaks a little HTTP, and the health of a Service.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const BUFFER: usize = 16 * 1024;

/// A pause after the system refused a connection, for lack of files or memory.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How long a conversation may go on after its port was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// The protocol of a port of a Service; there is no SCTP here.
    pub(super) fn of(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some(_) => None,
        }
    }
}

/// What a port answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// What it is sent; to an HTTP request, who answers.
    Echo { node: String, service: String },
    /// Whether the Service has a Pod here, as kube-proxy answers.
    Health { service: String, local: bool },
}

/// Opens a port and answers there until it is stopped. What it answers may change meanwhile.
pub(super) async fn listen(
    protocol: Protocol,
    at: SocketAddr,
    answer: watch::Receiver<Answer>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> io::Result<()> {
    let stop = stop.clone();
    match protocol {
        Protocol::Tcp => {
            let listener = TcpListener::bind(at).await?;
            let connections = tasks.clone();
            tasks.spawn(serve_tcp(listener, answer, stop, connections));
        }
        Protocol::Udp => {
            let socket = UdpSocket::bind(at).await?;
            tasks.spawn(async move {
                stop.run_until_cancelled(serve_udp(socket)).await;
            });
        }
    }
    Ok(())
}

async fn serve_tcp(
    listener: TcpListener,
    answer: watch::Receiver<Answer>,
    stop: CancellationToken,
    connections: TaskTracker,
) {
    let welcome = |stream| {
        let answer = answer.borrow().clone();
        connections.spawn(speak(stream, answer, stop.clone()));
    };
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => welcome(stream),
            Err(error) => {
                tracing::debug!(%error, "a connection to a node port was not accepted");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
    // Connections that wait to be accepted still are: closing the listener would cut them off.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, _)) = listener.accept() {
            let stream = stream.set_nonblocking(true).map(|()| stream);
            if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                welcome(stream);
            }
        }
    }
}

async fn speak(stream: TcpStream, answer: Answer, stop: CancellationToken) {
    let ended = tokio::select! {
        ended = converse(stream, &answer) => ended,
        () = last_words(&stop) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a node port broke");
    }
}

async fn last_words(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(CLOSE_TIMEOUT).await;
}

async fn serve_udp(socket: UdpSocket) {
    let mut buffer = vec![0; BUFFER];
    loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer).await
            && let Some(sent) = buffer.get(..length)
        {
            // Datagrams may be lost; so may answers.
            let _ = socket.send_to(sent, from).await;
        }
    }
}

async fn converse(mut stream: TcpStream, answer: &Answer) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = stream.read(&mut buffer).await?;
        let Some(sent) = buffer.get(..length).filter(|sent| !sent.is_empty()) else {
            return Ok(());
        };
        match (http_path(sent), answer) {
            (None, Answer::Echo { .. }) => stream.write_all(sent).await?,
            (None, Answer::Health { .. }) => return Ok(()),
            (Some(path), answer) => {
                stream.write_all(respond(path, answer).as_bytes()).await?;
                return stream.shutdown().await;
            }
        }
    }
}

/// The path of an HTTP request that begins here.
fn http_path(sent: &[u8]) -> Option<&str> {
    let line = sent.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_request =
        matches!(method, "GET" | "HEAD" | "POST" | "PUT") && version.starts_with("HTTP/1.");
    is_request.then_some(path)
}

fn respond(path: &str, answer: &Answer) -> String {
    let (status, kind, body) = match answer {
        Answer::Echo { node, service } => (
            "200 OK",
            "text/plain",
            format!("{service} on {node} {path}\n"),
        ),
        Answer::Health { service, local } => {
            let (namespace, name) = service.split_once('/').unwrap_or_default();
            let status = if *local {
                "200 OK"
            } else {
                "503 Service Unavailable"
            };
            let body = serde_json::json!({
                "service": {"namespace": namespace, "name": name},
                "localEndpoints": u8::from(*local),
                "serviceProxyHealthy": true,
            });
            (status, "application/json", body.to_string())
        }
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_request_lines_are_http() {
        for (sent, path) in [
            ("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", Some("/healthz")),
            ("HEAD / HTTP/1.0\r\n\r\n", Some("/")),
            ("hello", None),
            ("GET lost", None),
            ("BREW /pot HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(http_path(sent.as_bytes()), path, "{sent:?}");
        }
    }

    #[test]
    fn health_is_reported_as_kube_proxy_does() {
        let health = |local| Answer::Health {
            service: "shop/web".to_owned(),
            local,
        };
        assert!(respond("/healthz", &health(true)).starts_with("HTTP/1.1 200 OK\r\n"));
        let none = respond("/healthz", &health(false));
        assert!(none.starts_with("HTTP/1.1 503 "), "{none}");
        assert!(none.contains(r#""localEndpoints":0"#), "{none}");
    }
}
