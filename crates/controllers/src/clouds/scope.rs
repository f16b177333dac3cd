//! The scope guard: does the credential of a cloud see the project that this cluster lives in?
//!
//! With a token of another project, a cloud answers "no such instance" and shows the machines and balancers of others.
//! In most clouds the only sign of that is that none of the cluster's own instances is shown. So before controllers
//! match by name, create or delete anything, they ask one question: did a read that began at or after a given moment
//! show a known instance? All controllers share the answers.
//!
//! Where provider IDs do not distinguish accounts, the guard remembers for each Node the cloud that was the only one to
//! show its instance, and the instance confirms only that cloud: if the token of one project is replaced by that of the
//! other, both show the same instances.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, Doubt, Existence, Instance, InstanceList, Match, NodeFacts, ProviderId,
    ScopeFingerprint,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Cloud, Owner, Snapshot, owner_of};
use crate::planted::Bug;
use crate::runtime::Cache;
use crate::view::{NodeView, Readiness};

/// Nodes that are looked up before it is concluded that no known instance is seen. One may be gone for good.
const MOST_LOOK_UPS: usize = 3;

/// How soon to check a cloud again that is in doubt.
pub(crate) const SCOPE_RETRY: Duration = Duration::from_secs(30);

/// What the guard found.
#[derive(Debug)]
pub(crate) enum ScopeCheck {
    /// A known instance was seen, or there is none that the cloud could show.
    Confirmed,
    /// None was seen. So many Nodes that the cloud has to know are Ready.
    Unrecognized {
        /// How many.
        ready: usize,
    },
    /// None was seen, but instances of Nodes that are another cloud's: the credential is that of the other.
    OtherCloud(String),
    /// The cloud gave no usable answer.
    Unavailable(CloudError),
}

/// How a Node belongs to a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// It is this cloud's, beyond doubt.
    Owned,
    /// It may be this cloud's.
    Possible,
    /// It is another's.
    Not,
}

/// What is remembered of a cloud's scope.
#[derive(Debug, Default)]
pub(super) struct Scope {
    memory: Mutex<Memory>,
    /// Held while Nodes are looked up, so that all callers share the answer.
    checking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Memory {
    /// When the last read began that showed a known instance.
    confirmed: Option<Instant>,
    /// The known instances of the last list that was checked.
    known: Option<Known>,
    /// The fingerprint under which known instances were last listed.
    fingerprint: Option<ScopeFingerprint>,
    /// When the last list began that showed no known instance, and whether the cloud can be asked for Ready Nodes.
    unrecognized: Option<(Instant, bool)>,
    /// The UIDs of Nodes that several clouds may own, and whose instance this one alone showed.
    showed_alone: BTreeSet<String>,
}

#[derive(Debug)]
struct Known {
    list: Arc<Snapshot>,
    /// Which Nodes it was compared with.
    nodes: u64,
    ids: Arc<BTreeSet<ProviderId>>,
}

impl Scope {
    /// Whether an instance needs the name of its Node. In some clusters Nodes have other names than their instances;
    /// where they were once the same, they have to be.
    fn compares_names(&self) -> bool {
        self.memory.lock().fingerprint.is_some()
    }
}

/// Compares what clouds show with the Nodes of the cluster. What it learns is kept with the clouds.
#[derive(Clone, Copy)]
pub(crate) struct ScopeGuard<'a> {
    nodes: &'a Cache<NodeView>,
    clouds: &'a [Arc<Cloud>],
}

impl<'a> ScopeGuard<'a> {
    /// The guard of these clouds.
    pub(crate) const fn new(nodes: &'a Cache<NodeView>, clouds: &'a [Arc<Cloud>]) -> Self {
        Self { nodes, clouds }
    }

    /// Whether a read of this cloud that began at or after `moment` showed a known instance. If none was made, a
    /// few Nodes are looked up.
    pub(crate) async fn confirmed_since(&self, cloud: &Cloud, moment: Instant) -> ScopeCheck {
        let _checking = cloud.scope.checking.lock().await;
        // A credential is not confirmed by what the one before it saw.
        let moment = moment.max(cloud.cell.in_use_since());
        let confirmed = cloud.scope.memory.lock().confirmed;
        let latest = cloud.inventory.latest();
        let mut since = latest.iter().filter(|list| list.began >= moment);
        if confirmed >= Some(moment) || since.any(|list| !self.known_in(cloud, list).is_empty()) {
            return ScopeCheck::Confirmed;
        }
        let owned = self.owned(cloud);
        if owned.is_empty() {
            return self.listed_since(cloud, moment).await;
        }
        let nodes = likely_first(owned, |node| {
            let list = latest.as_ref();
            list.is_some_and(|list| cloud.shown(&list.list, &node.facts).is_some())
        });
        look_up(cloud, &nodes).await
    }

    /// The same by a whole list. What is missed in lists, as load balancers are, is not confirmed by look-ups: the
    /// lists of a cloud may be empty for a while.
    pub(crate) async fn listed_since(&self, cloud: &Cloud, moment: Instant) -> ScopeCheck {
        // A cloud that has no Node yet can still show those of another.
        let has_none = self.clouds.len() == 1 && self.owned(cloud).is_empty();
        if cloud.provider().instances().is_none() || has_none {
            return ScopeCheck::Confirmed;
        }
        let moment = moment.max(cloud.cell.in_use_since());
        match cloud.inventory.begun_after(moment).await {
            Ok(list) => self.check_list(cloud, &list).await,
            Err(error) => ScopeCheck::Unavailable(error.clone_without_source()),
        }
    }

    /// Whether this very list shows a known instance: a later read may be by another credential.
    pub(crate) async fn check_list(&self, cloud: &Cloud, list: &Arc<Snapshot>) -> ScopeCheck {
        if !self.known_in(cloud, list).is_empty() {
            return ScopeCheck::Confirmed;
        }
        let owned = self.owned(cloud);
        let is_shown = |node: &Arc<NodeView>| {
            let shown = cloud.shown(&list.list, &node.facts);
            shown.is_some_and(|instance| !is_another_instance(instance, &node.facts))
        };
        if !cloud.scope.compares_names() && owned.iter().any(is_shown) {
            return ScopeCheck::Confirmed;
        }
        if let Some(other) = self.other_cloud_in(cloud, list) {
            return ScopeCheck::OtherCloud(other);
        }
        let is_ready = |node: &Arc<NodeView>| node.readiness == Readiness::Ready;
        let (ready, others): (Vec<_>, Vec<_>) = owned.into_iter().partition(is_ready);
        let known = cloud.scope.memory.lock().unrecognized;
        let can_ask_for_ready = match known.filter(|(began, _)| *began == list.began) {
            Some((_, can_ask_for_ready)) => can_ask_for_ready,
            None if can_ask_for_any(cloud, &ready).await => true,
            None if can_ask_for_any(cloud, &others).await => false,
            None => return ScopeCheck::Confirmed,
        };
        cloud.scope.memory.lock().unrecognized = Some((list.began, can_ask_for_ready));
        let ready = if can_ask_for_ready { ready.len() } else { 0 };
        ScopeCheck::Unrecognized { ready }
    }

    /// The known instances that a list shows: those of Nodes that are this cloud's, by ID and by name or system
    /// UUID, because numeric IDs of two projects may overlap.
    pub(crate) fn known_in(
        &self,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
    ) -> Arc<BTreeSet<ProviderId>> {
        let nodes = self.nodes.version();
        if let Some(known) = &cloud.scope.memory.lock().known
            && Arc::ptr_eq(&known.list, list)
            && (!known.ids.is_empty() || (known.nodes == nodes && self.clouds.len() == 1))
        {
            return Arc::clone(&known.ids);
        }
        self.learn_owners();
        let owned = if Bug::ConfirmAnyCloud.is_planted() {
            self.nodes.all()
        } else {
            self.owned(cloud)
        };
        let shown = owned.iter().filter_map(|node| {
            let shown = cloud.shown(&list.list, &node.facts);
            let by_id_alone = Bug::ConfirmByIdAlone.is_planted();
            shown.filter(|instance| by_id_alone || is_instance_of(instance, &node.facts))
        });
        let ids: Arc<BTreeSet<_>> = Arc::new(shown.map(|instance| instance.id.clone()).collect());
        let mut memory = cloud.scope.memory.lock();
        if !ids.is_empty() {
            memory.confirmed = memory.confirmed.max(Some(list.began));
            memory.fingerprint = Some(list.list.scope().clone());
        }
        memory.known = Some(Known {
            list: Arc::clone(list),
            nodes,
            ids: Arc::clone(&ids),
        });
        ids
    }

    /// The cloud whose instances a list shows, if they are not those of the cloud that was asked.
    fn other_cloud_in(&self, cloud: &Cloud, list: &Snapshot) -> Option<String> {
        let nodes = self.nodes.all().into_iter();
        let mut shown = nodes.filter(|node| shows_instance_of(cloud, list, node));
        shown.find_map(|node| {
            let [owner] = self.clouds_of(&node).try_into().ok()?;
            (owner.name != cloud.name).then(|| owner.name.clone())
        })
    }

    /// How many Nodes of a cloud are Ready.
    pub(crate) fn ready_in(&self, cloud: &Cloud) -> usize {
        count_ready(&self.owned(cloud))
    }

    /// The Nodes with a provider ID that are this cloud's, beyond doubt.
    fn owned(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let mut nodes = self.nodes.all();
        nodes.retain(|node| self.belonging(node, cloud) == Belonging::Owned);
        nodes
    }

    /// How a Node that has a provider ID belongs to a cloud. One without an ID belongs to none.
    pub(crate) fn belonging(&self, node: &NodeView, cloud: &Cloud) -> Belonging {
        if node.facts.provider_id.is_none() {
            return Belonging::Not;
        }
        let owner = owner_of(&node.facts, self.clouds);
        match &owner {
            _ if !owner.may_be(cloud) => Belonging::Not,
            Owner::Ask(owners) => match sole_owner(node, owners) {
                Some(sole) if std::ptr::eq(Arc::as_ptr(sole), cloud) => Belonging::Owned,
                Some(_) => Belonging::Not,
                None => Belonging::Possible,
            },
            Owner::Cloud(_) | Owner::Unowned { .. } => Belonging::Owned,
        }
    }

    /// Whether another cloud that may own a Node shows its instance.
    pub(crate) fn is_shown_by_another(&self, cloud: &Cloud, node: &NodeView) -> bool {
        let Owner::Ask(owners) = owner_of(&node.facts, self.clouds) else {
            return false;
        };
        let others = owners.iter().filter(|owner| owner.name != cloud.name);
        let mut lists = others.filter_map(|other| Some((other, other.inventory.latest()?)));
        lists.any(|(other, list)| other.shown(&list.list, &node.facts).is_some())
    }

    /// The clouds whose Node this is: one, or those that recognise its provider ID. None if it is another's, or if it
    /// has neither an ID nor a hint.
    pub(crate) fn clouds_of(&self, node: &NodeView) -> Vec<Arc<Cloud>> {
        match owner_of(&node.facts, self.clouds) {
            Owner::Cloud(cloud) => vec![cloud],
            Owner::Ask(owners) if node.facts.provider_id.is_some() => {
                let sole = sole_owner(node, &owners).cloned();
                sole.map_or(owners, |sole| vec![sole])
            }
            Owner::Ask(_) | Owner::Unowned { .. } => Vec::new(),
        }
    }

    /// Remembers, of every Node that several clouds may own, which one alone shows its instance. Nothing is concluded
    /// before each of them has been listed since the Node was first seen, nor from the list of a cloud that shows an
    /// instance of another: its token may be that of the other. If an instance is shown alone by another cloud than before,
    /// tokens were exchanged for each other, and nothing that was learnt counts any more.
    pub(crate) fn learn_owners(&self) {
        if self.clouds.len() < 2 {
            return;
        }
        let nodes = self.nodes.all();
        let present: BTreeSet<_> = nodes.iter().map(|node| &node.facts.uid).collect();
        for cloud in self.clouds {
            let mut memory = cloud.scope.memory.lock();
            memory.showed_alone.retain(|uid| present.contains(uid));
        }
        let (mut alone, mut moved) = (Vec::new(), BTreeSet::new());
        let mut overlapping = BTreeSet::new();
        for node in &nodes {
            let Owner::Ask(owners) = owner_of(&node.facts, self.clouds) else {
                continue;
            };
            let lists: Option<Vec<_>> = owners.iter().map(|it| it.inventory.latest()).collect();
            let Some(lists) = lists.filter(|_| node.facts.provider_id.is_some()) else {
                continue;
            };
            let both = owners.iter().zip(&lists);
            let showing = both.filter(|(owner, list)| shows_instance_of(owner, list, node));
            let showing: Vec<_> = showing.map(|(owner, _)| Arc::clone(owner)).collect();
            let first_seen = self.nodes.first_seen(node);
            let is_listed_since = |list: &Arc<Snapshot>| {
                Some(list.began) >= first_seen || Bug::LearnFromOldLists.is_planted()
            };
            match showing.as_slice() {
                [sole] if lists.iter().all(is_listed_since) => {
                    let known = sole_owner(node, &owners);
                    if known.is_some_and(|known| !Arc::ptr_eq(known, sole)) {
                        moved.insert(sole.name.clone());
                    }
                    let is_new = first_seen.is_some() && known.is_none();
                    alone.extend(is_new.then(|| (Arc::clone(sole), node.facts.uid.clone())));
                }
                [] | [_] => {}
                several => overlapping.extend(several.iter().map(|cloud| cloud.name.clone())),
            }
        }
        if !moved.is_subset(&overlapping) {
            for cloud in self.clouds {
                cloud.scope.memory.lock().showed_alone.clear();
            }
            return;
        }
        for (cloud, uid) in alone {
            let is_planted = Bug::LearnFromOldLists.is_planted();
            if is_planted || !overlapping.contains(&cloud.name) {
                cloud.scope.memory.lock().showed_alone.insert(uid);
            }
        }
    }
}

impl Cloud {
    /// The instance of a Node that has an ID, as a list shows it, however the ID is spelled there.
    pub(crate) fn shown<'a>(
        &self,
        list: &'a InstanceList,
        node: &NodeFacts,
    ) -> Option<&'a Instance> {
        let id = node.provider_id.as_ref()?;
        let provider = self.provider();
        let identified = || match provider.instances()?.identify(node, list) {
            Match::One(instance) => Some(instance),
            Match::None | Match::Many(_) => None,
        };
        list.get(id).or_else(identified)
    }

    /// The fingerprint under which known instances of this cloud were last listed.
    pub(crate) fn last_known_scope(&self) -> Option<ScopeFingerprint> {
        self.scope.memory.lock().fingerprint.clone()
    }
}

/// The one of these clouds that alone showed the instance of a Node.
fn sole_owner<'a>(node: &NodeView, owners: &'a [Arc<Cloud>]) -> Option<&'a Arc<Cloud>> {
    let uid = &node.facts.uid;
    let mut owners = owners.iter();
    owners.find(|cloud| cloud.scope.memory.lock().showed_alone.contains(uid))
}

/// Looks up a few of these Nodes by ID until one has a known instance.
async fn look_up(cloud: &Cloud, nodes: &[Arc<NodeView>]) -> ScopeCheck {
    let compares_names = cloud.scope.compares_names();
    let (mut check, mut look_ups, mut ready) = (ScopeCheck::Confirmed, 0, 0);
    for node in nodes {
        let (began, provider) = (Instant::now(), cloud.provider());
        let Some(instances) = provider.instances() else {
            return ScopeCheck::Confirmed;
        };
        match instances.find(&node.facts, None).await {
            Existence::Present(instance)
                if !is_another_instance(&instance, &node.facts)
                    && (!compares_names || is_instance_of(&instance, &node.facts)) =>
            {
                let mut memory = cloud.scope.memory.lock();
                memory.confirmed = memory.confirmed.max(Some(began));
                return ScopeCheck::Confirmed;
            }
            // The cloud was not configured to look for this one, so the next has to do.
            Existence::Unknown(Doubt::NotOurs { .. }) => continue,
            Existence::Unknown(Doubt::NoAnswer(error)) => check = ScopeCheck::Unavailable(error),
            Existence::Present(_) | Existence::Gone(_) | Existence::Unknown(_) => {
                // Ready Nodes come first.
                if node.readiness == Readiness::Ready {
                    ready = count_ready(nodes);
                }
                if !matches!(check, ScopeCheck::Unavailable(_)) {
                    check = ScopeCheck::Unrecognized { ready };
                }
            }
        }
        look_ups += 1;
        if look_ups == MOST_LOOK_UPS {
            break;
        }
    }
    check
}

/// Whether the cloud is configured to look for any of these Nodes, unlike dedicated servers of an account that it has
/// no login for.
async fn can_ask_for_any(cloud: &Cloud, nodes: &[Arc<NodeView>]) -> bool {
    let provider = cloud.provider();
    let Some(instances) = provider.instances() else {
        return false;
    };
    for node in nodes {
        let answer = instances.find(&node.facts, None).await;
        if !matches!(answer, Existence::Unknown(Doubt::NotOurs { .. })) {
            return true;
        }
    }
    false
}

/// Whether a list shows the very instance of a Node.
fn shows_instance_of(cloud: &Cloud, list: &Snapshot, node: &NodeView) -> bool {
    let shown = cloud.shown(&list.list, &node.facts);
    shown.is_some_and(|instance| is_instance_of(instance, &node.facts))
}

/// Whether an instance that has the ID of a Node is another one all the same: it has neither the name nor the system
/// UUID that the Node has. Numeric IDs of two projects may overlap.
pub(crate) fn is_another_instance(instance: &Instance, node: &NodeFacts) -> bool {
    has_other_uuid(instance, node)
        && !instance.answers_to(&node.name)
        && !Bug::ShowInstanceOfSameId.is_planted()
}

/// Whether an instance has another system UUID than a Node. Some clouds make one up, so it counts only in doubt.
pub(crate) fn has_other_uuid(instance: &Instance, node: &NodeFacts) -> bool {
    let uuids = (&instance.system_uuid, &node.system_uuid);
    matches!(uuids, (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b))
}

/// Whether an instance that has the ID of a Node is its own.
fn is_instance_of(instance: &Instance, node: &NodeFacts) -> bool {
    let uuids = (&instance.system_uuid, &node.system_uuid);
    let is_same_uuid = matches!(uuids, (Some(a), Some(b)) if a.eq_ignore_ascii_case(b));
    is_same_uuid || instance.answers_to(&node.name)
}

fn count_ready(nodes: &[Arc<NodeView>]) -> usize {
    let ready = nodes
        .iter()
        .filter(|node| node.readiness == Readiness::Ready);
    ready.count()
}

/// Ready Nodes first, of them those that were listed, and the youngest and the oldest in turn. Of Nodes that are Ready,
/// many may have lost their instances moments ago: in a rolling replacement the oldest, with a pool that is removed
/// the youngest.
fn likely_first(
    mut nodes: Vec<Arc<NodeView>>,
    was_listed: impl Fn(&NodeView) -> bool,
) -> Vec<Arc<NodeView>> {
    nodes.sort_by_key(|node| node.facts.created);
    let mut groups = [const { VecDeque::new() }; 3];
    let [likely, ready, others] = &mut groups;
    for node in nodes {
        match node.readiness {
            Readiness::Ready if was_listed(&node) => likely.push_back(node),
            Readiness::Ready => ready.push_back(node),
            Readiness::NotReady | Readiness::Unknown => others.push_back(node),
        }
    }
    let in_turn = |mut nodes: VecDeque<_>| {
        let mut from_the_end = false;
        std::iter::from_fn(move || {
            from_the_end = !from_the_end;
            if from_the_end {
                nodes.pop_back()
            } else {
                nodes.pop_front()
            }
        })
    };
    groups.into_iter().flat_map(in_turn).collect()
}

#[cfg(test)]
mod tests;
