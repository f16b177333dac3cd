//! Registers metrics and documents them at the same time, so that the reference matches what is exposed.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter as AnyCounter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge as AnyGauge;
pub use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A count of events.
pub type Counter = AnyCounter<u64, AtomicU64>;

/// A count of seconds.
pub type Seconds = AnyCounter<f64, AtomicU64>;

/// A value that goes up and down.
pub type Gauge = AnyGauge<f64, AtomicU64>;

/// What every counter's name ends with.
pub(super) const COUNTER_SUFFIX: &str = "_total";

/// Where a metric comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Name, labels and buckets are those of the Go cloud-controller-manager.
    Upstream,
    /// cloudkeel's own.
    Cloudkeel,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by size.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// Its name in the exposition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One row of the metrics reference.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricDoc {
    /// Its full name, as it is scraped.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: Vec<&'static str>,
    /// Its help text, as a sentence.
    pub help: &'static str,
    /// Where it comes from.
    pub origin: Origin,
}

/// A Markdown table of metrics, in the order given.
pub fn metrics_table(docs: &[MetricDoc]) -> String {
    let mut table =
        String::from("| metric | type | labels | upstream | meaning |\n|---|---|---|---|---|\n");
    for doc in docs {
        let labels: Vec<_> = doc
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let upstream = match doc.origin {
            Origin::Upstream => "yes",
            Origin::Cloudkeel => "no",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {upstream} | {} |",
            doc.name,
            doc.kind.as_str(),
            if labels.is_empty() {
                "–".to_owned()
            } else {
                labels.join(", ")
            },
            doc.help.replace('|', "\\|"),
        );
    }
    table
}

type Labels<const N: usize> = [(&'static str, String); N];

/// A metric with `N` labels; each combination of their values is a series of its own.
#[derive(Debug, Clone)]
pub struct Labelled<M, const N: usize> {
    names: [&'static str; N],
    family: Family<Labels<N>, M, Make<M>>,
}

impl<M: Clone, const N: usize> Labelled<M, N> {
    fn new(names: [&'static str; N], make: Make<M>) -> Self {
        Self {
            names,
            family: Family::new_with_constructor(make),
        }
    }

    /// The series with these values, in the order of the labels. It is created if missing.
    pub fn with(&self, values: [&str; N]) -> M {
        let mut values = values.into_iter();
        let labels = self
            .names
            .map(|name| (name, values.next().unwrap_or_default().to_owned()));
        self.family.get_or_create_owned(&labels)
    }

    /// Removes all series.
    pub(crate) fn clear(&self) {
        self.family.clear();
    }
}

/// Creates the metric of a new series.
#[derive(Debug)]
struct Make<M> {
    with: fn(&'static [f64]) -> M,
    buckets: &'static [f64],
}

impl<M> Clone for Make<M> {
    fn clone(&self) -> Self {
        Self {
            with: self.with,
            buckets: self.buckets,
        }
    }
}

impl<M> MetricConstructor<M> for Make<M> {
    fn new_metric(&self) -> M {
        (self.with)(self.buckets)
    }
}

/// Registers metrics and collects their documentation.
#[derive(Debug)]
pub(crate) struct Catalogue {
    registry: Registry,
    docs: Vec<MetricDoc>,
    origin: Origin,
}

impl Catalogue {
    /// An empty one; what is added first comes from upstream.
    pub(crate) fn new() -> Self {
        Self {
            registry: Registry::default(),
            docs: Vec::new(),
            origin: Origin::Upstream,
        }
    }

    /// What is added from here on is cloudkeel's own.
    pub(crate) fn own(&mut self) {
        self.origin = Origin::Cloudkeel;
    }

    /// The registry and the documentation of what is in it.
    pub(crate) fn finish(self) -> (Registry, Vec<MetricDoc>) {
        (self.registry, self.docs)
    }

    /// The registry, for what is collected at scrape time.
    pub(super) fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// A counter without labels.
    pub(super) fn counter(&mut self, name: &'static str, help: &'static str) -> Counter {
        let counter = Counter::default();
        self.add(name, MetricKind::Counter, &[], help, counter.clone());
        counter
    }

    /// A histogram without labels.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        buckets: &'static [f64],
        help: &'static str,
    ) -> Histogram {
        let histogram = histogram_of(buckets);
        self.add(
            name,
            MetricKind::Histogram(buckets),
            &[],
            help,
            histogram.clone(),
        );
        histogram
    }

    /// A counter of events by label.
    pub(crate) fn counters<const N: usize>(
        &mut self,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Labelled<Counter, N> {
        self.labelled(name, MetricKind::Counter, labels, help, |_| {
            Counter::default()
        })
    }

    /// A counter of seconds by label.
    pub(super) fn seconds<const N: usize>(
        &mut self,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Labelled<Seconds, N> {
        self.labelled(name, MetricKind::Counter, labels, help, |_| {
            Seconds::default()
        })
    }

    /// A gauge by label.
    pub(crate) fn gauges<const N: usize>(
        &mut self,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Labelled<Gauge, N> {
        self.labelled(name, MetricKind::Gauge, labels, help, |_| Gauge::default())
    }

    /// A histogram by label.
    pub(super) fn histograms<const N: usize>(
        &mut self,
        name: &'static str,
        labels: [&'static str; N],
        buckets: &'static [f64],
        help: &'static str,
    ) -> Labelled<Histogram, N> {
        self.labelled(
            name,
            MetricKind::Histogram(buckets),
            labels,
            help,
            histogram_of,
        )
    }

    /// Documents a metric that a collector adds at scrape time.
    pub(super) fn collected(&mut self, name: &'static str, kind: MetricKind, help: &'static str) {
        self.docs.push(MetricDoc {
            name,
            kind,
            labels: Vec::new(),
            help,
            origin: self.origin,
        });
    }

    fn labelled<M, const N: usize>(
        &mut self,
        name: &'static str,
        kind: MetricKind,
        labels: [&'static str; N],
        help: &'static str,
        with: fn(&'static [f64]) -> M,
    ) -> Labelled<M, N>
    where
        M: EncodeMetric + TypedMetric + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        let buckets = match kind {
            MetricKind::Histogram(buckets) => buckets,
            MetricKind::Counter | MetricKind::Gauge => &[],
        };
        let labelled = Labelled::new(labels, Make { with, buckets });
        self.add(name, kind, &labels, help, labelled.family.clone());
        labelled
    }

    fn add(
        &mut self,
        name: &'static str,
        kind: MetricKind,
        labels: &[&'static str],
        help: &'static str,
        metric: impl prometheus_client::registry::Metric,
    ) {
        // The library adds the suffix of counters and the full stop of help texts by itself.
        let registered = match kind {
            MetricKind::Counter => name.strip_suffix(COUNTER_SUFFIX).unwrap_or(name),
            MetricKind::Gauge | MetricKind::Histogram(_) => name,
        };
        self.registry
            .register(registered, help.trim_end_matches('.'), metric);
        self.docs.push(MetricDoc {
            name,
            kind,
            labels: labels.to_vec(),
            help,
            origin: self.origin,
        });
    }
}

fn histogram_of(buckets: &'static [f64]) -> Histogram {
    Histogram::new(buckets.iter().copied())
}
