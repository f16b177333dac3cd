//! What a run cost.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The cost of initialising so many Nodes.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) nodes: usize,
    /// From the start of the process to the last Node.
    pub(crate) elapsed: Duration,
    pub(crate) cloud_calls: u64,
    /// Requests to the API server that write, by what the process itself counted.
    pub(crate) writes: u64,
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

impl Cost {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a benchmark are small"
    )]
    fn per_second(&self) -> f64 {
        self.nodes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a benchmark are small"
    )]
    fn writes_per_node(&self) -> f64 {
        self.writes as f64 / self.nodes.max(1) as f64
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "nodes": self.nodes,
            "seconds": self.elapsed.as_secs_f64(),
            "nodesPerSecond": self.per_second(),
            "cloudCalls": self.cloud_calls,
            "writesPerNode": self.writes_per_node(),
            "cpuSeconds": self.cpu.as_secs_f64(),
            "peakMiB": self.peak_kib / 1024,
        })
    }
}

/// The runs as a table for people.
pub(crate) fn table(costs: &[Cost]) -> String {
    let mut text = format!(
        "{:>7} {:>9} {:>9} {:>12} {:>12} {:>8} {:>9}\n",
        "nodes", "seconds", "nodes/s", "cloud calls", "writes/node", "CPU s", "peak MiB"
    );
    for cost in costs {
        let _ = writeln!(
            text,
            "{:>7} {:>9.2} {:>9.0} {:>12} {:>12.2} {:>8.2} {:>9}",
            cost.nodes,
            cost.elapsed.as_secs_f64(),
            cost.per_second(),
            cost.cloud_calls,
            cost.writes_per_node(),
            cost.cpu.as_secs_f64(),
            cost.peak_kib / 1024,
        );
    }
    text
}

/// Processor time and peak memory of a process that still runs.
pub(crate) fn of_process(pid: u32) -> Result<(Duration, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the process ended")?;
    // The name of the program stands in parentheses and may hold anything.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    let used = ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
    Ok((
        Duration::from_millis(used * MILLIS_PER_TICK),
        peak.unwrap_or(0),
    ))
}

/// Linux counts processor time for user space in hundredths of a second.
const MILLIS_PER_TICK: u64 = 10;
