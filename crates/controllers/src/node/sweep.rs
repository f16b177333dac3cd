//! Looks at the whole cloud from time to time, and files the Nodes that differ from it.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Retry};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::NodeController;
use super::find::{BATCH_THRESHOLD, FRESH};
use crate::clouds::{Cloud, Snapshot, owner_of};
use crate::runtime::{Backoff, Urgency, jittered};
use crate::wellknown::UNINITIALIZED_TAINT;

/// A sweep that somebody else made this recently will do.
const RECENT: Duration = Duration::from_secs(10);

/// After a failed sweep.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(15),
    longest: Duration::from_mins(10),
};

impl NodeController {
    /// Sweeps the clouds of a crowd while the rest of it is still being listed: the cloud and the API server
    /// have nothing to wait for from each other. If it fails, whoever needs it hears why.
    pub(super) async fn sweep_ahead(&self) {
        let heralds = self.parts.nodes.heralds().await;
        let is_awaited = |cloud: &Cloud| {
            let newcomers = heralds
                .iter()
                .filter(|node| !node.deleting && node.has_taint(UNINITIALIZED_TAINT));
            let its_own =
                newcomers.filter(|node| owner_of(&node.facts, &self.parts.clouds).may_be(cloud));
            its_own.count() >= BATCH_THRESHOLD
        };
        let sweeps = self
            .parts
            .clouds
            .iter()
            .filter(|cloud| cloud.provider().instances().is_some() && is_awaited(cloud))
            .map(|cloud| cloud.inventory.no_older_than(FRESH));
        futures::future::join_all(sweeps).await;
    }

    /// Sweeps every cloud until `stop`.
    pub(super) async fn sweep_until(&self, stop: &CancellationToken) {
        let loops = self
            .parts
            .clouds
            .iter()
            .enumerate()
            .map(|(index, cloud)| async move {
                let mut failures = 0;
                for round in 0_u64.. {
                    let pause = self.sweep_once(cloud, round, index, &mut failures).await;
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            });
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            _ = futures::future::join_all(loops) => {}
        }
    }

    /// Returns the pause until the next one.
    async fn sweep_once(
        &self,
        cloud: &Cloud,
        round: u64,
        index: usize,
        failures: &mut u32,
    ) -> Duration {
        let period = jittered(self.settings.sweep_period, self.settings.seed, index, round);
        if cloud.provider().instances().is_none() || !self.may_have_nodes(cloud) {
            return period;
        }
        match cloud.inventory.no_older_than(RECENT).await {
            Ok(snapshot) => {
                if std::mem::take(failures) > 0 {
                    let machines = snapshot.sweep.instances().len();
                    info!(cloud = cloud.name, machines, "the cloud answers again");
                }
                self.compare(cloud, &snapshot);
                period
            }
            Err(error) => {
                *failures += 1;
                if *failures == 1 {
                    warn!(cloud = cloud.name, %error, "the cloud cannot be swept");
                }
                pause_after(&error, *failures, period)
            }
        }
    }

    /// Whether any Node is a cloud's own, or might be.
    fn may_have_nodes(&self, cloud: &Cloud) -> bool {
        let nodes = self.parts.nodes.all();
        nodes
            .iter()
            .any(|node| owner_of(&node.facts, &self.parts.clouds).may_be(cloud))
    }

    /// Files the Nodes of a cloud that a sweep would change, and tells about those that differ in
    /// other ways.
    fn compare(&self, cloud: &Cloud, snapshot: &Arc<Snapshot>) {
        for node in self.parts.nodes.all() {
            let owner = owner_of(&node.facts, &self.parts.clouds);
            let is_settled = !node.deleting && !node.has_taint(UNINITIALIZED_TAINT);
            let is_its_own = owner.is(cloud);
            // An ID that several clouds recognise is a machine of the one that shows it.
            let may_be = owner.may_be(cloud) && node.facts.provider_id.is_some();
            if !is_settled || !(is_its_own || may_be) {
                continue;
            }
            if is_its_own {
                self.report_differences(cloud, snapshot, &node);
            }
            if self.may_change(cloud, snapshot, &node) {
                self.queue.add(node.facts.name.clone(), Urgency::Refresh);
            }
        }
    }
}

/// A cloud that says when to come back is taken at its word; others are asked again before it would be
/// time anyway.
fn pause_after(error: &CloudError, failures: u32, period: Duration) -> Duration {
    match error.retry() {
        Retry::After(delay) => delay,
        Retry::Backoff | Retry::NeedsPerson | Retry::Never => BACKOFF.pause(failures).min(period),
    }
}
