//! A router on a socket, with limits on what a client may take: for the clouds and pages that users
//! run on their own machine.

mod write_timeout;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service as _;

use self::write_timeout::WriteTimeout;

/// A pause after the system refused a connection, for lack of files or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// What a client may take of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time; others wait until one ends.
    pub connections: usize,
    /// From the start of a connection, or the end of an answer, to the end of the next request's headers.
    pub headers: Duration,
    /// From the headers of a request to its answer.
    pub request: Duration,
    /// For how long a client may take nothing of an answer.
    pub stall: Duration,
    /// How large the headers of a request may be.
    pub header_bytes: usize,
    /// How large the body of a request may be.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            headers: Duration::from_secs(30),
            request: Duration::from_mins(5),
            stall: Duration::from_secs(30),
            header_bytes: 64 * 1024,
            body_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Serves until `stop` is over: then takes no more connections and lets requests finish. Dropped, it
/// ends everything at once.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let limit = Arc::new(Semaphore::new(limits.connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let next = async {
            let permit = Arc::clone(&limit).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (router, stopped) = (router.clone(), stopped.clone());
                connections.spawn(async move {
                    serve_connection(stream, router, limits, stopped).await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
    drop(listener);
    // Without connections there is no receiver.
    let _ = stopping.send(true);
    while connections.join_next().await.is_some() {}
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    // A socket that refuses this still carries bytes.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, router.clone(), limits));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(limits.header_bytes);
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.stall));
    let connection = builder.serve_connection(stream, service);
    tokio::pin!(connection);
    // A connection that fails concerns only its client.
    tokio::select! {
        _ = &mut connection => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(
    request: Request<Incoming>,
    mut router: Router,
    limits: Limits,
) -> Result<Response, Infallible> {
    let request = request.map(|body| Body::new(Limited::new(body, limits.body_bytes)));
    match tokio::time::timeout(limits.request, router.call(request)).await {
        Ok(answer) => answer,
        Err(_) => Ok((StatusCode::GATEWAY_TIMEOUT, "the request took too long").into_response()),
    }
}

#[cfg(test)]
mod tests;
