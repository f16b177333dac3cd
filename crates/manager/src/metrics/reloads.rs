//! Settings and credentials of clouds that changed while the program runs.

use super::catalogue::{Catalogue, Counter, Gauge, Labelled};

/// What became of new settings.
#[derive(Debug, Clone)]
pub struct ReloadMetrics {
    reloads: Labelled<Counter, 2>,
    stale: Labelled<Gauge, 1>,
}

impl ReloadMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            reloads: catalogue.counters(
                "cloudkeel_cloud_reloads_total",
                ["cloud", "result"],
                "New settings of a cloud that were taken (`success`) or refused (`error`).",
            ),
            stale: catalogue.gauges(
                "cloudkeel_cloud_settings_stale",
                ["cloud"],
                "1 while a cloud works with other settings than its files and Secrets have now.",
            ),
        }
    }

    /// New settings are in use.
    pub fn taken(&self, cloud: &str) {
        self.reloads.with([cloud, "success"]).inc();
        self.stale.with([cloud]).set(0.0);
    }

    /// New settings are of no use; the old ones stay.
    pub fn refused(&self, cloud: &str) {
        self.reloads.with([cloud, "error"]).inc();
        self.stale.with([cloud]).set(1.0);
    }

    /// The settings in use are those that the files and Secrets have.
    pub fn current(&self, cloud: &str) {
        self.stale.with([cloud]).set(0.0);
    }
}
