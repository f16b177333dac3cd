//! The results of past checks as metrics, cheap enough to be scraped every few seconds.

use jiff::Timestamp;
use prometheus_client::registry::Registry;

use super::Endpoint;
use crate::metrics::{Catalogue, Counter, Format, Gauge, Labelled, expose, register_start_time};

pub(super) struct Slis {
    latest: Labelled<Gauge, 2>,
    total: Labelled<Counter, 3>,
    registry: Registry,
}

impl Slis {
    pub(super) fn new(started: Timestamp) -> Self {
        let mut catalogue = Catalogue::new();
        let latest = catalogue.gauges(
            "kubernetes_healthcheck",
            ["name", "type"],
            "1 if the check passed when it was last asked, else 0.",
        );
        let total = catalogue.counters(
            "kubernetes_healthchecks_total",
            ["name", "type", "status"],
            "Results of the checks so far.",
        );
        register_start_time(&mut catalogue, started);
        let (registry, _) = catalogue.finish();
        Self {
            latest,
            total,
            registry,
        }
    }

    pub(super) fn observe(&self, check: &str, endpoint: Endpoint, passed: bool) {
        let (value, status) = if passed {
            (1.0, "success")
        } else {
            (0.0, "error")
        };
        let endpoint = endpoint.as_str();
        self.latest.with([check, endpoint]).set(value);
        self.total.with([check, endpoint, status]).inc();
    }

    pub(super) fn expose(&self, format: Format) -> Result<String, std::fmt::Error> {
        expose(&self.registry, format)
    }

    pub(super) fn reset(&self) {
        self.latest.clear();
        self.total.clear();
    }
}
