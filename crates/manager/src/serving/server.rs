//! A TLS server on one port.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use cloudkeel_api::Clock;
use cloudkeel_controllers::runtime::panic_text;
use futures::FutureExt as _;
use http::StatusCode;
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServingError;
use super::connection::{self, ConnectionContext, Limits, Peer, Protocol, Shutdown};
use super::connection_limit::ConnectionLimit;
use super::idle_timeout::Activity;
use super::listener::listen;
use super::responses::plain_text;
use super::tls::{ClientCertificates, ServerNames, Tls};
use crate::log_messages::{OPEN_REQUESTS_DROPPED, REQUEST_PANICKED};
use crate::options::ListenerOptions;

/// Concurrent connections. Each may hold its headers in memory, so this also limits the memory that anonymous
/// clients can use.
const MAX_CONNECTIONS: usize = 256;

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long requests may take after the server was asked to stop.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after the system refused a connection, for lack of file descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Detects dead clients behind firewalls.
const TCP_KEEPALIVE: Duration = Duration::from_mins(3);

/// An open port with TLS, ready to serve.
pub struct SecureServer {
    listener: TcpListener,
    tls: Tls,
    limits: Limits,
}

impl SecureServer {
    /// Opens the port that the options name; `None` if it is 0, which disables it.
    pub async fn bind(
        options: &ListenerOptions,
        names: &ServerNames,
        clients: ClientCertificates,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, ServingError> {
        if options.port == 0 {
            return Ok(None);
        }
        let listener = listen(options.address, options.port, options.share_port)?;
        let server = Self::on(listener, options, names, clients, clock);
        server.await.map(Some)
    }

    /// Uses a listener that is already open, whatever port the options name.
    pub async fn on(
        listener: TcpListener,
        options: &ListenerOptions,
        names: &ServerNames,
        clients: ClientCertificates,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServingError> {
        Ok(Self {
            listener,
            tls: Tls::new(options, names, clients, clock).await?,
            limits: Limits::with_http2_streams(options.http2_streams),
        })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is cancelled: then accepts no more connections, lets requests finish for a while, and
    /// returns when the last connection is closed.
    pub async fn run(self, router: Router, stop: CancellationToken) {
        let router = router.layer(from_fn(contain_panic));
        let shutdown = Shutdown {
            stop,
            kill: CancellationToken::new(),
        };
        let connections = TaskTracker::new();
        tokio::select! {
            () = self.accept(&router, &connections, &shutdown) => {}
            () = self.tls.keep_fresh() => {}
            () = shutdown.stop.cancelled() => {}
        }
        drop(self.listener);
        drain(connections, &shutdown.kill).await;
    }

    /// Accepts connections and starts a task for each. Never returns.
    async fn accept(&self, router: &Router, connections: &TaskTracker, shutdown: &Shutdown) {
        let limit = ConnectionLimit::new(MAX_CONNECTIONS);
        loop {
            let (stream, local_ip) = match self.next_connection().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(err = %error, "failed to accept connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let connect = ConnectionContext {
                peer: Peer::default(),
                activity: Activity::begin(),
                shutdown: Shutdown {
                    stop: shutdown.stop.clone(),
                    kill: shutdown.kill.child_token(),
                },
            };
            let slot = limit
                .acquire(&connect.activity, &connect.shutdown.kill)
                .await;
            let config = self.tls.config_for(local_ip);
            let served = serve(stream, config, connect, router.clone(), self.limits);
            connections.spawn(async move {
                served.await;
                drop(slot);
            });
        }
    }

    async fn next_connection(&self) -> io::Result<(TcpStream, IpAddr)> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new()
            .with_time(TCP_KEEPALIVE)
            .with_interval(TCP_KEEPALIVE);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        let local_ip = stream.local_addr()?.ip();
        Ok((stream, local_ip))
    }
}

/// Answers a request. One whose handler panics has failed, and the connection serves others.
async fn contain_panic(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answer.unwrap_or_else(|panic| {
        let panic = panic_text(panic.as_ref());
        tracing::error!(path, panic, "{REQUEST_PANICKED}");
        let text = "Internal Server Error: the handler panicked";
        plain_text(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

/// Waits for connections to finish, and drops those that take too long.
async fn drain(connections: TaskTracker, kill: &CancellationToken) {
    connections.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(connections = connections.len(), "{OPEN_REQUESTS_DROPPED}");
        kill.cancel();
        connections.wait().await;
    }
}

async fn serve<S>(
    stream: S,
    config: Arc<ServerConfig>,
    mut connect: ConnectionContext,
    router: Router,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = TlsAcceptor::from(config).accept(stream);
    let stream = tokio::select! {
        done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(err = %error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake timed out"),
        },
        () = connect.shutdown.stop.cancelled() => return,
        () = connect.shutdown.kill.cancelled() => return,
    };
    let (_, tls) = stream.get_ref();
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    connect.peer.certificates = tls.peer_certificates().unwrap_or_default().into();
    connection::serve(stream, protocol, connect, router, limits).await;
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Body;
    use axum::routing::get;
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;
    use tower::ServiceExt as _;

    use super::*;
    use crate::serving::testing::{clock, listener_options};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_finish_its_handshake_is_dropped() {
        let (options, names) = (listener_options(), ServerNames::default());
        let tls = Tls::new(&options, &names, ClientCertificates::Requested, clock()).await;
        let config = tls.unwrap().config_for(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let (mut client, server) = tokio::io::duplex(1024);
        let connect = ConnectionContext {
            peer: Peer::default(),
            activity: Activity::begin(),
            shutdown: Shutdown {
                stop: CancellationToken::new(),
                kill: CancellationToken::new(),
            },
        };
        let limits = Limits::with_http2_streams(100);
        let began = Instant::now();
        tokio::spawn(serve(server, config, connect, Router::new(), limits));
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(began.elapsed(), HANDSHAKE_TIMEOUT);
    }

    #[tokio::test]
    async fn a_handler_that_panics_fails_its_request_alone() {
        let router = Router::new()
            .route("/bug", get(async || -> String { panic!("planted") }))
            .route("/good", get(async || "good"))
            .layer(from_fn(contain_panic));
        for (path, status) in [("/bug", 500), ("/good", 200), ("/bug", 500)] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_have_their_grace_and_then_they_are_killed() {
        let connections = TaskTracker::new();
        let kill = CancellationToken::new();
        let began = Instant::now();
        connections.spawn(tokio::time::sleep(DRAIN_TIMEOUT / 2));
        drain(connections, &kill).await;
        assert_eq!(
            (began.elapsed(), kill.is_cancelled()),
            (DRAIN_TIMEOUT / 2, false)
        );

        let connections = TaskTracker::new();
        let began = Instant::now();
        connections.spawn(kill.clone().cancelled_owned());
        drain(connections, &kill).await;
        assert_eq!(
            (began.elapsed(), kill.is_cancelled()),
            (DRAIN_TIMEOUT, true)
        );
    }

    #[tokio::test]
    async fn port_zero_serves_nothing() {
        let (options, names) = (listener_options(), ServerNames::default());
        let clients = ClientCertificates::NotRequested;
        let bound = SecureServer::bind(&options, &names, clients, clock()).await;
        assert!(bound.unwrap().is_none());
    }
}
