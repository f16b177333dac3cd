//! A port that is served.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cloudkeel_api::Clock;
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServingError;
use super::connection::{self, Limits, Peer, Protocol, Shutdown};
use super::listener::listen;
use super::tls::{ClientCertificates, ServerNames, Tls};
use crate::options::ListenerOptions;

/// Connections at the same time. More wait in the kernel until one ends.
const MOST_CONNECTIONS: usize = 1000;

/// A client that has not finished its TLS handshake by then never will.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long requests may go on once the server was told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// A pause after the system refused a connection, for lack of files or memory.
const BREATHER: Duration = Duration::from_millis(100);

/// Finds dead clients behind firewalls.
const TCP_KEEPALIVE: Duration = Duration::from_mins(3);

/// An open port with its TLS, ready to serve.
pub struct SecureServer {
    listener: TcpListener,
    tls: Tls,
    limits: Limits,
}

impl SecureServer {
    /// Opens the port of the manager, whose clients may show certificates. `None` if it is switched off.
    pub async fn bind(
        options: &ListenerOptions,
        names: &ServerNames,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, ServingError> {
        Self::open(options, names, ClientCertificates::Welcome, clock).await
    }

    /// Opens the port of webhooks, where certificates of clients mean nothing. `None` if it is switched
    /// off.
    pub async fn bind_webhooks(
        options: &ListenerOptions,
        names: &ServerNames,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, ServingError> {
        Self::open(options, names, ClientCertificates::Ignored, clock).await
    }

    /// Serves the manager's endpoints on a listener that is open already, whatever port the options name.
    pub async fn on(
        listener: TcpListener,
        options: &ListenerOptions,
        names: &ServerNames,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServingError> {
        Self::with(listener, options, names, ClientCertificates::Welcome, clock).await
    }

    async fn open(
        options: &ListenerOptions,
        names: &ServerNames,
        clients: ClientCertificates,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, ServingError> {
        if options.port == 0 {
            return Ok(None);
        }
        let listener = listen(options.address, options.port, options.share_port)?;
        Self::with(listener, options, names, clients, clock)
            .await
            .map(Some)
    }

    async fn with(
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

    /// Serves until `stop` is cancelled: then takes no more connections, lets requests finish for a
    /// while, and returns when the last connection is gone.
    pub async fn run(self, router: Router, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let shutdown = Shutdown {
            stop: stop.clone(),
            kill: CancellationToken::new(),
        };
        let Self {
            listener,
            tls,
            limits,
        } = self;
        let accept = accept(&listener, &tls, |stream, config, permit| {
            let served = serve(stream, config, router.clone(), limits, shutdown.clone());
            connections.spawn(async move {
                served.await;
                drop(permit);
            });
        });
        tokio::select! {
            () = accept => {}
            () = tls.keep_fresh() => {}
            () = stop.cancelled() => {}
        }
        drop(listener);
        connections.close();
        if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "dropping requests that did not end");
            shutdown.kill.cancel();
            connections.wait().await;
        }
    }
}

/// Hands over one connection after the other. Never returns.
async fn accept(
    listener: &TcpListener,
    tls: &Tls,
    hand_over: impl Fn(TcpStream, Arc<ServerConfig>, Option<OwnedSemaphorePermit>),
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // The semaphore is never closed, so there is always a permit in the end.
        let permit = Arc::clone(&room).acquire_owned().await.ok();
        let accepted = listener.accept().await.and_then(|(stream, _)| {
            let dialled = stream.local_addr()?.ip();
            tune(&stream)?;
            Ok((stream, dialled))
        });
        match accepted {
            Ok((stream, dialled)) => hand_over(stream, tls.config_for(dialled), permit),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(TCP_KEEPALIVE)
        .with_interval(TCP_KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

async fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
) {
    let handshake = TlsAcceptor::from(config).accept(stream);
    let stream = tokio::select! {
        done = tokio::time::timeout(HANDSHAKE, handshake) => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = shutdown.stop.cancelled() => return,
    };
    let (_, tls) = stream.get_ref();
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let peer = Peer {
        certificates: tls.peer_certificates().unwrap_or_default().into(),
        hang_up: CancellationToken::new(),
    };
    connection::serve(stream, protocol, peer, router, limits, shutdown).await;
}
