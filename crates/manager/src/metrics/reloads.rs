//! Metrics of reloaded cloud settings and credentials.

use super::catalogue::{Catalogue, Counter, Gauge, Labelled};

/// How often settings were reloaded, and whether they are current.
#[derive(Debug, Clone)]
pub struct ReloadMetrics {
    reloads: Labelled<Counter, 2>,
    stale: Labelled<Gauge, 1>,
    available: Labelled<Gauge, 1>,
}

impl ReloadMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            reloads: catalogue.counters(
                "cloudkeel_cloud_reloads_total",
                ["cloud", "result"],
                "Reloads of a cloud's settings that succeeded (`success`) or failed (`error`).",
            ),
            stale: catalogue.gauges(
                "cloudkeel_cloud_settings_stale",
                ["cloud"],
                "1 while a cloud uses other settings than its files and Secrets contain.",
            ),
            available: catalogue.gauges(
                "cloudkeel_cloud_available",
                ["cloud"],
                "0 while a cloud could not be connected to since the start of this process, else 1.",
            ),
        }
    }

    /// New settings are in use.
    pub fn applied(&self, cloud: &str) {
        self.reloads.with([cloud, "success"]).inc();
        self.stale.with([cloud]).set(0.0);
    }

    /// New settings were rejected; the current ones stay.
    pub fn rejected(&self, cloud: &str) {
        self.reloads.with([cloud, "error"]).inc();
        self.stale.with([cloud]).set(1.0);
    }

    /// Whether the provider could be built.
    pub fn available(&self, cloud: &str, is_available: bool) {
        self.available
            .with([cloud])
            .set(f64::from(u8::from(is_available)));
    }

    /// The settings in use are those in the files and Secrets.
    pub fn current(&self, cloud: &str) {
        self.stale.with([cloud]).set(0.0);
    }
}
