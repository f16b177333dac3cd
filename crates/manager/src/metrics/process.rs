//! What the operating system knows about this process, read at every scrape.

use std::fs;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::panics;

use super::catalogue::{COUNTER_SUFFIX, Catalogue, MetricKind};

const START_TIME: &str = "process_start_time_seconds";
const START_TIME_HELP: &str = "When this process started, in seconds since the epoch.";
const CPU: &str = "process_cpu_seconds_total";
const CPU_HELP: &str = "CPU time used, in seconds.";
const RESIDENT: &str = "process_resident_memory_bytes";
const RESIDENT_HELP: &str = "Resident memory.";
const VIRTUAL: &str = "process_virtual_memory_bytes";
const VIRTUAL_HELP: &str = "Virtual memory.";
const OPEN_FILES: &str = "process_open_fds";
const OPEN_FILES_HELP: &str = "Open file descriptors.";
const PANICS: &str = "cloudkeel_panics_total";
const PANICS_HELP: &str = "Panics of this process, which are bugs, wherever they were caught.";

/// The unit of processor time in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Adds the start time alone.
pub(crate) fn register_start_time(catalogue: &mut Catalogue, started: Timestamp) {
    catalogue.collected(START_TIME, MetricKind::Gauge, START_TIME_HELP);
    let collector = StartTime(started.as_millisecond());
    catalogue.registry().register_collector(Box::new(collector));
}

/// Adds everything. What cannot be read is left out.
pub(super) fn register(catalogue: &mut Catalogue, started: Timestamp) {
    register_start_time(catalogue, started);
    catalogue.collected(CPU, MetricKind::Counter, CPU_HELP);
    catalogue.collected(RESIDENT, MetricKind::Gauge, RESIDENT_HELP);
    catalogue.collected(VIRTUAL, MetricKind::Gauge, VIRTUAL_HELP);
    catalogue.collected(OPEN_FILES, MetricKind::Gauge, OPEN_FILES_HELP);
    catalogue.registry().register_collector(Box::new(Process));
}

/// Adds the panics.
pub(super) fn register_panics(catalogue: &mut Catalogue) {
    catalogue.collected(PANICS, MetricKind::Counter, PANICS_HELP);
    catalogue.registry().register_collector(Box::new(Panics));
}

#[derive(Debug)]
struct Panics;

impl Collector for Panics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let total = panics::report().map_or(0, |seen| seen.total);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a process does not panic so often"
        )]
        counter(&mut encoder, PANICS, PANICS_HELP, Some(total as f64))
    }
}

#[derive(Debug)]
struct StartTime(i64);

impl Collector for StartTime {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds fit until the year 287396"
    )]
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let seconds = self.0 as f64 / 1000.0;
        gauge(&mut encoder, START_TIME, START_TIME_HELP, Some(seconds))
    }
}

#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        counter(&mut encoder, CPU, CPU_HELP, cpu_seconds(&stat))?;
        let resident = status_bytes(&status, "VmRSS:");
        gauge(&mut encoder, RESIDENT, RESIDENT_HELP, resident)?;
        let address_space = status_bytes(&status, "VmSize:");
        gauge(&mut encoder, VIRTUAL, VIRTUAL_HELP, address_space)?;
        gauge(&mut encoder, OPEN_FILES, OPEN_FILES_HELP, open_files())
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: Option<f64>,
) -> Result<(), std::fmt::Error> {
    let Some(value) = value else { return Ok(()) };
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(metric)
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: Option<f64>,
) -> Result<(), std::fmt::Error> {
    let Some(value) = value else { return Ok(()) };
    let name = name.strip_suffix(COUNTER_SUFFIX).unwrap_or(name);
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(value).encode(metric)
}

/// A line such as `VmRSS:     1234 kB`, in bytes.
fn status_bytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// User and system time. The program's name comes before them in parentheses and may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn open_files() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tcloudkeel\nVmSize:\t  2048 kB\nVmRSS:\t   512 kB\n";
        assert_eq!(status_bytes(status, "VmRSS:"), Some(524_288.0));
        assert_eq!(status_bytes(status, "VmSize:"), Some(2_097_152.0));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn processor_time_is_found_behind_any_program_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 250 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }
}
