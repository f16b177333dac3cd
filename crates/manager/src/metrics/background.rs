//! Metrics of provider controllers.

use super::catalogue::{Catalogue, Counter, Labelled};

/// How often they failed.
#[derive(Debug, Clone)]
pub struct BackgroundMetrics {
    failures: Labelled<Counter, 2>,
}

impl BackgroundMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            failures: catalogue.counters(
                "cloudkeel_background_controller_failures_total",
                ["cloud", "controller"],
                "How often a provider controller failed, panicked or returned too early.",
            ),
        }
    }

    /// One failed and is restarted.
    pub fn failed(&self, cloud: &str, controller: &str) {
        self.failures.with([cloud, controller]).inc();
    }
}
