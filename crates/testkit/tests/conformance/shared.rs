//! Balancers that several Services share, which the local cloud does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cloudkeel_api::{BalancerRef, LoadBalancerSpec, LockKey};

/// The annotation with the ID of the balancer that a Service shares.
pub(crate) const SHARE: &str = "test/share";

/// Who has which balancer.
#[derive(Default)]
pub(crate) struct SharedBalancers(Mutex<BTreeMap<String, Group>>);

/// The Service that a balancer was created for, and those that joined it.
struct Group {
    owner: LoadBalancerSpec,
    joined: BTreeMap<String, LoadBalancerSpec>,
}

impl SharedBalancers {
    fn groups(&self) -> MutexGuard<'_, BTreeMap<String, Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the balancer of a Service has to be, with the ports of all who share it.
    pub(crate) fn merged(&self, spec: &LoadBalancerSpec) -> LoadBalancerSpec {
        let groups = self.groups();
        let uid = &spec.balancer_ref.service.uid;
        if let Some(group) = shared_id(&spec.balancer_ref).and_then(|id| groups.get(id)) {
            let mut merged = group.owner.clone();
            let others = group.joined.iter().filter(|(joined, _)| *joined != uid);
            let others = others.flat_map(|(_, spec)| spec.listeners.clone());
            merged
                .listeners
                .extend(others.chain(spec.listeners.clone()));
            return merged;
        }
        let mut merged = spec.clone();
        let mut own = groups
            .values()
            .filter(|group| group.owner.balancer_ref.service.uid == *uid);
        if let Some(group) = own.next() {
            let joined = group.joined.values();
            merged
                .listeners
                .extend(joined.flat_map(|spec| spec.listeners.clone()));
        }
        merged
    }

    /// The same without the ports of the others.
    pub(crate) fn alone(&self, spec: &LoadBalancerSpec) -> LoadBalancerSpec {
        let groups = self.groups();
        match shared_id(&spec.balancer_ref).and_then(|id| groups.get(id)) {
            Some(group) => LoadBalancerSpec {
                listeners: spec.listeners.clone(),
                ..group.owner.clone()
            },
            None => spec.clone(),
        }
    }

    /// Remembers who has the balancer of this ID.
    pub(crate) fn remember(&self, spec: &LoadBalancerSpec, id: &str) {
        let mut groups = self.groups();
        let uid = spec.balancer_ref.service.uid.clone();
        match shared_id(&spec.balancer_ref) {
            Some(shared) => {
                if let Some(group) = groups.get_mut(shared) {
                    group.joined.insert(uid, spec.clone());
                }
            }
            None => {
                if let Some(group) = groups.get_mut(id) {
                    group.owner = spec.clone();
                } else {
                    let (owner, joined) = (spec.clone(), BTreeMap::new());
                    groups.insert(id.to_owned(), Group { owner, joined });
                }
            }
        }
    }

    /// Takes a Service out that joined another's balancer: that one, as it is to be without it.
    pub(crate) fn leave(&self, balancer_ref: &BalancerRef) -> Option<LoadBalancerSpec> {
        let mut groups = self.groups();
        let group = groups.get_mut(shared_id(balancer_ref)?)?;
        group.joined.remove(&balancer_ref.service.uid);
        let mut left = group.owner.clone();
        let joined = group.joined.values();
        left.listeners
            .extend(joined.flat_map(|spec| spec.listeners.clone()));
        Some(left)
    }

    /// The key of the balancer, shared or not.
    pub(crate) fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        let groups = self.groups();
        let uid = &balancer_ref.service.uid;
        let own = groups
            .iter()
            .find(|(_, group)| group.owner.balancer_ref.service.uid == *uid);
        let id = shared_id(balancer_ref).or_else(|| own.map(|(id, _)| id.as_str()));
        match id {
            Some(id) => [LockKey::new(id)].into(),
            None => [LockKey::of_service(balancer_ref)].into(),
        }
    }
}

fn shared_id(balancer_ref: &BalancerRef) -> Option<&str> {
    balancer_ref.annotations.get(SHARE).map(String::as_str)
}
