//! One connection, from its first request to its farewell.

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

use super::activity::{Activity, Patience, Watched};
use super::status::plain_text;

/// The headers of a request may not be larger, as upstream.
const MOST_HEADER_BYTES: u32 = 1 << 20;

/// Nobody needs more headers; each costs memory before its request is understood.
const MOST_HEADERS: usize = 512;

/// The headers of one request among many on an HTTP/2 connection: the longest token, and some. There a
/// header that was sent before is named by one byte and takes a hundred here, and that for every stream.
const MOST_HTTP2_HEADER_BYTES: u32 = 128 * 1024;

/// A frame, and what a client may send ahead on one stream of an HTTP/2 connection.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) patience: Patience,
    /// From the headers of a request to its answer.
    pub(super) request: Duration,
    /// For a client that was silent for too long to take its leave.
    pub(super) farewell: Duration,
    /// Requests at the same time on one HTTP/2 connection.
    pub(super) http2_streams: u32,
}

impl Limits {
    pub(super) fn with_http2_streams(http2_streams: u32) -> Self {
        Self {
            patience: Patience {
                headers: Duration::from_secs(32),
                idle: Duration::from_secs(90),
            },
            request: Duration::from_mins(1),
            farewell: Duration::from_secs(5),
            http2_streams,
        }
    }
}

/// Who is at the other end of a connection. Every request carries it as an extension.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer {
    /// The certificate that the client showed, and its chain; proven to be its own, but not who signed
    /// it.
    pub(super) certificates: Arc<[CertificateDer<'static>]>,
    /// Cancelled to end the connection after the present requests.
    pub(super) hang_up: CancellationToken,
}

/// The version of HTTP, as agreed in the TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// How a connection ends before its time.
#[derive(Debug, Clone)]
pub(super) struct Shutdown {
    /// Take no new requests.
    pub(super) stop: CancellationToken,
    /// Drop everything.
    pub(super) kill: CancellationToken,
}

/// A connection as the server knows it.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) peer: Peer,
    pub(super) activity: Activity,
    pub(super) shutdown: Shutdown,
}

/// Serves a connection until the client leaves, is silent for too long, or the server ends.
pub(super) async fn serve<S>(
    stream: S,
    protocol: Protocol,
    visit: Visit,
    router: Router,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Visit {
        peer,
        activity,
        shutdown,
    } = visit;
    let hang_up = peer.hang_up.clone();
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
    // On HTTP/2, bytes are no sign of a request: clients ping.
    let watched = match protocol {
        Protocol::Http1 => Watched::new(stream, activity.clone()),
        Protocol::Http2 => Watched::new(stream, Activity::begin()),
    };
    let connection = builder.serve_connection(TokioIo::new(watched), answers);
    tokio::pin!(connection);

    let farewell = tokio::select! {
        ended = &mut connection => return log_end(ended),
        () = activity.too_long_silent(limits.patience) => limits.farewell,
        () = hang_up.cancelled() => limits.request,
        () = shutdown.kill.cancelled() => return,
        // The server knows how long to wait, and then kills.
        () = shutdown.stop.cancelled() => Duration::MAX,
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = &mut connection => log_end(ended),
        () = shutdown.kill.cancelled() => {}
        () = tokio::time::sleep(farewell) => tracing::debug!("connection dropped: the client kept us waiting"),
    }
}

fn builder(protocol: Protocol, limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Ours tells a slow request from a quiet connection.
        .header_read_timeout(None)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(MOST_HTTP2_HEADER_BYTES)
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
    patience: Duration,
) -> Result<Response, Infallible> {
    let _answering = activity.request_began();
    // The parser stops reading at the limit, but may have read past it by then.
    let is_too_large = header_bytes(&request) > MOST_HEADER_BYTES as usize;
    if is_too_large || request.headers().len() > MOST_HEADERS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(plain_text(status, "the headers are too large"));
    }
    request.extensions_mut().insert(peer);
    let answer = router.call(request.map(Body::new));
    match tokio::time::timeout(patience, answer).await {
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
        tracing::debug!(error, "connection ended");
    }
}

#[cfg(test)]
mod tests;
