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
    /// From the start of the process to the last Node.
    pub(crate) elapsed: Duration,
    pub(crate) cloud_calls: u64,
    /// Requests that wrote Nodes, by what the API server counted.
    pub(crate) node_writes: u64,
    /// The same for events.
    pub(crate) event_writes: u64,
    /// Of etcd and the API server, until the last Node.
    pub(crate) servers: Duration,
    /// Until the last event was written.
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [seconds, own, servers] =
            [self.elapsed, self.cpu, self.servers].map(|time| time.as_secs_f64());
        write!(
            f,
            "{seconds:.2} s; CPU {own:.2} s, and {servers:.1} s of the servers"
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
            "nodesPerSecond": self.per_second(),
            "cloudCalls": self.cloud_calls,
            "nodeWritesPerNode": self.per_node(self.node_writes),
            "eventWritesPerNode": self.per_node(self.event_writes),
            "cpuSeconds": self.cpu.as_secs_f64(),
            "serverCpuSeconds": self.servers.as_secs_f64(),
            "peakMiB": self.peak_kib / 1024,
        })
    }

    /// How many times as much another took: seconds, processor time, memory.
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of a process are few")]
    fn times(&self, other: &Self) -> [f64; 3] {
        let ratio = |theirs: f64, ours: f64| theirs / ours.max(1e-9);
        [
            ratio(other.elapsed.as_secs_f64(), self.elapsed.as_secs_f64()),
            ratio(other.cpu.as_secs_f64(), self.cpu.as_secs_f64()),
            ratio(other.peak_kib as f64, self.peak_kib as f64),
        ]
    }
}

/// The runs as a table for people, and what others took as multiples of ours.
pub(crate) fn table(rounds: &[Rounds]) -> String {
    let mut text = format!(
        "{:>7} {:<10} {:>8} {:>11} {:>8} {:>11} {:>11} {:>11} {:>8} {:>8} {:>8}  {}\n",
        "nodes",
        "who",
        "seconds",
        "from - to",
        "nodes/s",
        "cloud calls",
        "writes/node",
        "events/node",
        "CPU s",
        "peak MiB",
        "server s",
        "time, CPU, memory beside cloudkeel"
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
            "{:>7} {:<10} {:>8.2} {:>11} {:>8.0} {:>11} {:>11.2} {:>11.2} {:>8.2} {:>8} {:>8.1}",
            cost.nodes,
            cost.contestant.name(),
            cost.elapsed.as_secs_f64(),
            range,
            cost.per_second(),
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
                let [time, cpu, memory] = ours.times(cost);
                writeln!(text, "  {time:.2}× {cpu:.1}× {memory:.1}×")
            }
            None => writeln!(text),
        };
    }
    text
}
