//! Which cloud owns the machine of a Node, where provider IDs do not tell accounts apart.
//!
//! Two projects of a cloud may both recognise an ID. If the token of one is replaced by that of the other,
//! both lists show the same machines, and those of one would speak for the credential of the other. So it is
//! remembered which cloud alone showed a machine; one that several show says nothing for any of them.

use std::collections::BTreeSet;

use super::LifecycleController;
use crate::clouds::{Cloud, Owner, Snapshot, owner_of};
use crate::planted::Bug;
use crate::view::NodeView;

/// How a Node belongs to a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belonging {
    /// It is this cloud's, beyond doubt.
    Owned,
    /// It may be this cloud's.
    Possible,
    /// It is another's.
    Not,
}

impl LifecycleController {
    /// How a Node that has a provider ID belongs to a cloud.
    pub(super) fn belonging(&self, node: &NodeView, cloud: &Cloud) -> Belonging {
        let owner = owner_of(&node.facts, &self.parts.clouds);
        match &owner {
            _ if node.facts.provider_id.is_none() || !owner.may_be(cloud) => Belonging::Not,
            Owner::Ask(_) => match self.home_of(node) {
                Some(home) if home == cloud.name => Belonging::Owned,
                Some(_) => Belonging::Not,
                None => Belonging::Possible,
            },
            Owner::Cloud(_) | Owner::Nobody { .. } => Belonging::Owned,
        }
    }

    /// Remembers, of every Node that several clouds may own, which one alone shows its machine. Nothing is
    /// concluded before each of them has been listed since the Node joined, nor from the list of a cloud that
    /// shows a machine of another: its token may be that of the other.
    pub(super) fn learn_homes(&self) {
        if self.parts.clouds.len() < 2 {
            return;
        }
        let (mut alone, mut overlapping) = (Vec::new(), BTreeSet::new());
        for node in self.parts.nodes.all() {
            let Owner::Ask(owners) = owner_of(&node.facts, &self.parts.clouds) else {
                continue;
            };
            let lists: Option<Vec<_>> = owners.iter().map(|it| it.inventory.latest()).collect();
            let Some(lists) = lists.filter(|_| node.facts.provider_id.is_some()) else {
                continue;
            };
            let both = owners.iter().zip(&lists);
            let showing = both.filter(|(owner, list)| is_very_machine(owner, list, &node));
            let showing: Vec<_> = showing.map(|(owner, _)| &owner.name).collect();
            match showing.as_slice() {
                [home] if lists.iter().all(|it| self.joined_before(&node, it.began)) => {
                    alone.push((node, (*home).clone()));
                }
                [] | [_] => {}
                several => overlapping.extend(several.iter().map(|name| (*name).clone())),
            }
        }
        alone.retain(|(_, home)| !overlapping.contains(home));
        for (node, home) in alone {
            self.homes.with(&node.facts.uid, |known| {
                known.get_or_insert(home);
            });
        }
    }

    /// Whether another cloud that may own a Node shows its machine.
    pub(super) fn is_shown_by_another(&self, cloud: &Cloud, node: &NodeView) -> bool {
        let Owner::Ask(owners) = owner_of(&node.facts, &self.parts.clouds) else {
            return false;
        };
        let mut others = owners.iter().filter(|owner| owner.name != cloud.name);
        others.any(|other| {
            let list = other.inventory.latest();
            list.is_some_and(|list| other.shows(&list.sweep, &node.facts))
        })
    }

    fn home_of(&self, node: &NodeView) -> Option<String> {
        self.homes
            .with(&node.facts.uid, |home| home.clone())
            .flatten()
    }
}

/// Whether a list confirms the scope of its cloud by the machine of a Node: only one that the cloud owns does.
pub(super) fn confirms(
    belonging: Belonging,
    cloud: &Cloud,
    list: &Snapshot,
    node: &NodeView,
) -> bool {
    let is_own = belonging == Belonging::Owned || Bug::ConfirmAnyCloud.is_planted();
    is_own && is_very_machine(cloud, list, node)
}

/// Whether a list shows the machine of a Node, by ID and by name or system UUID: numeric IDs of two projects
/// may overlap.
fn is_very_machine(cloud: &Cloud, list: &Snapshot, node: &NodeView) -> bool {
    cloud
        .shown(&list.sweep, &node.facts)
        .is_some_and(|instance| {
            let uuids = (&instance.system_uuid, &node.facts.system_uuid);
            let same_uuid = matches!(uuids, (Some(a), Some(b)) if a.eq_ignore_ascii_case(b));
            let is_same = same_uuid || instance.answers_to(&node.facts.name);
            is_same || Bug::ConfirmByIdAlone.is_planted()
        })
}
