//! Metrics of requests to the Kubernetes API.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response, StatusCode, Uri};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tracing::{Level, enabled, trace};

use super::buckets;
use super::catalogue::{Catalogue, Counter, Histogram, Labelled};

/// The status code label of a request that got no response.
const NO_ANSWER: &str = "<error>";

/// The metrics of all Kubernetes clients of this process.
#[derive(Debug, Clone)]
pub struct RestClientMetrics {
    requests: Labelled<Counter, 3>,
    durations: Labelled<Histogram, 2>,
    retries: Labelled<Counter, 3>,
}

impl RestClientMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            requests: catalogue.counters(
                "rest_client_requests_total",
                ["code", "method", "host"],
                "Requests to the Kubernetes API, by status code, method and host.",
            ),
            durations: catalogue.histograms(
                "rest_client_request_duration_seconds",
                ["verb", "host"],
                buckets::REST_CLIENT,
                "Seconds until the Kubernetes API started its response, by verb and host.",
            ),
            retries: catalogue.counters(
                "rest_client_request_retries_total",
                ["code", "verb", "host"],
                "Retried requests to the Kubernetes API, by the status code that caused it, verb and host.",
            ),
        }
    }
}

/// Measures the Kubernetes client it is put around, one attempt at a time.
#[derive(Debug, Clone)]
pub struct MeasureRequests {
    metrics: RestClientMetrics,
    host: String,
}

impl RestClientMetrics {
    /// A layer for clients of the API server at this address. Requests pass it before they get their host, so it is
    /// given here.
    pub fn of(&self, cluster: &Uri) -> MeasureRequests {
        MeasureRequests {
            metrics: self.clone(),
            host: host_and_port(cluster),
        }
    }
}

impl MeasureRequests {
    /// A request that got this code is retried.
    pub(crate) fn count_retry(&self, method: &Method, code: StatusCode) {
        let labels = [code.as_str(), method.as_str(), &self.host];
        self.metrics.retries.with(labels).inc();
    }
}

/// Without the user and password that an address may contain: clients that scrape metrics must not see them.
fn host_and_port(cluster: &Uri) -> String {
    let host = cluster.host().unwrap_or_default();
    match cluster.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

impl<S> Layer<S> for MeasureRequests {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured {
            inner,
            measure: self.clone(),
        }
    }
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Measured<S> {
    inner: S,
    measure: MeasureRequests,
}

impl<S, A, B> Service<Request<A>> for Measured<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().as_str().to_owned();
        let path = enabled!(Level::TRACE).then(|| request.uri().path().to_owned());
        let MeasureRequests { metrics, host } = self.measure.clone();
        let sent = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = match &answer {
                Ok(response) => response.status().as_str().to_owned(),
                Err(_) => NO_ANSWER.to_owned(),
            };
            if let Some(path) = path {
                trace!(method, path, code, "API server request");
            }
            metrics.requests.with([&code, &method, &host]).inc();
            metrics
                .durations
                .with([&method, &host])
                .observe(sent.elapsed().as_secs_f64());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_shown_without_a_password() {
        for (address, expected) in [
            ("https://10.0.0.1:6443/", "10.0.0.1:6443"),
            ("https://api.example", "api.example"),
            ("https://[::1]:6443", "[::1]:6443"),
            ("https://admin:hunter2@api.example:6443", "api.example:6443"),
        ] {
            assert_eq!(host_and_port(&address.parse().unwrap()), expected);
        }
    }
}
