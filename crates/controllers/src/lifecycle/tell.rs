//! How the lifecycle controller stands, for people who ask.

use tokio::time::Instant;

use super::{History, LifecycleController};
use crate::report::{ControllerReport, DeletionReport, StopReport};

impl LifecycleController {
    pub(super) fn tell(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            ..ControllerReport::default()
        };
        if !self.parts.nodes.has_synced() {
            report.waits_for.push("the first list of Nodes".to_owned());
        }
        report.wait_for(self.kept());
        report.deletions = self.deletions();
        report
    }

    /// Nodes whose machines are not found and that are kept all the same.
    fn kept(&self) -> Vec<String> {
        let now = Instant::now();
        let nodes = self.parts.nodes.all();
        let kept = nodes.iter().filter_map(|node| {
            let name = &node.facts.name;
            let tell = |history: &mut History| match (&history.turn, &history.kept) {
                (Some(turn), _) => {
                    let seconds = turn.saturating_duration_since(now).as_secs();
                    Some(format!("{name}: its turn to be deleted, in {seconds} s"))
                }
                (None, Some((_, why))) => Some(format!("{name}: kept, {why}")),
                (None, None) => None,
            };
            self.histories.with(&node.facts.uid, tell).flatten()
        });
        kept.collect()
    }

    fn deletions(&self) -> Vec<DeletionReport> {
        let now = Instant::now();
        let clouds = self.parts.clouds.iter();
        let with_machines = clouds.filter(|cloud| cloud.provider().instances().is_some());
        with_machines
            .map(|cloud| {
                let nodes = self.nodes_of(cloud).len();
                self.with_guard(cloud, |guard| DeletionReport {
                    cloud: cloud.name.clone(),
                    stopped: guard.halted.as_ref().map(|halt| StopReport {
                        reason: halt.doubt.to_string(),
                        since: halt.since,
                        what_to_do: halt.doubt.what_to_do(),
                    }),
                    pace: guard.pace.report(nodes, now),
                })
            })
            .collect()
    }
}
