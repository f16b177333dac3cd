//! Serves one connection, from its first request to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::idle_timeout::{Activity, ConnectionTimeouts, Watched};
use super::responses::plain_text;

/// The maximum size of a request's headers, as upstream.
const MAX_HEADER_BYTES: u32 = 1 << 20;

/// No client needs more headers, and each costs memory before its request is parsed.
const MAX_HEADERS: usize = 512;

/// The maximum header size per request on an HTTP/2 connection: the longest token, and some. A header that was sent
/// before takes one byte on the wire and a hundred here, for every stream.
const MAX_HTTP2_HEADER_BYTES: u32 = 128 * 1024;

/// The size of a frame, and how much a client may send ahead on one HTTP/2 stream.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeouts: ConnectionTimeouts,
    /// From the headers of a request to its response.
    pub(super) request: Duration,
    /// How long a client that timed out has to close the connection.
    pub(super) close_timeout: Duration,
    /// Concurrent requests on one HTTP/2 connection.
    pub(super) http2_streams: u32,
}

impl Limits {
    pub(super) fn with_http2_streams(http2_streams: u32) -> Self {
        Self {
            timeouts: ConnectionTimeouts {
                headers: Duration::from_secs(32),
                idle: Duration::from_secs(90),
            },
            request: Duration::from_mins(1),
            close_timeout: Duration::from_secs(5),
            http2_streams,
        }
    }
}

/// The client of a connection. Every request carries it as an extension.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer {
    /// The client's certificate chain. The client has proven that it holds the key; who signed it is not checked
    /// yet.
    pub(super) certificates: Arc<[CertificateDer<'static>]>,
    /// Cancelled to close the connection after its current requests.
    pub(super) close: CancellationToken,
}

/// The HTTP version, as negotiated in the TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// How a connection is ended by the server.
#[derive(Debug, Clone)]
pub(super) struct Shutdown {
    /// Accept no new requests.
    pub(super) stop: CancellationToken,
    /// Drop the connection.
    pub(super) kill: CancellationToken,
}

/// What the server knows about a connection.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    pub(super) peer: Peer,
    pub(super) activity: Activity,
    pub(super) shutdown: Shutdown,
}

/// Serves a connection until the client closes it, times out, or the server stops.
pub(super) async fn serve<S>(
    stream: S,
    protocol: Protocol,
    context: ConnectionContext,
    router: Router,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ConnectionContext {
        peer,
        activity,
        shutdown,
    } = context;
    let close = peer.close.clone();
    let answers = service_fn({
        let activity = activity.clone();
        move |request| {
            answer(
                request,
                peer.clone(),
                router.clone(),
                activity.clone(),
                limits.request,
            )
        }
    });
    let builder = builder(protocol, limits);
    // On HTTP/2, incoming bytes need not be a request: clients ping.
    let watched = match protocol {
        Protocol::Http1 => Watched::new(stream, activity.clone()),
        Protocol::Http2 => Watched::new(stream, Activity::begin()),
    };
    let connection = builder.serve_connection(TokioIo::new(watched), answers);
    tokio::pin!(connection);

    let close_timeout = tokio::select! {
        ended = &mut connection => return log_end(ended),
        () = activity.timed_out(limits.timeouts) => limits.close_timeout,
        () = close.cancelled() => limits.request,
        () = shutdown.kill.cancelled() => return,
        // The server drops the connection after its own timeout.
        () = shutdown.stop.cancelled() => Duration::MAX,
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = &mut connection => log_end(ended),
        () = shutdown.kill.cancelled() => {}
        () = tokio::time::sleep(close_timeout) => tracing::debug!("connection closed: client timed out"),
    }
}

fn builder(protocol: Protocol, limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Our own timeout distinguishes a slow request from an idle connection.
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(MAX_HTTP2_HEADER_BYTES)
        .max_frame_size(STREAM_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW);
    match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_only(),
    }
}

async fn answer(
    mut request: Request<Incoming>,
    peer: Peer,
    mut router: Router,
    activity: Activity,
    timeouts: Duration,
) -> Result<Response, Infallible> {
    let _answering = activity.request_began();
    // The parser stops reading at the limit, but may have read past it by then.
    let is_too_large = header_bytes(&request) > MAX_HEADER_BYTES as usize;
    if is_too_large || request.headers().len() > MAX_HEADERS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(plain_text(status, "the headers are too large"));
    }
    request.extensions_mut().insert(peer);
    let answer = router.call(request.map(Body::new));
    match tokio::time::timeout(timeouts, answer).await {
        Ok(answer) => answer,
        Err(_) => Ok(plain_text(
            StatusCode::GATEWAY_TIMEOUT,
            "the request took too long",
        )),
    }
}

fn header_bytes(request: &Request<Incoming>) -> usize {
    let target = request.uri().path().len() + request.uri().query().unwrap_or_default().len();
    let method = request.method().as_str().len();
    let headers = request.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    method + target + headers
}

fn log_end(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(err = error, "connection closed");
    }
}

#[cfg(test)]
mod tests;
