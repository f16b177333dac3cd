//! Metrics of API calls under the names that a Go CCM gives them, at its own address.

mod server;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

pub use self::server::{MetricsServer, Pages};

/// The buckets of Go's client library.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Labels of a metric and their values.
pub type MetricLabels = Vec<(&'static str, String)>;

/// A call that was answered.
#[derive(Debug, Clone, Copy)]
pub struct ApiCall<'a> {
    /// In lower case.
    pub method: &'a str,
    /// Without what every path of the API begins with.
    pub path: &'a str,
    /// The body of the request, for clouds that name the operation in it.
    pub body: &'a [u8],
    /// The status of the answer.
    pub status: u16,
}

/// What a Go CCM calls its metrics, and how it labels them. An empty name is a metric that it does not have.
#[derive(Debug, Clone, Copy)]
pub struct MetricNames {
    /// The number of answered requests, without `_total`.
    pub requests: &'static str,
    /// Requests that are under way.
    pub in_flight: &'static str,
    /// How long requests take, in seconds.
    pub durations: &'static str,
    /// The labels of `requests`. A call without labels is not counted, where a Go CCM counts only some.
    pub request_labels: fn(&ApiCall<'_>) -> MetricLabels,
    /// The labels of `durations`, likewise.
    pub duration_labels: fn(&ApiCall<'_>) -> MetricLabels,
}

/// The path with `-` for every number, as Go CCMs name endpoints.
pub fn endpoint_without_ids(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts = path.split('/');
    let parts: Vec<_> = parts
        .map(|part| if is_number(part) { "-" } else { part })
        .collect();
    parts.join("/")
}

/// Counts API calls.
#[derive(Clone)]
pub struct ApiMetrics {
    address: String,
    names: MetricNames,
    registry: Arc<Registry>,
    requests: Family<MetricLabels, Counter>,
    in_flight: Gauge<i64, AtomicI64>,
    durations: Family<MetricLabels, Histogram>,
}

impl ApiMetrics {
    /// Counts under these names, for this address.
    pub fn new(address: impl Into<String>, names: MetricNames) -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let in_flight = Gauge::default();
        let durations: Family<MetricLabels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        if !names.requests.is_empty() {
            let help = "Requests to the API that were answered";
            registry.register(names.requests, help, Family::clone(&requests));
        }
        if !names.in_flight.is_empty() {
            let help = "Requests to the API that are under way";
            registry.register(names.in_flight, help, Gauge::clone(&in_flight));
        }
        if !names.durations.is_empty() {
            let help = "How long requests to the API take";
            registry.register(names.durations, help, Family::clone(&durations));
        }
        Self {
            address: address.into(),
            names,
            registry: Arc::new(registry),
            requests,
            in_flight,
            durations,
        }
    }

    /// Where they are served.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The page for scrapers.
    fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    fn count(&self, call: &ApiCall<'_>, seconds: f64) {
        let labels = (self.names.request_labels)(call);
        if !labels.is_empty() {
            self.requests.get_or_create(&labels).inc();
        }
        let labels = (self.names.duration_labels)(call);
        if !labels.is_empty() {
            self.durations.get_or_create(&labels).observe(seconds);
        }
    }
}

/// A transport that counts.
pub(super) struct CountingTransport {
    pub(super) inner: Arc<dyn Transport>,
    pub(super) metrics: ApiMetrics,
    /// What every path begins with.
    pub(super) prefix: String,
}

#[async_trait]
impl Transport for CountingTransport {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let method = request.method().as_str().to_lowercase();
        let path = request.uri().path();
        let path = path.strip_prefix(&self.prefix).unwrap_or(path).to_owned();
        let body = request.body().clone();
        let in_flight = InFlight::new(&self.metrics);
        let began = Instant::now();
        let answer = self.inner.send(request).await;
        drop(in_flight);
        if let Ok(answer) = &answer {
            let call = ApiCall {
                method: &method,
                path: &path,
                body: &body,
                status: answer.status().as_u16(),
            };
            self.metrics.count(&call, began.elapsed().as_secs_f64());
        }
        answer
    }
}

/// A request that is under way until this is dropped, also if its caller was dropped.
struct InFlight<'a>(&'a ApiMetrics);

impl<'a> InFlight<'a> {
    fn new(metrics: &'a ApiMetrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

#[cfg(test)]
pub(super) const EXAMPLE: MetricNames = MetricNames {
    requests: "example_api_requests",
    in_flight: "example_api_in_flight_requests",
    durations: "example_api_request_duration_seconds",
    request_labels: |call| {
        vec![
            ("code", call.status.to_string()),
            ("api_endpoint", endpoint_without_ids(call.path)),
        ]
    },
    duration_labels: |call| vec![("method", call.method.to_owned())],
};

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::{Reply, Script};

    use super::*;

    #[test]
    fn endpoints_are_named_without_ids() {
        for (path, expected) in [
            ("/servers", "/servers"),
            ("/servers/42", "/servers/-"),
            (
                "/load_balancers/7/actions/add_target",
                "/load_balancers/-/actions/add_target",
            ),
        ] {
            assert_eq!(endpoint_without_ids(path), expected);
        }
    }

    #[tokio::test]
    async fn calls_are_counted_under_the_given_names() {
        let metrics = ApiMetrics::new("127.0.0.1:0", EXAMPLE);
        let counting = CountingTransport {
            inner: Script::new([Reply::status(200), Reply::status(404)]),
            metrics: metrics.clone(),
            prefix: "/v1".to_owned(),
        };
        for _ in 0..2 {
            let mut request = http::Request::new(Bytes::new());
            *request.uri_mut() = "https://x/v1/servers/42".parse().unwrap();
            counting.send(request).await.unwrap();
        }
        let page = metrics.page().unwrap();
        for line in [
            r#"example_api_requests_total{code="200",api_endpoint="/servers/-"} 1"#,
            r#"example_api_requests_total{code="404",api_endpoint="/servers/-"} 1"#,
            "example_api_in_flight_requests 0",
            r#"example_api_request_duration_seconds_count{method="get"} 2"#,
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
    }
}
