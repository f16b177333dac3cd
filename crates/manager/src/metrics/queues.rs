//! Metrics of work queues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_controllers::runtime::QueueObserver;
use tokio::time::Instant;

use super::buckets;
use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled};

/// The metrics of all work queues, labelled with their names.
#[derive(Debug, Clone)]
pub struct QueuesMetrics {
    depth: Labelled<Gauge, 1>,
    adds: Labelled<Counter, 1>,
    waited: Labelled<Histogram, 1>,
    worked: Labelled<Histogram, 1>,
    unfinished: Labelled<Gauge, 1>,
    longest_running: Labelled<Gauge, 1>,
    retries: Labelled<Counter, 1>,
    /// Not upstream's.
    panics: Option<Labelled<Counter, 1>>,
    queues: Arc<Mutex<BTreeMap<String, Arc<QueueMetrics>>>>,
}

impl QueuesMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const NAME: [&str; 1] = ["name"];
        Self {
            depth: catalogue.gauges("workqueue_depth", NAME, "Items that wait in the queue."),
            adds: catalogue.counters("workqueue_adds_total", NAME, "Items added to the queue."),
            waited: catalogue.histograms(
                "workqueue_queue_duration_seconds",
                NAME,
                buckets::QUEUE,
                "Seconds that an item waited in the queue.",
            ),
            worked: catalogue.histograms(
                "workqueue_work_duration_seconds",
                NAME,
                buckets::QUEUE,
                "Seconds that processing an item took.",
            ),
            unfinished: catalogue.gauges(
                "workqueue_unfinished_work_seconds",
                NAME,
                "Seconds spent so far on items in progress; steady growth means stuck workers.",
            ),
            longest_running: catalogue.gauges(
                "workqueue_longest_running_processor_seconds",
                NAME,
                "Seconds that the longest-running worker has spent on its item so far.",
            ),
            retries: catalogue.counters(
                "workqueue_retries_total",
                NAME,
                "Items that were added again after a failure.",
            ),
            panics: None,
            queues: Arc::default(),
        }
    }

    /// The same with a metric of our own.
    pub(super) fn counting_panics(self, catalogue: &mut Catalogue) -> Self {
        let panics = catalogue.counters(
            "cloudkeel_workqueue_panics_total",
            ["name"],
            "Items whose processing panicked, which is a bug. Each counts as a failure and is retried.",
        );
        Self {
            panics: Some(panics),
            ..self
        }
    }

    /// The observer of the queue of this name; the same one every time.
    pub fn observer(&self, name: &str) -> Arc<dyn QueueObserver> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(QueueMetrics {
                depth: self.depth.with([name]),
                adds: self.adds.with([name]),
                waited: self.waited.with([name]),
                worked: self.worked.with([name]),
                unfinished: self.unfinished.with([name]),
                longest_running: self.longest_running.with([name]),
                retries: self.retries.with([name]),
                panics: self
                    .panics
                    .as_ref()
                    .map(|it| it.with([name]))
                    .unwrap_or_default(),
                running: Mutex::default(),
            })
        });
        Arc::clone(queue) as Arc<dyn QueueObserver>
    }

    /// Updates the values that grow with time.
    pub(super) fn refresh(&self) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in queues.values() {
            queue.refresh();
        }
    }
}

/// The metrics of one work queue.
#[derive(Debug)]
struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    waited: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest_running: Gauge,
    retries: Counter,
    panics: Counter,
    /// When the current work started.
    running: Mutex<Vec<Instant>>,
}

impl QueueMetrics {
    fn refresh(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let ages = || running.iter().map(|began| began.elapsed().as_secs_f64());
        self.unfinished.set(ages().sum());
        self.longest_running.set(ages().fold(0.0, f64::max));
    }
}

impl QueueObserver for QueueMetrics {
    fn added(&self, depth: usize) {
        self.adds.inc();
        self.depth.set(as_float(depth));
    }

    fn taken(&self, waited: Duration, depth: usize) {
        self.waited.observe(waited.as_secs_f64());
        self.depth.set(as_float(depth));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(Instant::now());
    }

    fn finished(&self, worked: Duration) {
        self.worked.observe(worked.as_secs_f64());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue reports how long the finished work took, not which one it was.
        let off_by = |began: &Instant| began.elapsed().abs_diff(worked);
        let ended = running
            .iter()
            .enumerate()
            .min_by_key(|(_, began)| off_by(began));
        if let Some((index, _)) = ended {
            running.swap_remove(index);
        }
    }

    fn retried(&self) {
        self.retries.inc();
    }

    fn panicked(&self) {
        self.panics.inc();
    }
}

fn as_float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
