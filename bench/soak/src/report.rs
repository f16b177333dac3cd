//! What came of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::SoakCluster;
use crate::managers::Managers;

#[derive(Debug, Default)]
pub(crate) struct Report {
    counts: BTreeMap<&'static str, u64>,
    cloud_calls: u64,
    cloud_changes: u64,
    /// The memory of the larger manager, in KiB, every ten seconds.
    memory: Vec<u64>,
    pub(crate) after_a_minute: Vec<String>,
    pub(crate) left_for_good: Vec<String>,
    pub(crate) settled: Duration,
    pub(crate) idle_cloud_changes: u64,
    pub(crate) idle_node_writes: u64,
}

impl Report {
    /// Reads the memory of the managers.
    pub(crate) fn sample(&mut self, managers: &Managers) -> Result<()> {
        let memory = managers.memory()?;
        self.memory.extend(memory.into_iter().max());
        Ok(())
    }

    /// What happened, and what it cost until now.
    pub(crate) fn churned(&mut self, cluster: &SoakCluster, counts: &BTreeMap<&'static str, u64>) {
        let calls = cluster.stage.calls();
        self.counts.clone_from(counts);
        (self.cloud_calls, self.cloud_changes) = (calls.total, calls.mutating);
    }

    /// Whether a minute was enough for everything, and nothing was changed after that.
    pub(crate) fn is_good(&self) -> bool {
        self.after_a_minute.is_empty()
            && self.left_for_good.is_empty()
            && self.idle_cloud_changes + self.idle_node_writes == 0
    }

    fn rows(&self) -> Vec<(String, String)> {
        let counts = self.counts.iter();
        let mut rows: Vec<_> = counts
            .map(|(what, n)| ((*what).to_owned(), n.to_string()))
            .collect();
        let mib = |kib: Option<&u64>| format!("{} MiB", kib.map_or(0, |kib| kib / 1024));
        let half = self.memory.get(self.memory.len() / 2);
        rows.extend([
            (
                "cloud calls meanwhile".to_owned(),
                self.cloud_calls.to_string(),
            ),
            (
                "of them mutating".to_owned(),
                self.cloud_changes.to_string(),
            ),
            ("memory at first".to_owned(), mib(self.memory.first())),
            ("memory at half time".to_owned(), mib(half)),
            ("memory at the end".to_owned(), mib(self.memory.last())),
            ("memory at most".to_owned(), mib(self.memory.iter().max())),
            (
                "dead, pending, wrong or left over after a minute".to_owned(),
                said(&self.after_a_minute),
            ),
            ("the same for good".to_owned(), said(&self.left_for_good)),
            (
                "changes of the cloud in an idle minute".to_owned(),
                self.idle_cloud_changes.to_string(),
            ),
            (
                "writes of Nodes in an idle minute".to_owned(),
                self.idle_node_writes.to_string(),
            ),
        ]);
        rows
    }

    pub(crate) fn json(&self) -> Value {
        let rows = self.rows().into_iter();
        rows.map(|(what, value)| json!({"what": what, "value": value}))
            .collect()
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (what, value) in self.rows() {
            let _ = writeln!(text, "{what:<50} {value}");
        }
        let _ = writeln!(text, "all right after {:.0} s", self.settled.as_secs_f64());
        text
    }
}

/// The number of problems, and the first few.
fn said(problems: &[String]) -> String {
    if problems.is_empty() {
        return "0".to_owned();
    }
    let first: Vec<&str> = problems.iter().take(10).map(String::as_str).collect();
    format!("{}: {}", problems.len(), first.join("; "))
}
