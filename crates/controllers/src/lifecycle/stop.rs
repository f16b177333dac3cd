//! The deletion stop: while a cloud is in doubt, none of its Nodes is deleted.
//!
//! Its list is compared with the Nodes, and the Nodes that it does not show with their kubelets. All suspects of a
//! moment share one comparison.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Doubt, Existence, Sighting};
use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{error, info};

use super::decide::Decision;
use super::delete::is_leaving;
use super::doubt::{self, Member, ScopeDoubt, Unseen};
use super::heartbeat::Heartbeat;
use super::{LifecycleController, Verdict};
use crate::clouds::{Belonging, Cloud, Snapshot};
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};

/// So many Nodes that a list does not show are looked up in one comparison, and for one list: lists may lag.
const MOST_LOOK_UPS: usize = 3;
const MOST_LOOK_UPS_OF_LIST: usize = 12;
/// Suspects whose turn comes within this time share one comparison.
const ONE_PASS: Duration = Duration::from_secs(1);
/// A list this old is made anew before it decides about anything.
const OLD: Duration = Duration::from_mins(2);
/// A failed list is not tried again sooner.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// A list serves all suspects of this time: at least, and for a large cloud at most.
const LIST_INTERVAL: Duration = Duration::from_secs(20);
const LONGEST_LIST_INTERVAL: Duration = Duration::from_secs(40);
/// As many machines are listed in the shortest interval; more take longer.
const MACHINES_PER_INTERVAL: usize = 1000;
/// A stop that has lasted this long is no passing one: its end is looked for less often.
const LONG_STOP: Duration = Duration::from_mins(2);
const LIST_INTERVAL_OF_LONG_STOP: Duration = Duration::from_mins(1);
/// Kubelets are listened to at most this often: they are heard every ten seconds.
const LISTEN_PERIOD: Duration = Duration::from_secs(4);
/// A kubelet that was heard this recently lives.
const HEARD_LATELY: Duration = Duration::from_secs(20);

/// Deletions of a cloud are stopped.
pub(super) struct Stop {
    pub(super) since: Timestamp,
    at: Instant,
    pub(super) doubt: ScopeDoubt,
}

/// What is remembered of the comparisons of a cloud with the cluster.
#[derive(Default)]
pub(super) struct Comparison {
    /// The last one: when, and with which list.
    last: Option<(Instant, Arc<Snapshot>, Result<(), ScopeDoubt>)>,
    unseen: Unseen,
    /// When the kubelets of unseen Nodes were last listened to.
    listened: Option<Instant>,
    /// What look-ups said of Nodes that the last list does not show, by UID.
    looked_up: BTreeMap<String, LookUp>,
}

/// What a look-up said of a Node that a list does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUp {
    /// Its machine is there: the list lags.
    Found,
    NotFound,
    /// The cloud was not configured to look for this one, so it cannot miss it.
    NotAskable,
}

impl LifecycleController {
    /// Whether every cloud agrees with the cluster, by lists that began after `since` where that is due.
    /// Returns the lists.
    pub(super) async fn check_scopes(
        &self,
        clouds: &[Arc<Cloud>],
        since: Instant,
    ) -> Result<Vec<Arc<Snapshot>>, ScopeDoubt> {
        let mut lists = Vec::new();
        for cloud in clouds {
            let list = self.list_for(cloud, since).await;
            let list = list.ok_or(ScopeDoubt::NotListed);
            let verdict = match &list {
                Ok(list) => self.compare_once(cloud, list).await,
                Err(doubt) => Err(doubt.clone()),
            };
            self.note_verdict(cloud, verdict.as_ref().err());
            verdict?;
            lists.push(list?);
        }
        Ok(lists)
    }

    /// The last list, after a new one if that is due: if the last is older than `since`, and not so young that a
    /// little later one list will do for more suspects.
    pub(super) async fn list_for(&self, cloud: &Cloud, since: Instant) -> Option<Arc<Snapshot>> {
        let comparison = self.comparison_of(cloud);
        let _turn = comparison.lock().await;
        let is_due = match cloud.inventory.latest() {
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
        let stopped = self.of_cloud(cloud, |record| record.stop.as_ref().map(|it| it.at));
        if stopped.is_some_and(|at| at.elapsed() > LONG_STOP) {
            return LIST_INTERVAL_OF_LONG_STOP;
        }
        let machines = list.sweep.instances().len();
        let size = u32::try_from(machines.div_ceil(MACHINES_PER_INTERVAL)).unwrap_or(u32::MAX);
        let interval = LIST_INTERVAL.saturating_mul(size);
        let interval = interval.clamp(LIST_INTERVAL, LONGEST_LIST_INTERVAL);
        // A list that takes long, as one that the cloud's rate limit slows down, comes less often.
        interval.max((list.ended - list.began) * 2)
    }

    async fn compare_once(&self, cloud: &Cloud, list: &Arc<Snapshot>) -> Result<(), ScopeDoubt> {
        if Bug::IgnoreDoubt.is_planted() {
            return Ok(());
        }
        let comparison = self.comparison_of(cloud);
        let comparison = &mut *comparison.lock().await;
        match &comparison.last {
            Some((at, with, verdict)) if Arc::ptr_eq(with, list) => {
                if at.elapsed() < ONE_PASS {
                    return verdict.clone();
                }
            }
            _ => comparison.looked_up.clear(),
        }
        let verdict = self.compare(cloud, list, comparison).await;
        let now = Instant::now();
        self.of_cloud(cloud, |record| {
            if verdict.as_ref().is_err_and(|doubt| !doubt.keeps_proofs()) {
                record.voided = Some(now);
            }
            if let Err(ScopeDoubt::HeardButMissing { node }) = &verdict {
                record.heard = Some((now, node.clone()));
            }
            record.silence = comparison.unseen.longest_silence();
        });
        comparison.last = Some((now, Arc::clone(list), verdict.clone()));
        verdict
    }

    async fn compare(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
        comparison: &mut Comparison,
    ) -> Result<(), ScopeDoubt> {
        let is_confirmed = !self.guard().known_in(cloud, list).is_empty();
        let compare = |members: &[Member]| {
            let last_scope = cloud.last_known_scope();
            doubt::compare(&list.sweep, is_confirmed, last_scope, members)
        };
        let mut members = self.members(cloud, list, comparison);
        let mut verdict = compare(&members);
        if matches!(verdict, Err(ScopeDoubt::ManyReadyMissing { .. })) {
            let missing = members.iter().filter(|it| it.is_staying && !it.is_seen);
            let missing: Vec<_> = missing.map(|it| Arc::clone(&it.node)).collect();
            comparison.look_up(cloud, &missing).await;
            members = self.members(cloud, list, comparison);
            verdict = compare(&members);
        }
        verdict?;
        members.retain(|member| !member.is_seen);
        self.listen_to(cloud, members, comparison).await
    }

    /// The Nodes of a cloud beside a list. Those that joined after it began are no part of it.
    fn members(&self, cloud: &Cloud, list: &Snapshot, comparison: &Comparison) -> Vec<Member> {
        let guard = self.guard();
        let mut members = Vec::new();
        for node in self.parts.nodes.all() {
            let belonging = guard.belonging(&node, cloud);
            let is_shown = cloud.shown(&list.sweep, &node.facts).is_some();
            let is_elsewhere = || {
                let is_possible = belonging == Belonging::Possible;
                is_possible && !is_shown && guard.is_shown_by_another(cloud, &node)
            };
            if belonging == Belonging::Not || is_elsewhere() {
                continue;
            }
            let answer = comparison.looked_up.get(&node.facts.uid);
            let joined = self.parts.nodes.first_seen(&node);
            let is_expected =
                list.sweep.is_complete() && joined.is_some_and(|joined| joined <= list.began);
            members.push(Member {
                is_seen: is_shown
                    || !is_expected
                    || !matches!(answer, None | Some(LookUp::NotFound)),
                is_staying: node.readiness == Readiness::Ready
                    && !node.deleting
                    && !is_leaving(&node)
                    && answer != Some(&LookUp::NotAskable),
                node,
            });
        }
        members
    }

    /// Whether any kubelet is heard whose machine is missing. A list may lag, so it contradicts the list only if a
    /// look-up does not find the machine either.
    async fn listen_to(
        &self,
        cloud: &Cloud,
        unseen: Vec<Member>,
        comparison: &mut Comparison,
    ) -> Result<(), ScopeDoubt> {
        let listened = comparison.listened;
        if listened.is_some_and(|at| at.elapsed() < LISTEN_PERIOD)
            && comparison.unseen.knows_all(&unseen)
        {
            return Ok(());
        }
        let names = unseen.iter().map(|member| member.node.facts.name.as_str());
        let names: Vec<_> = names.collect();
        let heartbeats = self.parts.heartbeats.of_all(&names).await;
        if heartbeats.contains(&Heartbeat::NoAnswer) {
            return Err(ScopeDoubt::ClusterUnavailable);
        }
        comparison.listened = Some(Instant::now());
        let heard = comparison.unseen.hear(unseen, &heartbeats);
        comparison.look_up(cloud, &heard).await;
        let unfound = heard.iter().find(|node| {
            let answer = comparison.looked_up.get(&node.facts.uid);
            !matches!(answer, Some(LookUp::Found | LookUp::NotAskable))
        });
        unfound.map_or(Ok(()), |node| {
            let node = node.facts.name.clone();
            Err(ScopeDoubt::HeardButMissing { node })
        })
    }

    /// Proofs from before this moment do not count, if there is one: clouds were in doubt since, or the
    /// watch of Nodes was broken. `None` if it is broken now.
    pub(super) fn proofs_count_since(&self, clouds: &[Arc<Cloud>]) -> Option<Instant> {
        let whole = self.parts.nodes.whole_since()?;
        let voided = clouds.iter();
        let voided = voided.filter_map(|cloud| self.of_cloud(cloud, |record| record.voided));
        Some(voided.fold(whole, Instant::max))
    }

    /// A machine was not found, but by a credential that may be blind. That proves nothing, yet people
    /// have to hear of it.
    pub(super) async fn suspect_blindness(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Verdict {
        self.give_up_turn(node);
        if let Err(doubt) = self.check_scopes(clouds, self.a_minute_ago()).await {
            return self.leave(node, Decision::Halt { doubt });
        }
        self.end_proofs(node);
        self.ask_later(node)
    }

    /// Why a suspect that was not found need not be looked for again yet: its cloud is in doubt still, and no
    /// answer would count.
    pub(super) async fn is_still_stopped(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Option<Verdict> {
        let missed = self.of_node(node, |record| record.missed).flatten()?;
        let was_missed_lately = missed.elapsed() < self.settings.longest_pause;
        let is_stopped = |cloud| self.of_cloud(cloud, |record| record.stop.is_some());
        if !was_missed_lately || !clouds.iter().any(|cloud| is_stopped(cloud)) {
            return None;
        }
        // Whatever it is now, it is noted.
        let _ = self.check_scopes(clouds, self.a_minute_ago()).await;
        let doubt_of = |record: &mut super::CloudRecord| Some(record.stop.as_ref()?.doubt.clone());
        let mut clouds = clouds.iter();
        let doubt = clouds.find_map(|cloud| self.of_cloud(cloud, doubt_of))?;
        Some(self.leave(node, Decision::Halt { doubt }))
    }

    /// Looks again at clouds whose deletions are stopped: if all machines are there after all, no
    /// suspect is left whose turn would end the stop.
    pub(super) async fn review_stops(&self) {
        loop {
            tokio::time::sleep(self.settings.longest_pause).await;
            self.guard().learn_owners();
            for cloud in &self.parts.clouds {
                if self.of_cloud(cloud, |record| record.stop.is_some()) {
                    let cloud = std::slice::from_ref(cloud);
                    let _ = self.check_scopes(cloud, self.a_minute_ago()).await;
                }
            }
        }
    }

    /// Lists from before this moment are too old to tell how a stop stands.
    fn a_minute_ago(&self) -> Instant {
        let now = Instant::now();
        now.checked_sub(self.settings.longest_pause).unwrap_or(now)
    }

    /// A kubelet is heard only every ten seconds, and lives in between.
    fn note_verdict(&self, cloud: &Cloud, doubt: Option<&ScopeDoubt>) {
        let since = self.parts.clock.now();
        let (was_stopped, doubt) = self.of_cloud(cloud, |record| {
            let heard = record.heard.as_ref();
            let heard = heard.filter(|(at, _)| at.elapsed() < HEARD_LATELY);
            let heard = heard.map(|(_, node)| ScopeDoubt::HeardButMissing { node: node.clone() });
            let doubt = doubt.cloned().or(heard);
            let before = record.stop.take();
            let was_stopped = before.is_some();
            let (since, at) = before.map_or((since, Instant::now()), |it| (it.since, it.at));
            record.stop = doubt.clone().map(|doubt| Stop { since, at, doubt });
            (was_stopped, doubt)
        });
        if was_stopped == doubt.is_some() {
            return;
        }
        self.parts.observer.halted(&cloud.name, doubt.is_some());
        if let Some(doubt) = doubt {
            error!(cloud = cloud.name, %doubt, "deletions of nodes are stopped");
        } else {
            info!(cloud = cloud.name, "deletions of nodes may go on");
        }
    }

    fn comparison_of(&self, cloud: &Cloud) -> Arc<tokio::sync::Mutex<Comparison>> {
        self.of_cloud(cloud, |record| Arc::clone(&record.comparison))
    }
}

impl Comparison {
    /// Looks up some of the Nodes that a list does not show, each once.
    async fn look_up(&mut self, cloud: &Cloud, nodes: &[Arc<NodeView>]) {
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            return;
        };
        let room = MOST_LOOK_UPS_OF_LIST.saturating_sub(self.looked_up.len());
        let is_new = |node: &&Arc<NodeView>| !self.looked_up.contains_key(&node.facts.uid);
        let nodes: Vec<_> = nodes.iter().filter(is_new).collect();
        for node in nodes.into_iter().take(MOST_LOOK_UPS.min(room)) {
            let answer = match instances.find(&node.facts, None).await {
                Existence::Present(_) => LookUp::Found,
                Existence::Unknown(Doubt::NotOurs { .. }) => LookUp::NotAskable,
                Existence::Unknown(Doubt::NoAnswer(_)) => return,
                Existence::Gone(_) | Existence::Unknown(_) => LookUp::NotFound,
            };
            self.looked_up.insert(node.facts.uid.clone(), answer);
        }
    }
}

/// The last list, unless it is too old to prove anything.
pub(super) fn listed_lately(cloud: &Cloud) -> Option<Arc<Snapshot>> {
    let latest = cloud.inventory.latest();
    latest.filter(|list| list.ended.elapsed() <= Sighting::FRESH_FOR)
}
