//! Metrics of webhooks.

use std::time::Duration;

use super::buckets;
use super::catalogue::{Catalogue, Counter, Histogram, Labelled};

/// The metrics of all webhooks, by status code and name. Upstream does not count successes.
#[derive(Debug, Clone)]
pub struct WebhookMetrics {
    requests: Labelled<Counter, 2>,
    durations: Labelled<Histogram, 2>,
}

impl WebhookMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const LABELS: [&str; 2] = ["code", "webhook"];
        Self {
            requests: catalogue.counters(
                "cloud_provider_webhook_request_total",
                LABELS,
                "Requests to webhooks, by status code.",
            ),
            durations: catalogue.histograms(
                "cloud_provider_webhook_request_duration_seconds",
                LABELS,
                buckets::WEBHOOK,
                "Seconds that requests to webhooks took, by status code.",
            ),
        }
    }

    /// A request was answered.
    pub fn answered(&self, webhook: &str, code: u16, duration: Duration) {
        let labels = [&code.to_string(), webhook];
        self.requests.with(labels).inc();
        self.durations.with(labels).observe(duration.as_secs_f64());
    }
}
