//! The Go CCM's own metrics of its API calls, at its own address.

mod serve;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

pub(crate) use self::serve::Serving;

/// The buckets of Go's client library.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    code: String,
    method: String,
    api_endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: String,
}

/// What is counted.
#[derive(Clone)]
pub(crate) struct ApiMetrics {
    registry: Arc<Registry>,
    calls: Family<Call, Counter>,
    in_flight: Gauge<i64, AtomicI64>,
    durations: Family<Method, Histogram>,
}

impl ApiMetrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let calls = Family::default();
        let in_flight = Gauge::default();
        let durations: Family<Method, Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register(
            "hcloud_api_requests",
            "Requests to the Cloud API by method, endpoint and status",
            Family::clone(&calls),
        );
        registry.register(
            "hcloud_api_in_flight_requests",
            "Requests to the Cloud API that are under way",
            Gauge::clone(&in_flight),
        );
        registry.register(
            "hcloud_api_request_duration_seconds",
            "How long requests to the Cloud API take",
            Family::clone(&durations),
        );
        Self {
            registry: Arc::new(registry),
            calls,
            in_flight,
            durations,
        }
    }

    /// The page for scrapers.
    fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// A way of sending that counts.
pub(crate) struct Counting {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) metrics: ApiMetrics,
    /// What every path begins with.
    pub(crate) prefix: String,
}

#[async_trait]
impl Transport for Counting {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let method = request.method().as_str().to_lowercase();
        let api_endpoint = endpoint(request.uri().path(), &self.prefix);
        let under_way = UnderWay::new(&self.metrics);
        let began = Instant::now();
        let answer = self.inner.send(request).await;
        drop(under_way);
        if let Ok(answer) = &answer {
            let call = Call {
                code: answer.status().as_u16().to_string(),
                method: method.clone(),
                api_endpoint,
            };
            self.metrics.calls.get_or_create(&call).inc();
            let duration = began.elapsed().as_secs_f64();
            let durations = self.metrics.durations.get_or_create(&Method { method });
            durations.observe(duration);
        }
        answer
    }
}

/// A request that is under way until this is dropped, also if nobody waits for it any more.
struct UnderWay<'a>(&'a ApiMetrics);

impl<'a> UnderWay<'a> {
    fn new(metrics: &'a ApiMetrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

/// The path without the version, and with `-` for every number.
fn endpoint(path: &str, prefix: &str) -> String {
    let path = path.strip_prefix(prefix).unwrap_or(path);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts = path.split('/');
    let parts: Vec<_> = parts
        .map(|part| if is_number(part) { "-" } else { part })
        .collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::{Reply, Script};

    use super::*;

    #[test]
    fn endpoints_are_named_as_the_go_ccm_names_them() {
        for (path, expected) in [
            ("/v1/servers", "/servers"),
            ("/v1/servers/42", "/servers/-"),
            (
                "/v1/load_balancers/7/actions/add_target",
                "/load_balancers/-/actions/add_target",
            ),
        ] {
            assert_eq!(endpoint(path, "/v1"), expected);
        }
    }

    #[tokio::test]
    async fn calls_are_counted_under_the_go_ccms_names() {
        let metrics = ApiMetrics::new();
        let counting = Counting {
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
            r#"hcloud_api_requests_total{code="200",method="get",api_endpoint="/servers/-"} 1"#,
            r#"hcloud_api_requests_total{code="404",method="get",api_endpoint="/servers/-"} 1"#,
            "hcloud_api_in_flight_requests 0",
            r#"hcloud_api_request_duration_seconds_count{method="get"} 2"#,
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
    }
}
