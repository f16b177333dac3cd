//! What work queues measure.

use super::buckets;
use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled};

/// The metrics of all work queues, told apart by name.
#[derive(Debug, Clone)]
pub struct QueuesMetrics {
    depth: Labelled<Gauge, 1>,
    adds: Labelled<Counter, 1>,
    waited: Labelled<Histogram, 1>,
    worked: Labelled<Histogram, 1>,
    unfinished: Labelled<Gauge, 1>,
    longest_running: Labelled<Gauge, 1>,
    retries: Labelled<Counter, 1>,
}

/// The metrics of one work queue.
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    /// Items that wait.
    pub depth: Gauge,
    /// Items added.
    pub adds: Counter,
    /// Seconds an item waited.
    pub waited: Histogram,
    /// Seconds an item was worked on.
    pub worked: Histogram,
    /// Seconds spent so far on what is not finished, summed over all workers.
    pub unfinished: Gauge,
    /// Seconds the longest-running worker has spent so far.
    pub longest_running: Gauge,
    /// Items that were added again after a failure.
    pub retries: Counter,
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
                "Seconds that an item was worked on.",
            ),
            unfinished: catalogue.gauges(
                "workqueue_unfinished_work_seconds",
                NAME,
                "Seconds spent so far on items that are still worked on; steady growth means stuck workers.",
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
        }
    }

    /// The metrics of the queue of this name.
    pub fn queue(&self, name: &str) -> QueueMetrics {
        QueueMetrics {
            depth: self.depth.with([name]),
            adds: self.adds.with([name]),
            waited: self.waited.with([name]),
            worked: self.worked.with([name]),
            unfinished: self.unfinished.with([name]),
            longest_running: self.longest_running.with([name]),
            retries: self.retries.with([name]),
        }
    }
}
