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

mod look_up;
mod owners;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, Instance, InstanceList, Match, NodeFacts, ProviderId, ScopeFingerprint,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::look_up::{can_ask_for_any, likely_first, look_up};
pub(crate) use self::owners::Belonging;
use super::{Cloud, Snapshot};
use crate::planted::Bug;
use crate::runtime::Cache;
use crate::view::{NodeView, Readiness};

/// How soon to check a cloud again that is in doubt.
pub(crate) const SCOPE_RETRY: Duration = Duration::from_secs(30);

/// How soon to begin work anew that began before the credential was found to be right.
pub(crate) const OUTDATED: Duration = Duration::from_secs(1);

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
    /// The work began before the present credential was in use, or was found to be right: what it saw may be another
    /// project's.
    Outdated,
    /// The cloud gave no usable answer.
    Unavailable(CloudError),
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
    /// When the last read began that showed none, if no later one has shown any.
    doubted: Option<Instant>,
    /// When the last doubt ended.
    trusted_since: Option<Instant>,
    /// The known instances of the last list that was checked.
    known: Option<Known>,
    /// The fingerprint under which known instances were last listed.
    fingerprint: Option<ScopeFingerprint>,
    /// Whether an instance was listed that has the system UUID of its Node: this cloud does not make them up.
    has_true_uuids: bool,
    /// When the last list began that showed no known instance, and whether the cloud can be asked for Ready Nodes.
    unrecognized: Option<(Instant, bool)>,
    /// The UIDs of Nodes that several clouds may own, and whose instance this one alone showed.
    showed_alone: BTreeSet<String>,
    /// Those whose instance another cloud alone showed later.
    lost: BTreeSet<String>,
    /// When it last showed instances that another cloud showed too.
    overlapped: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    list: Arc<Snapshot>,
    /// Which Nodes it was compared with.
    nodes: u64,
    ids: Arc<BTreeSet<ProviderId>>,
}

impl Memory {
    /// A read that began then showed a known instance.
    fn confirm(&mut self, began: Instant) {
        self.confirmed = self.confirmed.max(Some(began));
        if self.doubted.is_some_and(|doubted| began > doubted) {
            self.doubted = None;
            self.trusted_since = Some(Instant::now());
        }
    }

    /// One that began then showed none.
    fn doubt(&mut self, began: Instant) {
        self.doubted = self.doubted.max(Some(began));
    }
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
    /// few Nodes are looked up. It speaks for work that began at `work_began` only if nothing says that the cloud
    /// showed another project since.
    pub(crate) async fn confirmed_since(
        &self,
        cloud: &Cloud,
        moment: Instant,
        work_began: Instant,
    ) -> ScopeCheck {
        match self.check_since(cloud, moment).await {
            ScopeCheck::Confirmed if work_began < cloud.trusted_since() => ScopeCheck::Outdated,
            check => check,
        }
    }

    async fn check_since(&self, cloud: &Cloud, moment: Instant) -> ScopeCheck {
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
            cloud.scope.memory.lock().doubt(list.began);
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
        {
            let mut memory = cloud.scope.memory.lock();
            memory.unrecognized = Some((list.began, can_ask_for_ready));
            memory.doubt(list.began);
        }
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
            memory.confirm(list.began);
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
            (!owner.is(cloud)).then(|| owner.name.clone())
        })
    }

    /// Whether an instance that has the name of a Node, and another system UUID, is one of another project: no Node is
    /// left whose instance could be seen, and the UUIDs of this cloud were right before.
    pub(crate) fn is_stranger(&self, cloud: &Cloud, instance: &Instance, node: &NodeFacts) -> bool {
        has_other_uuid(instance, node)
            && cloud.scope.memory.lock().has_true_uuids
            && self.owned(cloud).is_empty()
    }

    /// How many Nodes of a cloud are Ready.
    pub(crate) fn ready_in(&self, cloud: &Cloud) -> usize {
        count_ready(&self.owned(cloud))
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

    /// An instance was listed for a Node that has its ID.
    pub(crate) fn note_uuid(&self, instance: &Instance, node: &NodeFacts) {
        self.scope.memory.lock().has_true_uuids |= has_same_uuid(instance, node) == Some(true);
    }

    /// Since when nothing speaks against the credential in use.
    fn trusted_since(&self) -> Instant {
        let in_use_since = self.cell.in_use_since();
        let trusted_since = self.scope.memory.lock().trusted_since;
        trusted_since.map_or(in_use_since, |since| since.max(in_use_since))
    }

    /// The fingerprint under which known instances of this cloud were last listed.
    pub(crate) fn last_known_scope(&self) -> Option<ScopeFingerprint> {
        self.scope.memory.lock().fingerprint.clone()
    }
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
    has_same_uuid(instance, node) == Some(false)
}

/// `None` if one of them has no UUID.
fn has_same_uuid(instance: &Instance, node: &NodeFacts) -> Option<bool> {
    let uuids = instance.system_uuid.as_ref().zip(node.system_uuid.as_ref());
    uuids.map(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// Whether an instance that has the ID of a Node is its own.
fn is_instance_of(instance: &Instance, node: &NodeFacts) -> bool {
    has_same_uuid(instance, node) == Some(true) || instance.answers_to(&node.name)
}

fn count_ready(nodes: &[Arc<NodeView>]) -> usize {
    let ready = nodes
        .iter()
        .filter(|node| node.readiness == Readiness::Ready);
    ready.count()
}

#[cfg(test)]
mod tests;
