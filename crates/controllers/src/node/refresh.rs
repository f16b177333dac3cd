//! Keeps an initialised Node current: labels among themselves, addresses and type with the cloud.

use std::sync::Arc;

use cloudkeel_api::{Instance, Match, NodeAddress, Priority};
use tracing::{debug, info, warn};

use super::find::offered;
use super::plan::{self, Initialisation};
use super::{NodeController, labels};
use crate::clouds::{Cloud, Snapshot, is_another_instance};
use crate::runtime::{Brief, Unless, Verdict, WriteError};
use crate::view::NodeView;

impl NodeController {
    pub(super) async fn refresh(&self, node: &NodeView) -> Verdict {
        let clouds = self.guard().clouds_of(node);
        if clouds.is_empty() {
            return Verdict::Done;
        }
        let mut changes = plan::NodeChanges::default();
        let mut addresses = None;
        if let Some(plan) = self.planned_refresh(node, &clouds).await {
            changes = plan.changes;
            addresses = plan.addresses;
        }
        changes.labels.extend(labels::reconcile(&node.facts));
        match self
            .write_refresh(node, addresses.as_deref(), &changes)
            .await
        {
            Ok(()) | Err(WriteError::Gone) => Verdict::Done,
            Err(WriteError::Conflict) => Verdict::Failed,
            Err(WriteError::Api(error)) => {
                let error = Brief(&error);
                warn!(node = node.facts.name, %error, "node not refreshed");
                Verdict::Failed
            }
        }
    }

    async fn write_refresh(
        &self,
        node: &NodeView,
        addresses: Option<&[NodeAddress]>,
        changes: &plan::NodeChanges,
    ) -> Result<(), WriteError> {
        if let Some(addresses) = addresses {
            // Never closed, so there is always a turn to wait for.
            let _turn = self.refreshers.acquire().await;
            info!(node = node.facts.name, ?addresses, "addresses changed");
            let writing = self
                .parts
                .writer
                .write_addresses(node, addresses, Unless::Recreated);
            self.note_written(&node.facts.uid, &writing.await?);
        }
        if !changes.is_empty() {
            info!(node = node.facts.name, labels = ?changes.labels, "labels changed");
            let version = self.parts.writer.write_changes(node, changes).await?;
            self.note_written(&node.facts.uid, &version);
        }
        Ok(())
    }

    /// What the last sweep of its cloud would change on a Node; `None` if nothing, or if the sweep
    /// does not know better than the Node.
    async fn planned_refresh(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Option<Initialisation> {
        for cloud in clouds {
            let Some(snapshot) = cloud.inventory.latest() else {
                continue;
            };
            let Some(instance) = self.instance_in(cloud, &snapshot, node) else {
                continue;
            };
            let described = cloud
                .descriptions
                .describe(instance.clone(), Priority::Background);
            let plan = match described.await {
                Ok(instance) if instance.not_ready.is_none() => {
                    self.plan_against(cloud, &instance, node)
                }
                Ok(_) => None,
                Err(error) => {
                    debug!(node = node.facts.name, %error, "instance not described");
                    None
                }
            };
            if plan.is_some() {
                return plan;
            }
        }
        None
    }

    /// Whether this list would change something on a Node of this cloud, or cannot tell because it shows only a
    /// summary of the instance.
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

    /// The instance of a Node in a list that knows better than the Node. One that it shows under the name of a Node
    /// without an ID counts only if the list is confirmed.
    fn instance_in<'a>(
        &self,
        cloud: &Cloud,
        snapshot: &'a Arc<Snapshot>,
        node: &NodeView,
    ) -> Option<&'a Instance> {
        let learnt = self.records.with(&node.facts.uid, |record| record.learnt);
        if learnt
            .flatten()
            .is_some_and(|learnt| snapshot.began < learnt)
        {
            return None;
        }
        let Match::One(instance) = self.match_in(cloud, snapshot, node) else {
            return None;
        };
        if is_another_instance(instance, &node.facts) {
            return None;
        }
        let guard = self.guard();
        let is_confirmed =
            || !guard.known_in(cloud, snapshot).is_empty() || guard.ready_in(cloud) == 0;
        if node.facts.provider_id.is_none() && !is_confirmed() {
            return None;
        }
        Some(instance)
    }

    fn plan_against(
        &self,
        cloud: &Cloud,
        instance: &Instance,
        node: &NodeView,
    ) -> Option<Initialisation> {
        let plan = plan::refresh(
            node,
            instance,
            &offered(cloud, instance, node),
            self.settings.follow,
        )
        .ok()?;
        (plan.addresses.is_some() || !plan.changes.is_empty()).then_some(plan)
    }
}

#[cfg(test)]
mod tests;
