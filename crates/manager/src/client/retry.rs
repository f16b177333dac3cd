//! Retries requests that the API server could not accept, for a while.

use std::time::Duration;

use cloudkeel_http::retry_after;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep};
use tower::BoxError;
use tower::retry::Policy;
use tracing::debug;

use super::fence::is_write;
use crate::metrics::MeasureRequests;

/// No attempt starts later than this after the first failure. After that, the caller's work queue retries, in which
/// other items need not wait.
const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// The first pause if the API server gives none; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Retries a request that was throttled, or that the API server was not ready for.
///
/// It is the outermost layer of a client, so that every attempt checks the fence, waits for `--kube-api-qps`,
/// carries the current token and is counted.
#[derive(Clone)]
pub(super) struct RetryThrottled {
    measure: MeasureRequests,
    attempts: u32,
    deadline: Option<Instant>,
}

impl RetryThrottled {
    pub(super) const fn new(measure: MeasureRequests) -> Self {
        Self {
            measure,
            attempts: 0,
            deadline: None,
        }
    }

    /// The pause before the next attempt; `None` if there is none.
    fn next_pause(&mut self, asked: Option<Duration>, now: Instant) -> Option<Duration> {
        let deadline = *self.deadline.get_or_insert(now + RETRY_WINDOW);
        let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.attempts));
        // Jitter: requests that failed together are not retried together.
        let pause = asked
            .unwrap_or(doubled)
            .mul_f64(1.0 + fastrand::f64() / 5.0);
        self.attempts += 1;
        (pause <= deadline.saturating_duration_since(now)).then_some(pause)
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for RetryThrottled {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Sleep> {
        let response = result.as_ref().ok()?;
        // The API server gives seconds, so no clock is needed.
        let asked = retry_after(response.headers(), Timestamp::UNIX_EPOCH);
        if !may_repeat(request.method(), response.status(), asked.is_some()) {
            return None;
        }
        let pause = self.next_pause(asked, Instant::now())?;
        let (method, status) = (request.method(), response.status());
        debug!(%method, path = request.uri().path(), %status, retry_after = ?pause, "request throttled by the API server, retrying");
        self.measure.count_retry(method, status);
        Some(sleep(pause))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut copy = Request::new(request.body().try_clone()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
}

/// A throttled request had no effect. After 503 and 504 a write may have had one, so it is retried only if the API
/// server sends `Retry-After`, as Go's client does.
fn may_repeat(method: &Method, status: StatusCode, is_asked_for: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            is_asked_for || !is_write(method)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
