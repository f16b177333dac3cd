//! What a run cost.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::contestant::Contestant;

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
pub(crate) fn table(costs: &[Cost]) -> String {
    let mut text = format!(
        "{:>7} {:<10} {:>8} {:>8} {:>11} {:>11} {:>11} {:>8} {:>8} {:>8}  {}\n",
        "nodes",
        "who",
        "seconds",
        "nodes/s",
        "cloud calls",
        "writes/node",
        "events/node",
        "CPU s",
        "peak MiB",
        "server s",
        "time, CPU, memory beside cloudkeel"
    );
    for cost in costs {
        let _ = write!(
            text,
            "{:>7} {:<10} {:>8.2} {:>8.0} {:>11} {:>11.2} {:>11.2} {:>8.2} {:>8} {:>8.1}",
            cost.nodes,
            cost.contestant.name(),
            cost.elapsed.as_secs_f64(),
            cost.per_second(),
            cost.cloud_calls,
            cost.per_node(cost.node_writes),
            cost.per_node(cost.event_writes),
            cost.cpu.as_secs_f64(),
            cost.peak_kib / 1024,
            cost.servers.as_secs_f64(),
        );
        let ours = costs
            .iter()
            .find(|ours| ours.nodes == cost.nodes && ours.contestant == Contestant::Cloudkeel);
        let _ = match ours.filter(|_| cost.contestant != Contestant::Cloudkeel) {
            Some(ours) => {
                let [time, cpu, memory] = ours.times(cost);
                writeln!(text, "  {time:.1}× {cpu:.1}× {memory:.1}×")
            }
            None => writeln!(text),
        };
    }
    text
}

/// Processor time and peak memory of a process that still runs.
pub(crate) fn of_process(pid: u32) -> Result<(Duration, u64)> {
    let stat = Stat::of(pid).context("the process ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
    Ok((stat.cpu, peak.unwrap_or(0)))
}

/// Processor time so far of the servers of the control plane, which a child of this process guards.
pub(crate) fn of_servers() -> Result<Duration> {
    let mut cpu = Duration::ZERO;
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(stat) = pid.and_then(Stat::of) else {
            continue;
        };
        let is_server = ["etcd", "kube-apiserver"].contains(&stat.name.as_str());
        let guard = is_server.then(|| Stat::of(stat.parent)).flatten();
        if guard.is_some_and(|guard| guard.parent == std::process::id()) {
            cpu += stat.cpu;
        }
    }
    Ok(cpu)
}

/// What Linux tells of a process.
struct Stat {
    name: String,
    parent: u32,
    cpu: Duration,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program stands in parentheses and may hold anything.
        let (head, tail) = text.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ticks = number(11)? + number(12)?;
        Some(Self {
            name: head.split_once('(')?.1.to_owned(),
            parent: u32::try_from(number(1)?).ok()?,
            cpu: Duration::from_millis(ticks * MILLIS_PER_TICK),
        })
    }
}

/// Linux counts processor time for user space in hundredths of a second.
const MILLIS_PER_TICK: u64 = 10;
