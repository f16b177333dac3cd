//! When one list of the cloud serves many Nodes that wait, and when each is looked up by itself.
//!
//! A Node that has no provider ID is matched by its name, or by what else it says of itself. That takes a list
//! that began after the Node was first seen: an older one may show a machine of that name which is gone by
//! now, and an ID that is written once can never be changed.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Instance, Match};
use tokio::time::Instant;

use super::find::{CROWD, FRESH};
use super::{NodeController, lock};
use crate::clouds::{Cloud, Snapshot};
use crate::planted::Bug;
use crate::view::NodeView;

/// When no other Node has come for this long, nobody else would share a list that begins now.
const QUIET: Duration = Duration::from_millis(50);
/// While Nodes keep coming, one waits so long for others to share a list, for each of its pages. That is at most
/// 20 calls a second for as long as they come.
const PER_PAGE: Duration = Duration::from_millis(50);
/// But no longer than this.
const LONGEST: Duration = Duration::from_secs(3);
/// What a cloud shows on a page, roughly.
const INSTANCES_PER_PAGE: usize = 50;

impl NodeController {
    /// Which machine of a list belongs to a Node. A list that is older than a Node without an ID cannot tell.
    pub(super) fn match_in<'a>(
        &self,
        cloud: &Cloud,
        list: &'a Snapshot,
        node: &NodeView,
    ) -> Match<'a> {
        let may_tell = is_matched_by_id(node)
            || self
                .nodes
                .first_seen(node)
                .is_some_and(|seen| list.began >= seen);
        let provider = cloud.provider();
        let matched = match provider.instances() {
            Some(instances) if may_tell => instances.identify(&node.facts, &list.sweep),
            _ => Match::None,
        };
        match matched {
            Match::One(instance) if self.is_predecessors(instance, node) => Match::None,
            matched => matched,
        }
    }

    /// Whether a machine that was found by name is that of a Node which had the name before.
    pub(super) fn is_predecessors(&self, instance: &Instance, node: &NodeView) -> bool {
        !is_matched_by_id(node) && lock(&self.predecessors).had(instance, &node.facts)
    }

    /// Notes that a Node has come, so that others may wait for more of them.
    pub(super) fn note_arrival(&self) {
        // Those of the first list have come all together.
        if self.nodes.has_synced() {
            *lock(&self.last_arrival) = Some(Instant::now());
        }
    }

    /// A list that can tell which machine is this Node's, if it is not cheaper to look it up.
    pub(super) async fn list_for(
        &self,
        cloud: &Cloud,
        node: &NodeView,
    ) -> Option<Result<Arc<Snapshot>, Arc<CloudError>>> {
        let waiting = self.queue.load();
        if waiting < CROWD {
            return None;
        }
        if is_matched_by_id(node) {
            return Some(cloud.inventory.no_older_than(FRESH).await);
        }
        let seen = self.nodes.first_seen(node)?;
        if !has_list_since(cloud, seen) {
            if waiting < pages(cloud) {
                return None;
            }
            self.gather(cloud, seen).await;
        }
        let inventory = &cloud.inventory;
        let list = inventory.begun_after_and_no_older_than(seen, FRESH);
        Some(list.await)
    }

    /// Waits for other Nodes that come now, so that one list serves all of them.
    async fn gather(&self, cloud: &Cloud, seen: Instant) {
        let pages = u32::try_from(pages(cloud)).unwrap_or(u32::MAX);
        let latest = seen + PER_PAGE.saturating_mul(pages).min(LONGEST);
        loop {
            let arrival = *lock(&self.last_arrival);
            let Some(arrival) = arrival else {
                return;
            };
            let due = latest.min(arrival + QUIET);
            if due <= Instant::now() || has_list_since(cloud, seen) {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// Whether any list can tell which machine it is.
fn is_matched_by_id(node: &NodeView) -> bool {
    node.facts.provider_id.is_some() || Bug::MatchInOldList.is_planted()
}

/// Whether a list is there already that began at or after this moment.
fn has_list_since(cloud: &Cloud, moment: Instant) -> bool {
    let latest = cloud.inventory.latest();
    latest.is_some_and(|list| list.began >= moment && list.ended.elapsed() <= FRESH)
}

/// How many calls a list costs, by what the last one showed.
fn pages(cloud: &Cloud) -> usize {
    let latest = cloud.inventory.latest();
    let known = latest.map_or(0, |list| list.sweep.instances().len());
    known.div_ceil(INSTANCES_PER_PAGE).max(1)
}
