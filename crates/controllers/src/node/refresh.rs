//! Keeps initialized Nodes current: deprecated and stable labels with each other, addresses and type with the cloud.
//! The controller lists every cloud periodically, and enqueues Nodes that differ from the list.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{CloudError, Instance, Match, Priority, Retry};
use tracing::{debug, info, warn};

use super::find::offered;
use super::plan::{self, NodePlan};
use super::{NodeController, labels};
use crate::clouds::{Cloud, Snapshot, is_another_instance, owner_of};
use crate::log_messages::{INSTANCE_LIST_FAILED, INSTANCES_LISTED_AGAIN, NODE_UPDATE_FAILED};
use crate::runtime::{Backoff, ErrorText, Precondition, Urgency, Verdict, WriteError, jittered};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

/// A list that another controller made this recently will do.
const RECENT: Duration = Duration::from_secs(10);

/// After a failed list.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(15),
    longest: Duration::from_mins(10),
};

impl NodeController {
    /// Lists every cloud from time to time.
    pub(super) async fn list_periodically(&self) {
        let clouds = self.parts.clouds.iter().enumerate();
        let loops = clouds.map(|(index, cloud)| async move {
            let mut failures = 0;
            let mut replacements = cloud.cell.replacements();
            for round in 0_u64.. {
                let pause = self.list_once(cloud, round, index, &mut failures).await;
                if round == 0 {
                    self.listed.fetch_add(1, Ordering::Relaxed);
                }
                // A new provider may answer where the one before it did not.
                let _ = tokio::time::timeout(pause, replacements.changed()).await;
            }
        });
        futures::future::join_all(loops).await;
    }

    /// Returns the pause until the next one.
    async fn list_once(
        &self,
        cloud: &Cloud,
        round: u64,
        index: usize,
        failures: &mut u32,
    ) -> Duration {
        let period = jittered(self.settings.list_period, self.settings.seed, index, round);
        if cloud.provider().instances().is_none() || !self.may_have_nodes(cloud) {
            return period;
        }
        match cloud.inventory.no_older_than(RECENT).await {
            Ok(snapshot) => {
                if std::mem::take(failures) > 0 {
                    let instances = snapshot.list.instances().len();
                    info!(cloud = cloud.name, instances, "{INSTANCES_LISTED_AGAIN}");
                }
                self.compare(cloud, &snapshot);
                period
            }
            Err(err) => {
                *failures += 1;
                let pause = pause_after(&err, *failures, period);
                if *failures == 1 {
                    let (cloud, retry_after) = (&cloud.name, pause.as_secs());
                    warn!(cloud, %err, retry_after, "{INSTANCE_LIST_FAILED}");
                }
                pause
            }
        }
    }

    /// Whether any Node is a cloud's own, or might be.
    fn may_have_nodes(&self, cloud: &Cloud) -> bool {
        let nodes = self.parts.nodes.all();
        nodes.iter().any(|node| {
            owner_of(&node.facts, &self.parts.clouds).may_be(cloud) || self.is_given_to(cloud, node)
        })
    }

    /// Enqueues the Nodes of a cloud that a list would change, and reports those that differ in other ways.
    fn compare(&self, cloud: &Cloud, snapshot: &Arc<Snapshot>) {
        for node in self.parts.nodes.all() {
            let owner = owner_of(&node.facts, &self.parts.clouds);
            let is_settled = !node.deleting && !node.has_taint(UNINITIALIZED_TAINT);
            if is_settled && self.is_given_to(cloud, &node) {
                if self.lacks_labels(cloud, snapshot, &node) {
                    self.queue.add(node.facts.name.clone(), Urgency::Refresh);
                }
                continue;
            }
            let is_owned = owner.is(cloud);
            // An ID that several clouds recognise is an instance of the one that shows it.
            let may_be = owner.may_be(cloud) && node.facts.provider_id.is_some();
            if !is_settled || !(is_owned || may_be) {
                continue;
            }
            if is_owned {
                self.report_differences(cloud, snapshot, &node);
            }
            if self.may_change(cloud, snapshot, &node) {
                self.queue.add(node.facts.name.clone(), Urgency::Refresh);
            }
        }
    }

    pub(super) async fn refresh(&self, node: &NodeView) -> Verdict {
        let clouds = self.parts.guard().clouds_of(node);
        let plan = if clouds.is_empty() {
            self.plan_given(node).await.unwrap_or_default()
        } else {
            let mut plan = self.planned_refresh(node, &clouds).await;
            plan.changes.labels.extend(labels::reconcile(&node.facts));
            plan
        };
        match self.write_refresh(node, &plan).await {
            Ok(()) | Err(WriteError::Gone) => Verdict::Done,
            Err(WriteError::Conflict) => Verdict::Failed,
            Err(WriteError::Api(err)) => {
                let err = ErrorText(&err);
                warn!(node = node.facts.name, %err, "{NODE_UPDATE_FAILED}");
                Verdict::Failed
            }
        }
    }

    async fn write_refresh(&self, node: &NodeView, plan: &NodePlan) -> Result<(), WriteError> {
        let NodePlan {
            addresses, changes, ..
        } = plan;
        if let Some(addresses) = addresses {
            // Never closed, so there is always a permit to wait for.
            let _permit = self.refreshers.acquire().await;
            info!(
                node = node.facts.name,
                ?addresses,
                "updating node addresses"
            );
            let writing = self
                .parts
                .writer
                .write_addresses(node, addresses, Precondition::Uid);
            self.note_written(&node.facts.uid, &writing.await?);
        }
        if !changes.is_empty() {
            info!(node = node.facts.name, labels = ?changes.labels, "updating node labels");
            let version = self.parts.writer.write_changes(node, changes).await?;
            self.note_written(&node.facts.uid, &version);
        }
        Ok(())
    }

    /// What the last list of its cloud would change on a Node; nothing if the list is older than what the Node says.
    async fn planned_refresh(&self, node: &NodeView, clouds: &[Arc<Cloud>]) -> NodePlan {
        for cloud in clouds {
            let listed = self.last_listed(cloud, node).await;
            let ready = listed.filter(|instance| instance.not_ready.is_none());
            let plan = ready.and_then(|instance| self.plan_against(cloud, &instance, node));
            if let Some(plan) = plan {
                return plan;
            }
        }
        NodePlan::default()
    }

    /// The instance of a Node in the last list, with everything that its Node is given.
    pub(super) async fn last_listed(&self, cloud: &Cloud, node: &NodeView) -> Option<Instance> {
        let snapshot = cloud.inventory.latest()?;
        let instance = self.instance_in(cloud, &snapshot, node)?.clone();
        let described = cloud.describe(instance, Priority::Background).await;
        let log = |err: &CloudError| {
            debug!(node = node.facts.name, %err, "failed to describe instance");
        };
        described.inspect_err(log).ok()
    }

    /// Whether this list would change something on a Node of this cloud, or may do so because it shows only a summary
    /// of the instance.
    pub(super) fn may_change(
        &self,
        cloud: &Cloud,
        snapshot: &Arc<Snapshot>,
        node: &NodeView,
    ) -> bool {
        let instance = self.instance_in(cloud, snapshot, node);
        instance.is_some_and(|instance| {
            instance.is_summary || self.plan_against(cloud, instance, node).is_some()
        })
    }

    /// The instance of a Node in a list that is newer than what the Node says. One that it shows under the name of a
    /// Node without an ID counts only if the list is confirmed.
    pub(super) fn instance_in<'a>(
        &self,
        cloud: &Cloud,
        snapshot: &'a Arc<Snapshot>,
        node: &NodeView,
    ) -> Option<&'a Instance> {
        let asked = self.records.with(&node.facts.uid, |record| record.asked);
        if asked.flatten().is_some_and(|asked| snapshot.began < asked) {
            return None;
        }
        let Match::One(instance) = self.match_in(cloud, snapshot, node) else {
            return None;
        };
        if is_another_instance(instance, &node.facts) {
            return None;
        }
        let guard = self.parts.guard();
        let is_confirmed =
            || !guard.known_in(cloud, snapshot).is_empty() || guard.ready_in(cloud) == 0;
        if node.facts.provider_id.is_some() {
            cloud.note_uuid(instance, &node.facts);
        } else if !is_confirmed() || guard.is_stranger(cloud, instance, &node.facts) {
            return None;
        }
        Some(instance)
    }

    fn plan_against(
        &self,
        cloud: &Cloud,
        instance: &Instance,
        node: &NodeView,
    ) -> Option<NodePlan> {
        let offered = offered(cloud, instance, node);
        let mut plan = plan::refresh(node, instance, &offered, self.settings.follow);
        if self.settings.follow.instance_type {
            let followed = self.records.with(&node.facts.uid, |record| {
                labels::followed(instance, &node.facts, &mut record.agreed)
            });
            let (followed, _) = labels::allowed(followed.unwrap_or_default());
            plan.changes.labels.extend(followed);
        }
        (plan.addresses.is_some() || !plan.changes.is_empty()).then_some(plan)
    }
}

/// A cloud that says when to retry is asked again then; others before the next period ends.
fn pause_after(error: &CloudError, failures: u32, period: Duration) -> Duration {
    match error.retry() {
        Retry::After(delay) => delay,
        Retry::Backoff | Retry::UserAction | Retry::Never => BACKOFF.pause(failures).min(period),
    }
}

#[cfg(test)]
mod tests;
