//! Compares a cloud with the cluster: its list with the Nodes, and the Nodes that the list does not show with
//! their kubelets. All suspects of a moment share one comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Doubt, Existence, ProviderId};
use tokio::time::Instant;

use super::LifecycleController;
use super::delete::is_leaving;
use super::heartbeat::Heartbeat;
use super::home::{Belonging, confirms};
use super::scope::{KnownNode, ScopeDoubt, ScopeMemory, too_many};
use crate::clouds::{Cloud, Snapshot};
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
/// A Node that is Ready for so long after its machine went has a kubelet that is heard: without leases
/// to read, the cluster's own word has to do, and that takes less than a minute.
const READY_TOO_LONG: Duration = Duration::from_mins(2);

/// What is remembered of a cloud's scope.
#[derive(Default)]
pub(super) struct ScopeState {
    memory: ScopeMemory,
    /// Nodes whose machines are missing from the last list, by UID, and when their kubelets were last
    /// listened to.
    missing: BTreeMap<String, Missing>,
    listened: Option<Instant>,
    /// The last time that a kubelet was heard whose machine was missing, and of which Node.
    heard: Option<(Instant, String)>,
    /// Proofs from before this moment do not count.
    voided: Option<Instant>,
    /// When a list began, and what look-ups said of Nodes that it does not show, by UID.
    looked_up: Option<(Instant, BTreeMap<String, LookUp>)>,
    /// The machines that confirm the scope, and the list that shows them.
    confirming: Option<(Arc<Snapshot>, Arc<BTreeSet<ProviderId>>)>,
    /// The last comparison, and with which list.
    checked: Option<(Instant, Arc<Snapshot>, Result<(), ScopeDoubt>)>,
    /// Held while the cloud is being compared.
    checking: Arc<tokio::sync::Mutex<()>>,
}

/// A Node whose machine a list does not show.
struct Missing {
    since: Instant,
    heartbeat: Heartbeat,
}

/// What a look-up said of a Node that a list does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUp {
    /// Its machine is there: the list lags.
    Found,
    NotFound,
    /// The cloud was never told how to look for this one, so it cannot miss it.
    NotAskable,
}

/// A Node that a cloud owns, or may own, beside a list.
struct Member {
    node: Arc<NodeView>,
    is_seen: bool,
    confirms: bool,
    is_staying: bool,
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
            self.note_verdict(cloud, &verdict);
            verdict?;
            lists.push(list?);
        }
        Ok(lists)
    }

    /// The last list, after a new one if that is due: if the last is older than `since`, and not so young that a
    /// little later one list will do for more suspects.
    pub(super) async fn list_for(&self, cloud: &Cloud, since: Instant) -> Option<Arc<Snapshot>> {
        let checking = self.scope_of(cloud, |scope| Arc::clone(&scope.checking));
        let _turn = checking.lock().await;
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
            self.learn_homes();
        }
        cloud.seen_lately()
    }

    fn list_interval(&self, cloud: &Cloud, list: &Snapshot) -> Duration {
        let stopped = self.with_guard(cloud, |guard| guard.halted.as_ref().map(|it| it.at));
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
        let checking = self.scope_of(cloud, |scope| Arc::clone(&scope.checking));
        let _turn = checking.lock().await;
        let shared = self.scope_of(cloud, |scope| {
            let (at, with, verdict) = scope.checked.as_ref()?;
            let is_current = at.elapsed() < ONE_PASS && Arc::ptr_eq(with, list);
            is_current.then(|| verdict.clone())
        });
        if let Some(verdict) = shared {
            return verdict;
        }
        let verdict = self.compare(cloud, list).await;
        self.scope_of(cloud, |scope| {
            let now = Instant::now();
            if verdict.as_ref().is_err_and(|doubt| !doubt.keeps_proofs()) {
                scope.voided = Some(now);
            }
            scope.checked = Some((now, Arc::clone(list), verdict.clone()));
        });
        verdict
    }

    async fn compare(&self, cloud: &Cloud, list: &Arc<Snapshot>) -> Result<(), ScopeDoubt> {
        let mut members = self.members(cloud, list);
        let staying = members.iter().filter(|member| member.is_staying);
        let missing = staying.clone().filter(|member| !member.is_seen);
        let missing: Vec<_> = missing.map(|member| Arc::clone(&member.node)).collect();
        if too_many(missing.len(), staying.count()) {
            self.look_up(cloud, list, &missing).await;
            members = self.members(cloud, list);
        }
        let known = members.iter().map(|member| KnownNode {
            name: &member.node.facts.name,
            is_seen: member.is_seen,
            confirms: member.confirms,
            is_staying: member.is_staying,
        });
        self.scope_of(cloud, |scope| scope.memory.judge(&list.sweep, known))?;
        let unseen = members.into_iter().filter(|member| !member.is_seen);
        let unseen: Vec<_> = unseen.map(|member| member.node).collect();
        self.listen_to(cloud, list, &unseen).await
    }

    /// The Nodes of a cloud beside a list. Those that joined after it began are no part of it.
    fn members(&self, cloud: &Cloud, list: &Arc<Snapshot>) -> Vec<Member> {
        let looked_up = self.look_ups(cloud, list);
        let mut members = Vec::new();
        for node in self.parts.nodes.all() {
            let belonging = self.belonging(&node, cloud);
            let is_shown = cloud.shows(&list.sweep, &node.facts);
            let is_possible = belonging == Belonging::Possible;
            let is_elsewhere = is_possible && self.is_shown_by_another(cloud, &node);
            let confirms = confirms(belonging, cloud, list, &node);
            if (belonging == Belonging::Not && !confirms) || (is_elsewhere && !is_shown) {
                continue;
            }
            let answer = looked_up.get(&node.facts.uid);
            let is_expected = list.sweep.is_complete() && self.joined_before(&node, list.began);
            let is_askable = answer != Some(&LookUp::NotAskable);
            members.push(Member {
                is_seen: is_shown
                    || !is_expected
                    || !matches!(answer, None | Some(LookUp::NotFound)),
                confirms,
                is_staying: node.readiness == Readiness::Ready
                    && !node.deleting
                    && !is_leaving(&node)
                    && is_askable,
                node,
            });
        }
        members
    }

    /// Looks up some of the Nodes that a list does not show, each once.
    async fn look_up(&self, cloud: &Cloud, list: &Snapshot, nodes: &[Arc<NodeView>]) {
        let Some(instances) = cloud.provider.instances() else {
            return;
        };
        let known = self.look_ups(cloud, list);
        let room = MOST_LOOK_UPS_OF_LIST.saturating_sub(known.len());
        let nodes = nodes.iter();
        let unasked = nodes.filter(|node| !known.contains_key(&node.facts.uid));
        for node in unasked.take(MOST_LOOK_UPS.min(room)) {
            let answer = match instances.find(&node.facts, None).await {
                Existence::Present(_) => LookUp::Found,
                Existence::Unknown(Doubt::NotOurs { .. }) => LookUp::NotAskable,
                Existence::Unknown(Doubt::NoAnswer(_)) => return,
                Existence::Gone(_) | Existence::Unknown(_) => LookUp::NotFound,
            };
            let mut answers = self.look_ups(cloud, list);
            answers.insert(node.facts.uid.clone(), answer);
            let of_list = Some((list.began, answers));
            self.scope_of(cloud, |scope| scope.looked_up = of_list);
        }
    }

    /// What look-ups said of Nodes that this list does not show.
    fn look_ups(&self, cloud: &Cloud, list: &Snapshot) -> BTreeMap<String, LookUp> {
        self.scope_of(cloud, |scope| {
            let of_list = scope.looked_up.as_ref();
            let of_list = of_list.filter(|(began, _)| *began == list.began);
            of_list
                .map(|(_, answers)| answers.clone())
                .unwrap_or_default()
        })
    }

    /// Whether any kubelet is heard whose machine is missing. Every report is compared with the one that was
    /// read when its machine was first missed.
    async fn listen_to(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
        unseen: &[Arc<NodeView>],
    ) -> Result<(), ScopeDoubt> {
        let is_heard_enough = self.scope_of(cloud, |scope| {
            let is_known = |node: &Arc<NodeView>| scope.missing.contains_key(&node.facts.uid);
            let listened = scope
                .listened
                .is_some_and(|at| at.elapsed() < LISTEN_PERIOD);
            listened && unseen.iter().all(is_known)
        });
        if is_heard_enough {
            return Ok(());
        }
        let names: Vec<_> = unseen.iter().map(|node| node.facts.name.as_str()).collect();
        let heartbeats = self.parts.heartbeats.of_all(&names).await;
        if heartbeats.contains(&Heartbeat::NoAnswer) {
            return Err(ScopeDoubt::ClusterUnavailable);
        }
        let heard = self.scope_of(cloud, |scope| {
            scope.listened = Some(Instant::now());
            let mut before = std::mem::take(&mut scope.missing);
            let mut heard = Vec::new();
            for (node, heartbeat) in unseen.iter().zip(heartbeats) {
                let uid = &node.facts.uid;
                let known = before.remove(uid);
                if known
                    .as_ref()
                    .is_some_and(|known| known.is_heard(node, heartbeat))
                {
                    heard.push(Arc::clone(node));
                }
                let since = known.map_or_else(Instant::now, |known| known.since);
                let missing = Missing { since, heartbeat };
                scope.missing.insert(uid.clone(), missing);
            }
            heard
        });
        self.weigh_heard(cloud, list, heard).await
    }

    /// A list may lag: a kubelet that is heard contradicts it only if a look-up does not find the machine
    /// either.
    async fn weigh_heard(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
        heard: Vec<Arc<NodeView>>,
    ) -> Result<(), ScopeDoubt> {
        self.look_up(cloud, list, &heard).await;
        let answers = self.look_ups(cloud, list);
        let mut unfound = heard.iter().filter(|node| {
            let answer = answers.get(&node.facts.uid);
            !matches!(answer, Some(LookUp::Found | LookUp::NotAskable))
        });
        let Some(node) = unfound.next() else {
            return Ok(());
        };
        let node = node.facts.name.clone();
        let heard = Some((Instant::now(), node.clone()));
        self.scope_of(cloud, |scope| scope.heard = heard);
        Err(ScopeDoubt::HeardButMissing { node })
    }

    /// The doubt about a cloud, if it was found within this time that a kubelet is heard: it is heard only every
    /// ten seconds, and lives in between.
    pub(super) fn doubt_of(
        &self,
        cloud: &Cloud,
        verdict: &Result<(), ScopeDoubt>,
        within: Duration,
    ) -> Option<ScopeDoubt> {
        let heard = || {
            let heard = self.scope_of(cloud, |scope| scope.heard.clone());
            let (_, node) = heard.filter(|(at, _)| at.elapsed() < within)?;
            Some(ScopeDoubt::HeardButMissing { node })
        };
        verdict.as_ref().err().cloned().or_else(heard)
    }

    /// Proofs from before this moment do not count, if there is one: clouds were in doubt since, or the
    /// watch of Nodes was broken. `None` if it is broken now.
    pub(super) fn proofs_count_since(&self, clouds: &[Arc<Cloud>]) -> Option<Instant> {
        let whole = self.parts.nodes.whole_since()?;
        let voided = clouds.iter();
        let voided = voided.filter_map(|cloud| self.scope_of(cloud, |scope| scope.voided));
        Some(voided.fold(whole, Instant::max))
    }

    /// How long a kubelet that lives may go unheard, of all whose machines are missing.
    pub(super) fn longest_silence(&self, clouds: &[Arc<Cloud>]) -> Duration {
        let longest = clouds.iter().filter_map(|cloud| {
            self.scope_of(cloud, |scope| {
                let missing = scope.missing.values();
                missing.map(|missing| missing.heartbeat.silence()).max()
            })
        });
        longest.max().unwrap_or_default()
    }

    /// The machines of this cluster by which a list confirms the scope of its cloud, worked out once for
    /// all suspects that it serves.
    pub(super) fn confirming(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
    ) -> Arc<BTreeSet<ProviderId>> {
        let known = self.scope_of(cloud, |scope| {
            let (of, known) = scope.confirming.as_ref()?;
            Arc::ptr_eq(of, list).then(|| Arc::clone(known))
        });
        known.unwrap_or_else(|| {
            let nodes = self.parts.nodes.all();
            let owned = nodes
                .iter()
                .filter(|node| confirms(self.belonging(node, cloud), cloud, list, node));
            let ids = owned.filter_map(|node| cloud.shown(&list.sweep, &node.facts));
            let known: Arc<BTreeSet<_>> = Arc::new(ids.map(|it| it.id.clone()).collect());
            let kept = (Arc::clone(list), Arc::clone(&known));
            self.scope_of(cloud, |scope| scope.confirming = Some(kept));
            known
        })
    }

    /// The Nodes whose provider ID names a machine that is a cloud's, or may be.
    pub(super) fn nodes_of(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let mut nodes = self.parts.nodes.all();
        nodes.retain(|node| self.belonging(node, cloud) != Belonging::Not);
        nodes
    }

    fn scope_of<T>(&self, cloud: &Cloud, use_it: impl FnOnce(&mut ScopeState) -> T) -> T {
        self.with_guard(cloud, |guard| use_it(&mut guard.scope))
    }
}

impl Missing {
    /// Whether the kubelet reported since the machine was missed.
    fn is_heard(&self, node: &NodeView, now: Heartbeat) -> bool {
        let is_ready = node.readiness == Readiness::Ready;
        match now {
            Heartbeat::NotAllowed => is_ready && self.since.elapsed() >= READY_TOO_LONG,
            _ => now.is_newer_than(self.heartbeat),
        }
    }
}
