//! Which targets a balancer gets, and in which order they change. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use cloudkeel_api::{
    AddressKind, ErrorKind, Failures, IpFamily, LoadBalancerSpec, NodeAddress, NodeFacts,
    ProviderId, Target, TargetState,
};

/// The label of a Node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// How many Nodes are named that a balancer cannot take.
const NAMED: usize = 10;

/// A Node as a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredTarget {
    /// The Node's name.
    pub node: String,
    /// Its zone, by its label: where not all Nodes fit, they are chosen from all zones.
    pub zone: Option<String>,
    /// Whether it gets new connections.
    pub state: TargetState,
}

/// The targets that a balancer should have, in the cloud's own terms: `T` is an ID, an address, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredTargets<T> {
    /// Those that can be reached.
    pub places: BTreeMap<T, DesiredTarget>,
    /// Nodes that cannot be reached yet, and why.
    pub unresolved: BTreeMap<String, String>,
    /// Whether targets that drain stay although they are not among these.
    pub keeps_draining: bool,
}

impl<T> Default for DesiredTargets<T> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            unresolved: BTreeMap::new(),
            keeps_draining: false,
        }
    }
}

/// How many targets a balancer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// As it is.
    pub now: usize,
    /// Once it has the type that it should have.
    pub planned: usize,
    /// Whether the cloud said that it takes no more, whatever the type says.
    pub is_full: bool,
}

impl Capacity {
    /// As many as are wanted.
    pub const UNLIMITED: Self = Self::of(usize::MAX);

    /// This many.
    pub const fn of(limit: usize) -> Self {
        Self {
            now: limit,
            planned: limit,
            is_full: false,
        }
    }
}

/// One change of a balancer's targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetChange<T> {
    /// It is missing, or drains although it should serve.
    Add {
        /// Which.
        target: T,
        /// Whether the balancer takes it only once it has its planned type.
        needs_capacity: bool,
    },
    /// It should get no new connections.
    Drain(T),
    /// It is not wanted.
    Remove {
        /// Which.
        target: T,
        /// Whether none of the present targets is wanted: then a new one has to be added first.
        is_last: bool,
    },
}

/// What differs between the desired targets and those that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetDiff<T> {
    /// In the order in which it is done: what fits is added before anything is removed, and the rest takes the
    /// freed places one by one.
    pub changes: Vec<TargetChange<T>>,
    /// Nodes that the balancer cannot take.
    pub left_out: Vec<String>,
}

/// Targets that one call adds or removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetBatch<T> {
    /// They are missing.
    Add(Vec<T>),
    /// They are not wanted.
    Remove(Vec<T>),
}

impl<T: Clone> TargetDiff<T> {
    /// The changes in calls of at most this many targets: what fits, what goes, and what takes its places. Of a cloud that
    /// drains what it removes.
    pub fn batches(&self, most: usize) -> Vec<TargetBatch<T>> {
        let (mut first, mut removed, mut then) = (Vec::new(), Vec::new(), Vec::new());
        for change in &self.changes {
            let (list, target) = match change {
                TargetChange::Add { target, .. } if removed.is_empty() => (&mut first, target),
                TargetChange::Add { target, .. } => (&mut then, target),
                TargetChange::Remove { target, .. } => (&mut removed, target),
                TargetChange::Drain(_) => continue,
            };
            list.push(target.clone());
        }
        let add = |chunk: &[T]| TargetBatch::Add(chunk.to_vec());
        let remove = |chunk: &[T]| TargetBatch::Remove(chunk.to_vec());
        let first = first.chunks(most).map(add);
        let removed = removed.chunks(most).map(remove);
        first
            .chain(removed)
            .chain(then.chunks(most).map(add))
            .collect()
    }
}

impl<T> TargetDiff<T> {
    /// What a balancer with this limit cannot meet, for [`Report::unmet`](cloudkeel_api::Report::unmet).
    pub fn over_limit(&self, limit: usize) -> Option<Failures> {
        let count = self.left_out.len();
        let first = self.left_out.get(..NAMED).unwrap_or(&self.left_out);
        (count > 0).then(|| Failures {
            kind: ErrorKind::LimitExceeded,
            message: format!(
                "the load balancer accepts at most {limit} targets: {count} Nodes get no traffic from it"
            ),
            details: Some(format!("the first of them: {}", first.join(", "))),
        })
    }
}

/// The instance of a Node that is a target by its ID, or why there is none.
pub fn instance_of<T, E: fmt::Display>(
    target: &Target,
    read: impl FnOnce(&ProviderId) -> Result<T, E>,
) -> Result<T, String> {
    let id = target.node.provider_id.as_ref();
    let id = id.ok_or("it has no provider ID yet")?;
    read(id).map_err(|error| error.to_string())
}

impl<T: Ord + Clone> DesiredTargets<T> {
    /// Resolves the Nodes of a spec. A failure says why the Node cannot be a target yet.
    pub fn resolve(
        spec: &LoadBalancerSpec,
        mut resolve: impl FnMut(&Target) -> Result<T, String>,
    ) -> Self {
        let mut targets = Self {
            keeps_draining: spec.options.keeps_draining,
            ..Self::default()
        };
        for (node, target) in &*spec.targets {
            match resolve(target) {
                Ok(place) => {
                    let desired = DesiredTarget {
                        node: node.clone(),
                        zone: target.node.labels.get(ZONE).cloned(),
                        state: target.state,
                    };
                    targets.places.insert(place, desired);
                }
                Err(why) => {
                    targets.unresolved.insert(node.clone(), why);
                }
            }
        }
        targets
    }

    /// Leaves a place out that there is not, and says why of its Node.
    pub fn leave_out(&mut self, place: &T, why: impl Into<String>) {
        if let Some(target) = self.places.remove(place) {
            self.unresolved.insert(target.node, why.into());
        }
    }

    /// The places in the order in which they are given to Nodes: by name, so that the choice is the same
    /// every time.
    pub fn by_node(&self) -> Vec<(&T, &DesiredTarget)> {
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_by(|(one, a), (other, b)| (&a.node, one).cmp(&(&b.node, other)));
        places
    }

    /// What differs from `present`. Targets for which `keeps` holds stay as they are, also if they are not wanted; `others`
    /// are present targets of another kind, which take places too.
    ///
    /// At the limit, what is a target stays one. While a wanted Node cannot be resolved it may well be one of
    /// the present targets, so nothing is taken away that would leave none to serve.
    pub fn diff(
        &self,
        present: &BTreeMap<T, TargetState>,
        others: usize,
        capacity: Capacity,
        keeps: impl Fn(&T) -> bool,
    ) -> TargetDiff<T> {
        let drains = |target: &T| present.get(target) == Some(&TargetState::Draining);
        let stays = |target: &T| keeps(target) || (self.keeps_draining && drains(target));
        let is_extra = |target: &&T| !self.places.contains_key(target) && !stays(target);
        let mut remove: Vec<_> = present.keys().filter(is_extra).cloned().collect();
        let draining = self.draining(present).filter(|target| !keeps(target));
        let mut drain: Vec<_> = draining.cloned().collect();
        let is_last = !present.is_empty() && remove.len() == present.len();
        let serves = |target: &DesiredTarget| target.state == TargetState::Serving;
        if !self.places.values().any(serves) && !self.unresolved.is_empty() {
            remove.clear();
            drain.clear();
        }
        let missing = self.missing(present);
        let is_over = present.len() + others + missing.len() > capacity.planned;
        let new = if is_over || capacity.is_full {
            self.spread(missing, present)
        } else {
            missing
        };
        let mut plan = Fill {
            changes: self.returning(present, &keeps),
            new: new.into_iter(),
            count: present.len() + others,
            capacity,
        };
        let free = plan.free();
        plan.take(if capacity.is_full { 0 } else { free });
        plan.changes
            .extend(drain.into_iter().map(TargetChange::Drain));
        for target in remove {
            plan.changes.push(TargetChange::Remove { target, is_last });
            plan.count = plan.count.saturating_sub(1);
            let free = plan.free();
            plan.take(if capacity.is_full { free.min(1) } else { free });
        }
        let mut left_out: Vec<_> = plan.new.map(|(_, node)| node).collect();
        left_out.sort_unstable();
        TargetDiff {
            left_out,
            changes: plan.changes,
        }
    }

    /// The missing ones in an order that fills the zones evenly, counting those that are there and stay.
    fn spread(
        &self,
        missing: Vec<(T, String)>,
        present: &BTreeMap<T, TargetState>,
    ) -> Vec<(T, String)> {
        let zone_of = |place: &T| self.places.get(place).and_then(|it| it.zone.as_deref());
        let mut taken = BTreeMap::<Option<&str>, usize>::new();
        for place in present.keys().filter(|it| self.places.contains_key(it)) {
            *taken.entry(zone_of(place)).or_default() += 1;
        }
        let mut ranked: Vec<_> = missing
            .into_iter()
            .map(|(place, node)| {
                let count = taken.entry(zone_of(&place)).or_default();
                *count += 1;
                (*count, node, place)
            })
            .collect();
        ranked.sort();
        let ranked = ranked.into_iter();
        ranked.map(|(_, node, place)| (place, node)).collect()
    }

    fn draining<'a>(
        &'a self,
        present: &'a BTreeMap<T, TargetState>,
    ) -> impl Iterator<Item = &'a T> {
        let leaving = self.places.iter();
        let leaving = leaving.filter(|(_, target)| target.state == TargetState::Draining);
        let leaving = leaving.map(|(place, _)| place);
        leaving.filter(|place| present.get(*place) == Some(&TargetState::Serving))
    }

    /// Those that drain and should serve again; they have their places already.
    fn returning(
        &self,
        present: &BTreeMap<T, TargetState>,
        keeps: impl Fn(&T) -> bool,
    ) -> Vec<TargetChange<T>> {
        let serving = self.places.iter();
        let serving = serving.filter(|(_, target)| target.state == TargetState::Serving);
        let serving = serving.map(|(place, _)| place);
        let drained = serving
            .filter(|place| present.get(*place) == Some(&TargetState::Draining) && !keeps(place));
        let add = |target: &T| TargetChange::Add {
            target: target.clone(),
            needs_capacity: false,
        };
        drained.map(add).collect()
    }

    /// Those that are missing, with their Nodes. A Node that is leaving is not worth joining.
    fn missing(&self, present: &BTreeMap<T, TargetState>) -> Vec<(T, String)> {
        let missing = self.by_node().into_iter().filter(|(place, target)| {
            target.state == TargetState::Serving && !present.contains_key(*place)
        });
        missing
            .map(|(place, target)| (place.clone(), target.node.clone()))
            .collect()
    }
}

struct Fill<T> {
    changes: Vec<TargetChange<T>>,
    new: std::vec::IntoIter<(T, String)>,
    count: usize,
    capacity: Capacity,
}

impl<T> Fill<T> {
    const fn free(&self) -> usize {
        self.capacity.planned.saturating_sub(self.count)
    }

    fn take(&mut self, places: usize) {
        for (target, _) in self.new.by_ref().take(places) {
            let needs_capacity = self.count >= self.capacity.now;
            self.changes.push(TargetChange::Add {
                target,
                needs_capacity,
            });
            self.count += 1;
        }
    }
}

/// The first internal address of a Node.
pub fn internal_ip(node: &NodeFacts) -> Option<IpAddr> {
    let internal = node.addresses.iter();
    let mut internal = internal.filter(|address| address.kind == AddressKind::InternalIp);
    internal.find_map(NodeAddress::ip)
}

/// The address by which a Node is reached: the first of these families, an internal one before an external one.
pub fn address_of(node: &NodeFacts, families: &[IpFamily]) -> Option<IpAddr> {
    let families = families.iter().copied().chain([IpFamily::V4, IpFamily::V6]);
    let kinds = [AddressKind::InternalIp, AddressKind::ExternalIp];
    families
        .flat_map(|family| kinds.map(|kind| (kind, family)))
        .find_map(|(kind, family)| node.ip(kind, family))
}

#[cfg(test)]
mod tests;
