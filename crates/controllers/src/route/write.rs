//! Writes the condition `NetworkUnavailable` where it is not what it should be.

use std::time::Duration;

use cloudkeel_api::CloudError;
use futures::StreamExt as _;
use tracing::warn;

use super::RouteController;
use super::condition::Network;
use super::pass::is_elsewhere;
use super::plan::Plan;
use super::snapshot::Snapshot;
use crate::runtime::{Verdict, WriteError};
use crate::view::NodeView;

/// How many Nodes are written at once.
const AT_ONCE: usize = 30;
/// How often a write is tried at once, as upstream does.
const TRIES: u32 = 5;
/// Pause after the first conflict, which grows by itself.
const PAUSE: Duration = Duration::from_millis(100);

impl RouteController {
    /// Writes what the Nodes do not say yet. Anything but [`Verdict::Done`] is to be tried again.
    pub(super) async fn write_conditions(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        results: &[Result<(), CloudError>],
    ) -> Verdict {
        let made = |change: usize| match results.get(change) {
            Some(Ok(())) => Some(true),
            Some(Err(error)) if is_elsewhere(error) => None,
            Some(Err(_)) | None => Some(false),
        };
        let mut writes = Vec::new();
        for planned in &plan.nodes {
            if let Some(node) = snapshot.node(&planned.name)
                && let Some(network) = planned.network(made)
                && !network.stands_on(node)
            {
                writes.push(self.write_condition(node, network));
            }
        }
        let verdicts: Vec<_> = futures::stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let worst = [Verdict::Failed, Verdict::NeedsPerson];
        let worst = worst.into_iter().find(|verdict| verdicts.contains(verdict));
        worst.unwrap_or(Verdict::Done)
    }

    async fn write_condition(&self, node: &NodeView, network: Network) -> Verdict {
        let mut tried = 0;
        loop {
            let condition = network.condition(self.parts.clock.now());
            let error = match self.parts.writer.write_condition(node, &condition).await {
                Ok(()) | Err(WriteError::Gone) => return Verdict::Done,
                Err(error) => error,
            };
            tried += 1;
            if !matches!(error, WriteError::Conflict) || tried == TRIES {
                warn!(node = node.facts.name, %error, "the condition NetworkUnavailable was not written");
                return verdict_of(&error);
            }
            tokio::time::sleep(PAUSE * tried).await;
        }
    }
}

fn verdict_of(error: &WriteError) -> Verdict {
    match error {
        WriteError::Api(kube::Error::Api(status)) if status.code == 403 => Verdict::NeedsPerson,
        _ => Verdict::Failed,
    }
}
