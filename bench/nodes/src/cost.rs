//! What a run cost.

use std::fmt::{self, Write as _};
use std::time::Duration;

use cloudkeel_bench_arena::Contestant;
use serde_json::{Value, json};

use crate::rounds::Rounds;

/// The cost of initialising so many Nodes.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) contestant: Contestant,
    pub(crate) nodes: usize,
    /// From the start of the process to the last taint.
    pub(crate) elapsed: Duration,
    /// To the last Event.
    pub(crate) to_last_event: Duration,
    pub(crate) cloud_calls: u64,
    /// Requests that wrote Nodes, by what the API server counted.
    pub(crate) node_writes: u64,
    /// The same for events.
    pub(crate) event_writes: u64,
    /// Of etcd and the API server, until the last Event.
    pub(crate) servers: Duration,
    /// Until the last Event.
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [seconds, to_last_event, own, servers] =
            [self.elapsed, self.to_last_event, self.cpu, self.servers]
                .map(|time| time.as_secs_f64());
        write!(
            f,
            "{seconds:.2} s, {to_last_event:.2} s to the last Event; CPU {own:.2} s, and {servers:.1} s of the servers"
        )
    }
}

impl Cost {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a benchmark are small"
    )]
    fn per_node(&self, count: u64) -> f64 {
        count as f64 / self.nodes.max(1) as f64
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a benchmark are small"
    )]
    fn per_second(&self) -> f64 {
        self.nodes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "contestant": self.contestant.name(),
            "nodes": self.nodes,
            "seconds": self.elapsed.as_secs_f64(),
            "secondsToLastEvent": self.to_last_event.as_secs_f64(),
            "nodesPerSecond": self.per_second(),
            "cloudCalls": self.cloud_calls,
            "nodeWritesPerNode": self.per_node(self.node_writes),
            "eventWritesPerNode": self.per_node(self.event_writes),
            "cpuSeconds": self.cpu.as_secs_f64(),
            "serverCpuSeconds": self.servers.as_secs_f64(),
            "peakMiB": self.peak_kib / 1024,
        })
    }

    /// How many times as much another took: seconds to the last taint and to the last Event, processor time of
    /// its own and of the servers, memory.
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of a process are few")]
    fn times(&self, other: &Self) -> [f64; 5] {
        let ratio = |theirs: f64, ours: f64| theirs / ours.max(1e-9);
        [
            ratio(other.elapsed.as_secs_f64(), self.elapsed.as_secs_f64()),
            ratio(
                other.to_last_event.as_secs_f64(),
                self.to_last_event.as_secs_f64(),
            ),
            ratio(other.cpu.as_secs_f64(), self.cpu.as_secs_f64()),
            ratio(other.servers.as_secs_f64(), self.servers.as_secs_f64()),
            ratio(other.peak_kib as f64, self.peak_kib as f64),
        ]
    }
}

/// The runs as a table for people, and what others took as multiples of ours.
pub(crate) fn table(rounds: &[Rounds]) -> String {
    let mut text = format!(
        "{:>7} {:<10} {:>10} {:>11} {:>10} {:>11} {:>11} {:>11} {:>8} {:>8} {:>8}  {}\n",
        "nodes",
        "who",
        "last taint",
        "from - to",
        "last event",
        "cloud calls",
        "writes/node",
        "events/node",
        "CPU s",
        "peak MiB",
        "server s",
        "taint, event, CPU, servers, memory beside cloudkeel"
    );
    for runs in rounds {
        let Some(cost) = runs.median() else {
            continue;
        };
        let range = runs.range().map_or_else(
            || "-".to_owned(),
            |[fastest, slowest]| format!("{fastest:.1} - {slowest:.1}"),
        );
        let _ = write!(
            text,
            "{:>7} {:<10} {:>10.2} {:>11} {:>10.2} {:>11} {:>11.2} {:>11.2} {:>8.2} {:>8} {:>8.1}",
            cost.nodes,
            cost.contestant.name(),
            cost.elapsed.as_secs_f64(),
            range,
            cost.to_last_event.as_secs_f64(),
            cost.cloud_calls,
            cost.per_node(cost.node_writes),
            cost.per_node(cost.event_writes),
            cost.cpu.as_secs_f64(),
            cost.peak_kib / 1024,
            cost.servers.as_secs_f64(),
        );
        let ours = rounds
            .iter()
            .filter_map(Rounds::median)
            .find(|ours| ours.nodes == cost.nodes && ours.contestant == Contestant::Cloudkeel);
        let _ = match ours.filter(|_| cost.contestant != Contestant::Cloudkeel) {
            Some(ours) => {
                let [taint, event, cpu, servers, memory] = ours.times(cost);
                writeln!(
                    text,
                    "  {taint:.2}× {event:.2}× {cpu:.1}× {servers:.2}× {memory:.1}×"
                )
            }
            None => writeln!(text),
        };
    }
    text
}
