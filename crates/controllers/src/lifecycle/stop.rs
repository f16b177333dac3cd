//! The deletion stop: while a cloud is in doubt, none of its Nodes is deleted.
//!
//! The controller compares the cloud's list with the Nodes, and checks the kubelet heartbeats of Nodes that it does not
//! show. Nodes that are checked at the same time share one comparison.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Doubt, Existence, KnownInstance, Match, NodeFacts};
use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{error, info};

use super::decide::Decision;
use super::delete::is_leaving;
use super::doubt::{self, ComparedNode, MissingNodes, ScopeDoubt};
use super::heartbeat::Heartbeat;
use super::{CloudRecord, LONGEST_PAUSE, LifecycleController, Verdict};
use crate::clouds::{Belonging, Cloud, Snapshot};
use crate::log_messages::{DELETIONS_RESUMED, DELETIONS_STOPPED};
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};

/// So many Nodes that a list does not show are looked up in one comparison, and for one list: lists may lag.
const MOST_LOOK_UPS: usize = 3;
const MOST_LOOK_UPS_OF_LIST: usize = 12;
/// Nodes that are checked within this time share one comparison.
const COMPARISON_PERIOD: Duration = Duration::from_secs(1);
/// A list this old is made anew before it decides about anything.
const OLD: Duration = Duration::from_mins(2);
/// A failed list is not tried again sooner.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// A list serves all Nodes of this time: at least, and for a large cloud at most.
const LIST_INTERVAL: Duration = Duration::from_secs(20);
const LONGEST_LIST_INTERVAL: Duration = Duration::from_secs(40);
/// As many instances are listed in the shortest interval; more take longer.
const INSTANCES_PER_INTERVAL: usize = 1000;
/// The end of a stop that has lasted this long is checked less often.
const LONG_STOP: Duration = Duration::from_mins(2);
const LIST_INTERVAL_OF_LONG_STOP: Duration = Duration::from_mins(1);
/// Heartbeats are read at most this often: kubelets send them every ten seconds.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(4);
/// A kubelet that sent a heartbeat this recently is alive.
const ALIVE_FOR: Duration = Duration::from_secs(20);

/// Deletions of a cloud are stopped.
pub(super) struct Stop {
    pub(super) since: Timestamp,
    began: Instant,
    /// When the doubt was last found.
    found: Instant,
    pub(super) doubt: ScopeDoubt,
}

/// What is remembered of the comparisons of a cloud with the cluster.
#[derive(Default)]
pub(super) struct Comparison {
    /// The last one: when, with which list, and its result.
    last: Option<(Instant, Arc<Snapshot>, Result<(), ScopeDoubt>)>,
    missing: MissingNodes,
    /// When the heartbeats of missing Nodes were last read.
    heartbeats_read: Option<Instant>,
    /// What look-ups said of Nodes that the last list does not show, by UID.
    looked_up: BTreeMap<String, LookUpResult>,
}

/// What a look-up said of a Node that a list does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUpResult {
    /// Its instance exists: the list lags.
    Found,
    NotFound,
    /// The cloud is not configured to look for this one, so it cannot miss it.
    NotOurs,
}

/// Lists that agree with the cluster.
pub(super) struct Agreement {
    pub(super) lists: Vec<Arc<Snapshot>>,
    /// How long a live kubelet may go without a heartbeat, of those whose instances are missing.
    pub(super) longest_gap: Duration,
}

impl LifecycleController {
    /// Whether every cloud agrees with the cluster, by lists that began after `since` where that is due.
    pub(super) async fn check_scopes(
        &self,
        clouds: &[Arc<Cloud>],
        since: Instant,
    ) -> Result<Agreement, ScopeDoubt> {
        let mut agreement = Agreement {
            lists: Vec::new(),
            longest_gap: Duration::ZERO,
        };
        for cloud in clouds {
            let compared = match self.list_for(cloud, since).await {
                Some(list) => {
                    let compared = self.compare_once(cloud, &list).await;
                    agreement.lists.push(list);
                    compared
                }
                None => Err(ScopeDoubt::NotListed),
            };
            self.update_stop(cloud, compared.as_ref().err());
            agreement.longest_gap = agreement.longest_gap.max(compared?);
        }
        Ok(agreement)
    }

    /// The last list, after a new one if that is due: if the last is older than `since`, and not so young that a
    /// little later one list will do for more Nodes. What an earlier credential saw says nothing about the present one.
    pub(super) async fn list_for(&self, cloud: &Cloud, since: Instant) -> Option<Arc<Snapshot>> {
        let comparison = self.of_cloud(cloud, |record| Arc::clone(&record.comparison));
        let _guard = comparison.lock().await;
        let in_use_since = cloud.cell.in_use_since();
        let is_due = match cloud.inventory.latest() {
            Some(list) if list.began < in_use_since => true,
            Some(list) if list.began >= since && list.ended.elapsed() < OLD => false,
            Some(list) => list.began.elapsed() >= self.list_interval(cloud, &list),
            None => true,
        };
        let failure = cloud.inventory.failure();
        let failed_lately = failure.is_some_and(|(ago, _)| ago < AFTER_FAILURE);
        if is_due && !failed_lately {
            // If it fails, the last one may still do.
            let _ = cloud.inventory.begun_after(Instant::now()).await;
        }
        listed_lately(cloud)
    }

    fn list_interval(&self, cloud: &Cloud, list: &Snapshot) -> Duration {
        let stopped = self.of_cloud(cloud, |record| record.stop.as_ref().map(|it| it.began));
        if stopped.is_some_and(|began| began.elapsed() > LONG_STOP) {
            return LIST_INTERVAL_OF_LONG_STOP;
        }
        let instances = list.list.instances().len();
        let size = u32::try_from(instances.div_ceil(INSTANCES_PER_INTERVAL)).unwrap_or(u32::MAX);
        let interval = LIST_INTERVAL.saturating_mul(size);
        let interval = interval.clamp(LIST_INTERVAL, LONGEST_LIST_INTERVAL);
        // A list that takes long, as one that the cloud's rate limit slows down, comes less often.
        interval.max((list.ended - list.began) * 2)
    }

    /// How long a live kubelet may go without a heartbeat, of those whose instances are missing.
    async fn compare_once(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
    ) -> Result<Duration, ScopeDoubt> {
        if Bug::IgnoreDoubt.is_planted() {
            return Ok(Duration::ZERO);
        }
        let comparison = self.of_cloud(cloud, |record| Arc::clone(&record.comparison));
        let comparison = &mut *comparison.lock().await;
        let compared = match &comparison.last {
            Some((at, with, compared)) if Arc::ptr_eq(with, list) => {
                Some(compared.clone()).filter(|_| at.elapsed() < COMPARISON_PERIOD)
            }
            _ => {
                comparison.looked_up.clear();
                None
            }
        };
        let compared = if let Some(compared) = compared {
            compared
        } else {
            let compared = self.compare(cloud, list, comparison).await;
            let now = Instant::now();
            if compared.as_ref().is_err_and(|doubt| !doubt.keeps_proofs()) {
                self.of_cloud(cloud, |record| record.proofs_voided = Some(now));
            }
            comparison.last = Some((now, Arc::clone(list), compared.clone()));
            compared
        };
        compared.map(|()| comparison.missing.longest_gap())
    }

    async fn compare(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
        comparison: &mut Comparison,
    ) -> Result<(), ScopeDoubt> {
        let is_confirmed = !self.parts.guard().known_in(cloud, list).is_empty();
        let compare = |nodes: &[ComparedNode]| {
            let last_scope = cloud.last_known_scope();
            doubt::compare(&list.list, is_confirmed, last_scope, nodes)
        };
        let mut nodes = self.compared_nodes(cloud, list, comparison);
        let mut compared = compare(&nodes);
        if matches!(compared, Err(ScopeDoubt::ManyReadyMissing { .. })) {
            let missing = nodes.iter().filter(|it| it.is_staying && !it.is_found);
            let missing: Vec<_> = missing.map(|it| Arc::clone(&it.node)).collect();
            comparison.look_up(cloud, &missing).await;
            nodes = self.compared_nodes(cloud, list, comparison);
            compared = compare(&nodes);
        }
        compared?;
        nodes.retain(|node| !node.is_found);
        self.check_heartbeats(cloud, nodes, comparison).await
    }

    /// The Nodes of a cloud beside a list. Those that joined after it began are no part of it.
    fn compared_nodes(
        &self,
        cloud: &Cloud,
        list: &Snapshot,
        comparison: &Comparison,
    ) -> Vec<ComparedNode> {
        let guard = self.parts.guard();
        let mut nodes = self.parts.nodes.all();
        nodes.retain(|node| match guard.belonging(node, cloud) {
            Belonging::Not => false,
            Belonging::Owned => true,
            Belonging::Possible => {
                cloud.shown(&list.list, &node.facts).is_some()
                    || !guard.is_shown_by_another(cloud, node)
            }
        });
        let compared = nodes.into_iter().map(|node| {
            let answer = comparison.looked_up.get(&node.facts.uid);
            let joined = self.parts.nodes.first_seen(&node);
            let is_expected =
                list.list.is_complete() && joined.is_some_and(|joined| joined <= list.began);
            ComparedNode {
                is_found: cloud.shown(&list.list, &node.facts).is_some()
                    || !is_expected
                    || is_rebuilt(cloud, list, &node)
                    || matches!(answer, Some(LookUpResult::Found | LookUpResult::NotOurs)),
                is_staying: node.readiness == Readiness::Ready
                    && !node.deleting
                    && !is_leaving(&node)
                    && answer != Some(&LookUpResult::NotOurs),
                node,
            }
        });
        compared.collect()
    }

    /// Whether any kubelet is alive whose instance is missing. A list may lag, so it is contradicted only if a look-up
    /// does not find the instance either.
    async fn check_heartbeats(
        &self,
        cloud: &Cloud,
        missing: Vec<ComparedNode>,
        comparison: &mut Comparison,
    ) -> Result<(), ScopeDoubt> {
        let read = comparison.heartbeats_read;
        if read.is_some_and(|at| at.elapsed() < HEARTBEAT_PERIOD)
            && comparison.missing.contains_all(&missing)
        {
            return Ok(());
        }
        let names: Vec<_> = missing
            .iter()
            .map(|it| it.node.facts.name.as_str())
            .collect();
        let heartbeats = self.heartbeats.of_all(&names).await;
        if heartbeats.contains(&Heartbeat::NoAnswer) {
            return Err(ScopeDoubt::ClusterUnavailable);
        }
        comparison.heartbeats_read = Some(Instant::now());
        let alive = comparison.missing.update(missing, &heartbeats);
        comparison.look_up(cloud, &alive).await;
        let contradicts = |node: &&Arc<NodeView>| {
            let answer = comparison.looked_up.get(&node.facts.uid);
            !matches!(answer, Some(LookUpResult::Found | LookUpResult::NotOurs))
        };
        alive.iter().find(contradicts).map_or(Ok(()), |node| {
            let node = node.facts.name.clone();
            Err(ScopeDoubt::KubeletAlive { node })
        })
    }

    /// Proofs from before this moment do not count: clouds were in doubt since, or the watch of Nodes was
    /// broken. `None` if it is broken now.
    pub(super) fn proofs_count_since(&self, clouds: &[Arc<Cloud>]) -> Option<Instant> {
        let whole = self.parts.nodes.whole_since()?;
        let voided = clouds.iter();
        let voided = voided.filter_map(|cloud| self.of_cloud(cloud, |it| it.proofs_voided));
        Some(voided.fold(whole, Instant::max))
    }

    /// An instance was not found, but by a credential that may see nothing. That proves nothing, yet it is reported.
    pub(super) async fn report_blind_credential(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Verdict {
        self.release_slot(node);
        if let Err(doubt) = self.check_scopes(clouds, recently()).await {
            return self.keep(node, Decision::Stop { doubt });
        }
        self.end_proofs(node);
        self.of_node(node, |record| record.is_kept = false);
        self.retry_later(node)
    }

    /// A Node whose instance was not found lately is not looked up again while its cloud is in doubt: no answer would
    /// count.
    pub(super) async fn is_still_stopped(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Option<Verdict> {
        let missed = self.of_node(node, |record| record.missed).flatten()?;
        let was_missed_lately = missed.elapsed() < LONGEST_PAUSE;
        if !was_missed_lately || !clouds.iter().any(|cloud| self.is_stopped(cloud)) {
            return None;
        }
        // The result is in the stops.
        let _ = self.check_scopes(clouds, recently()).await;
        let doubt_of = |record: &mut CloudRecord| Some(record.stop.as_ref()?.doubt.clone());
        let mut clouds = clouds.iter();
        let doubt = clouds.find_map(|cloud| self.of_cloud(cloud, doubt_of))?;
        Some(self.keep(node, Decision::Stop { doubt }))
    }

    /// Checks clouds whose deletions are stopped again: if all instances exist after all, there is no Node left whose
    /// check would end the stop.
    pub(super) async fn review_stops(&self) {
        loop {
            tokio::time::sleep(LONGEST_PAUSE).await;
            self.parts.guard().learn_owners();
            for cloud in self.parts.clouds.iter().filter(|it| self.is_stopped(it)) {
                let cloud = std::slice::from_ref(cloud);
                let _ = self.check_scopes(cloud, recently()).await;
            }
        }
    }

    fn is_stopped(&self, cloud: &Cloud) -> bool {
        self.of_cloud(cloud, |record| record.stop.is_some())
    }

    /// Stops deletions of a cloud, or lets them go on. A kubelet sends heartbeats every ten seconds, and is alive in
    /// between.
    fn update_stop(&self, cloud: &Cloud, doubt: Option<&ScopeDoubt>) {
        let (since, now) = (self.parts.clock.now(), Instant::now());
        let (was_stopped, doubt) = self.of_cloud(cloud, |record| {
            let before = record.stop.take();
            let is_alive = |stop: &&Stop| {
                let is_kubelet = matches!(stop.doubt, ScopeDoubt::KubeletAlive { .. });
                is_kubelet && stop.found.elapsed() < ALIVE_FOR
            };
            let still = before.as_ref().filter(is_alive);
            let still = still.map(|stop| (stop.doubt.clone(), stop.found));
            let found = doubt.map(|doubt| (doubt.clone(), now)).or(still);
            let was_stopped = before.is_some();
            let (since, began) = before.map_or((since, now), |it| (it.since, it.began));
            record.stop = found.map(|(doubt, found)| Stop {
                since,
                began,
                found,
                doubt,
            });
            let doubt = record.stop.as_ref().map(|stop| stop.doubt.to_string());
            (was_stopped, doubt)
        });
        if was_stopped == doubt.is_some() {
            return;
        }
        let cloud = &cloud.name;
        let observer = &self.parts.observer;
        observer.deletions_stopped(cloud, doubt.is_some());
        if let Some(err) = doubt {
            error!(cloud, err, "{DELETIONS_STOPPED}");
        } else {
            info!(cloud, "{DELETIONS_RESUMED}");
        }
    }
}

/// Lists from before this moment are too old to end a stop.
fn recently() -> Instant {
    let now = Instant::now();
    now.checked_sub(LONGEST_PAUSE).unwrap_or(now)
}

impl Comparison {
    /// Looks up some of the Nodes that a list does not show, each once.
    async fn look_up(&mut self, cloud: &Cloud, nodes: &[Arc<NodeView>]) {
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            return;
        };
        let left = MOST_LOOK_UPS_OF_LIST.saturating_sub(self.looked_up.len());
        let new = nodes.iter().map(|node| &node.facts);
        let new = new.filter(|facts| !self.looked_up.contains_key(&facts.uid));
        let new: Vec<_> = new.take(MOST_LOOK_UPS.min(left)).cloned().collect();
        if new.is_empty() {
            return;
        }
        for (facts, answer) in new.iter().zip(instances.find_many(&new, None).await) {
            let answer = match answer {
                Existence::Present(_) => LookUpResult::Found,
                Existence::Unknown(Doubt::NotOurs { .. }) => LookUpResult::NotOurs,
                Existence::Unknown(Doubt::NoAnswer(_)) => continue,
                Existence::Gone(_) | Existence::Unknown(_) => LookUpResult::NotFound,
            };
            self.looked_up.insert(facts.uid.clone(), answer);
        }
    }
}

/// Whether a list shows another instance for a Node than the one its ID names. A live kubelet runs there, and does not
/// say that the cloud hides the old one.
fn is_rebuilt(cloud: &Cloud, list: &Snapshot, node: &NodeView) -> bool {
    let mut facts = NodeFacts::clone(&node.facts);
    facts.provider_id = None;
    matches!(cloud.identify(&facts, &list.list), Match::One(_))
}

/// The last list, unless it is too old to prove anything.
pub(super) fn listed_lately(cloud: &Cloud) -> Option<Arc<Snapshot>> {
    let latest = cloud.inventory.latest();
    latest.filter(|list| list.ended.elapsed() <= KnownInstance::FRESH_FOR)
}
