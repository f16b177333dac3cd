//! What processes have used, as Linux counts it.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Processor time and peak memory of a process that still runs.
pub fn of_process(pid: u32) -> Result<(Duration, u64)> {
    let stat = Stat::of(pid).context("the process ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
    Ok((stat.cpu, peak.unwrap_or(0)))
}

/// The memory of a process that still runs, in KiB, now.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()?.parse().ok());
    resident.context("Linux does not say how much memory the process has")
}

/// Processor time so far of the servers of the control plane, whose parent is a child of this process.
pub fn of_servers() -> Result<Duration> {
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

/// What Linux counts of a process.
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
