//! `--kube-api-qps` and `--kube-api-burst`, if they are given.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_layer::Layer;
use tower_service::Service;

/// One limit for all clients of the process. Upstream has one per client, so the process as a whole exceeds the
/// flag.
#[derive(Debug, Clone)]
pub struct RequestLimit {
    per_request: Duration,
    burst: u32,
    /// When the bucket will be full if nothing more is sent.
    full_again: Arc<Mutex<Option<Instant>>>,
}

impl RequestLimit {
    /// This many requests per second, with this burst.
    pub fn new(qps: f64, burst: u32) -> Self {
        Self {
            per_request: Duration::from_secs_f64(1.0 / qps.max(1e-3)),
            burst: burst.max(1),
            full_again: Arc::new(Mutex::new(None)),
        }
    }

    /// Reserves the next request and returns when it may be sent.
    fn reserve(&self, now: Instant) -> Instant {
        let mut full_again = self
            .full_again
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let refilled = full_again.map_or(now, |at| at.max(now)) + self.per_request;
        *full_again = Some(refilled);
        let allowance = self.per_request.saturating_mul(self.burst);
        refilled
            .checked_sub(allowance)
            .map_or(now, |at| at.max(now))
    }
}

/// Delays requests to respect a limit.
#[derive(Debug, Clone)]
pub struct LimitRequests {
    limit: Option<RequestLimit>,
}

impl LimitRequests {
    /// A layer with this limit; without one it does nothing.
    pub const fn new(limit: Option<RequestLimit>) -> Self {
        Self { limit }
    }
}

impl<S> Layer<S> for LimitRequests {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            limit: self.limit.clone(),
            turn: None,
        }
    }
}

/// A client that is ready only when its request may be sent, so that later checks, such as the fence, run after the
/// wait.
#[derive(Debug)]
pub struct Limited<S> {
    inner: S,
    limit: Option<RequestLimit>,
    turn: Option<Pin<Box<Sleep>>>,
}

/// A reservation is not shared: a copy waits for its own.
impl<S: Clone> Clone for Limited<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            limit: self.limit.clone(),
            turn: None,
        }
    }
}

impl<S, A> Service<Request<A>> for Limited<S>
where
    S: Service<Request<A>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if let Some(limit) = &self.limit {
            let turn = self
                .turn
                .get_or_insert_with(|| Box::pin(sleep_until(limit.reserve(Instant::now()))));
            ready!(turn.as_mut().poll(context));
        }
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> S::Future {
        self.turn = None;
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_at_once_and_the_rest_in_step() {
        let limit = RequestLimit::new(10.0, 3);
        let start = Instant::now();
        let waits: Vec<_> = (0..6)
            .map(|_| limit.reserve(start).duration_since(start).as_millis())
            .collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        tokio::time::advance(Duration::from_secs(10)).await;
        let later = Instant::now();
        assert_eq!(limit.reserve(later), later, "the bucket has refilled");
    }
}
