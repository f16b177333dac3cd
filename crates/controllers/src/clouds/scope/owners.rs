//! Which cloud a Node with a provider ID belongs to, where several may know the ID.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{ScopeGuard, shows_instance_of};
use crate::clouds::{Cloud, Owner, Snapshot, owner_of};
use crate::planted::Bug;
use crate::view::NodeView;

/// How far apart lists of several clouds may begin that say which of them alone shows an instance.
const LISTED_TOGETHER: Duration = Duration::from_mins(1);

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

impl ScopeGuard<'_> {
    /// The Nodes with a provider ID that are this cloud's, beyond doubt.
    pub(super) fn owned(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let mut nodes = self.nodes.all();
        nodes.retain(|node| self.belonging(node, cloud) == Belonging::Owned);
        nodes
    }

    /// How a Node that has a provider ID belongs to a cloud. One without an ID belongs to none.
    pub(crate) fn belonging(&self, node: &NodeView, cloud: &Cloud) -> Belonging {
        if node.facts.provider_id.is_none() {
            return Belonging::Not;
        }
        match self.clouds_of(node).as_slice() {
            [owner] if owner.is(cloud) => Belonging::Owned,
            owners if owners.iter().any(|owner| owner.is(cloud)) => Belonging::Possible,
            _ => Belonging::Not,
        }
    }

    /// Whether another cloud that may own a Node shows its instance.
    pub(crate) fn is_shown_by_another(&self, cloud: &Cloud, node: &NodeView) -> bool {
        self.clouds_of(node).iter().any(|other| {
            let list = other.inventory.latest().filter(|_| !other.is(cloud));
            list.is_some_and(|list| other.shown(&list.list, &node.facts).is_some())
        })
    }

    /// The clouds whose Node this is: one, or those that recognise its provider ID. None if it is another's, or if it
    /// has neither an ID nor a hint.
    pub(crate) fn clouds_of(&self, node: &NodeView) -> Vec<Arc<Cloud>> {
        match owner_of(&node.facts, self.clouds) {
            Owner::Cloud(cloud) => vec![cloud],
            Owner::Ask(owners) if node.facts.provider_id.is_some() => {
                let sole = sole_owner(&node.facts.uid, &owners).cloned();
                sole.map_or(owners, |sole| vec![sole])
            }
            Owner::Ask(_) | Owner::Unowned { .. } => Vec::new(),
        }
    }

    /// Remembers, of every Node that several clouds may own, which one alone shows its instance. Nothing is concluded
    /// before each of them has been listed since the Node was first seen, nor from lists of different times, between which
    /// tokens may have changed, nor from the list of a cloud that shows an instance of another: its token may be that of
    /// the other. If an instance is shown alone by another cloud than before,
    /// tokens were exchanged for each other, and nothing that was learnt counts any more. Such a Node is another cloud's
    /// only once each of them shows instances of this cluster.
    pub(crate) fn learn_owners(&self) {
        if self.clouds.len() < 2 {
            return;
        }
        let nodes = self.nodes.all();
        self.forget_deleted(&nodes);
        let mut seen = Seen::default();
        for node in &nodes {
            let owners = match owner_of(&node.facts, self.clouds) {
                Owner::Ask(owners) if node.facts.provider_id.is_some() => owners,
                _ => continue,
            };
            let lists: Option<Vec<_>> = owners.iter().map(|it| it.inventory.latest()).collect();
            let Some(lists) = lists else {
                continue;
            };
            let both = owners.iter().zip(&lists);
            let showing = both.filter(|(owner, list)| shows_instance_of(owner, list, node));
            let showing: Vec<_> = showing.map(|(owner, _)| Arc::clone(owner)).collect();
            seen.showing
                .extend(showing.iter().map(|it| it.name.clone()));
            let first_seen = self.nodes.first_seen(node);
            let mut both = owners.iter().zip(&lists);
            match showing.as_slice() {
                [sole]
                    if were_listed_together(&lists)
                        && both.all(|(owner, list)| counts(owner, list, first_seen)) =>
                {
                    let uid = node.facts.uid.clone();
                    seen.alone.push((Arc::clone(sole), owners, uid));
                }
                [] | [_] => {}
                several => seen.overlap(several),
            }
        }
        seen.learn(self.clouds);
    }

    fn forget_deleted(&self, nodes: &[Arc<NodeView>]) {
        let present: BTreeSet<_> = nodes.iter().map(|node| &node.facts.uid).collect();
        for cloud in self.clouds {
            let mut memory = cloud.scope.memory.lock();
            memory.showed_alone.retain(|uid| present.contains(uid));
            memory.lost.retain(|uid| present.contains(uid));
        }
    }
}

/// Whether lists of several clouds show the same moment.
fn were_listed_together(lists: &[Arc<Snapshot>]) -> bool {
    let began = lists.iter().map(|list| list.began);
    let (first, last) = (began.clone().min(), began.max());
    let is_soon = |(first, last): (Instant, Instant)| last - first <= LISTED_TOGETHER;
    first.zip(last).is_some_and(is_soon) || Bug::LearnFromOldLists.is_planted()
}

/// Whether owners are learnt from a list: it began after the Node was first seen, and after the cloud showed
/// instances of another.
fn counts(cloud: &Cloud, list: &Snapshot, first_seen: Option<Instant>) -> bool {
    let overlapped = cloud.scope.memory.lock().overlapped;
    let is_since = Some(list.began) >= first_seen && Some(list.began) > overlapped;
    first_seen.is_some() && (is_since || Bug::LearnFromOldLists.is_planted())
}

/// What the last lists of all clouds show of Nodes that several may own.
#[derive(Default)]
struct Seen {
    /// The clouds that show any instance of this cluster.
    showing: BTreeSet<String>,
    /// Those that show instances which others show too.
    overlapping: BTreeSet<String>,
    /// The cloud that alone shows a Node, those that may own it, and its UID.
    alone: Vec<(Arc<Cloud>, Vec<Arc<Cloud>>, String)>,
}

impl Seen {
    fn overlap(&mut self, clouds: &[Arc<Cloud>]) {
        for cloud in clouds {
            cloud.scope.memory.lock().overlapped = Some(Instant::now());
            self.overlapping.insert(cloud.name.clone());
        }
    }

    fn learn(self, clouds: &[Arc<Cloud>]) {
        let is_overlapping = |cloud: &Cloud| {
            self.overlapping.contains(&cloud.name) && !Bug::LearnFromOldLists.is_planted()
        };
        let mut has_moved = false;
        for (sole, owners, uid) in &self.alone {
            let known = sole_owner(uid, owners).filter(|known| !Arc::ptr_eq(known, sole));
            if let Some(known) = known.filter(|_| !self.overlapping.contains(&sole.name)) {
                known.scope.memory.lock().lost.insert(uid.clone());
                has_moved = true;
            }
        }
        if has_moved {
            for cloud in clouds {
                cloud.scope.memory.lock().showed_alone.clear();
            }
            return;
        }
        for (sole, owners, uid) in &self.alone {
            let mut others = owners.iter().filter(|owner| !Arc::ptr_eq(owner, sole));
            let was_lost = others.any(|other| other.scope.memory.lock().lost.contains(uid));
            let all_show = || {
                owners
                    .iter()
                    .all(|owner| self.showing.contains(&owner.name))
            };
            if !is_overlapping(sole) && (!was_lost || all_show()) {
                for owner in owners {
                    owner.scope.memory.lock().lost.remove(uid);
                }
                sole.scope.memory.lock().showed_alone.insert(uid.clone());
            }
        }
    }
}

/// The one of these clouds that alone showed the instance of a Node.
fn sole_owner<'a>(uid: &str, owners: &'a [Arc<Cloud>]) -> Option<&'a Arc<Cloud>> {
    let mut owners = owners.iter();
    owners.find(|cloud| cloud.scope.memory.lock().showed_alone.contains(uid))
}
