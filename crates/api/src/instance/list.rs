//! All instances of a scope at one time.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use jiff::Timestamp;

use super::Instance;
use crate::{CloudError, KnownInstance, ProviderId, ScopeFingerprint};

/// A part of the scope that a list could not see, such as one of several vCenters.
#[derive(Debug)]
pub struct BlindSpot {
    /// Which part, in words: an endpoint, a zone, a datacenter.
    pub part: String,
    /// Why.
    pub error: CloudError,
}

/// All instances that a credential can see, at one time.
///
/// Absence from a list is a suspicion, never a proof.
#[derive(Debug)]
pub struct InstanceList {
    scope: ScopeFingerprint,
    taken: Timestamp,
    instances: BTreeMap<ProviderId, Instance>,
    blind_spots: Vec<BlindSpot>,
    /// Built on demand: only Nodes without an ID are looked up by name.
    index: OnceLock<Index>,
}

/// Instances by what a Node without an ID reports about itself.
#[derive(Debug, Default)]
struct Index {
    names: HashMap<String, Vec<ProviderId>>,
    uuids: HashMap<String, Vec<ProviderId>>,
}

impl InstanceList {
    /// A list of every page of every part of the scope. If a page is missing, the provider returns
    /// [`ErrorKind::Incomplete`](crate::ErrorKind::Incomplete) instead.
    pub fn complete(
        scope: ScopeFingerprint,
        taken: Timestamp,
        instances: impl IntoIterator<Item = Instance>,
    ) -> Self {
        Self {
            scope,
            taken,
            instances: instances
                .into_iter()
                .map(|instance| (instance.id.clone(), instance))
                .collect(),
            blind_spots: Vec::new(),
            index: OnceLock::new(),
        }
    }

    /// Marks parts that could not be seen. The rest is valid; what was not seen is unknown.
    #[must_use]
    pub fn with_blind_spots(mut self, blind_spots: Vec<BlindSpot>) -> Self {
        self.blind_spots.extend(blind_spots);
        self
    }

    /// The scope of the list.
    pub const fn scope(&self) -> &ScopeFingerprint {
        &self.scope
    }

    /// When the list started.
    pub const fn taken(&self) -> Timestamp {
        self.taken
    }

    /// Whether every part of the scope was seen.
    pub fn is_complete(&self) -> bool {
        self.blind_spots.is_empty()
    }

    /// The parts that could not be seen.
    pub fn blind_spots(&self) -> &[BlindSpot] {
        &self.blind_spots
    }

    /// All instances, ordered by ID.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = &Instance> {
        self.instances.values()
    }

    /// The instance of this ID.
    pub fn get(&self, id: &ProviderId) -> Option<&Instance> {
        self.instances.get(id)
    }

    /// The instances that a Node of this name could be.
    pub fn named(&self, node_name: &str) -> Vec<&Instance> {
        self.all(self.index().names.get(node_name))
    }

    /// The instances with this hardware UUID, however it is spelled.
    pub fn with_system_uuid(&self, uuid: &str) -> Vec<&Instance> {
        self.all(self.index().uuids.get(&uuid.to_ascii_lowercase()))
    }

    fn all(&self, ids: Option<&Vec<ProviderId>>) -> Vec<&Instance> {
        let ids = ids.into_iter().flatten();
        ids.filter_map(|id| self.get(id)).collect()
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.instances()))
    }

    /// An instance other than this one. Prefers one for which `known` holds, so that the cluster's own instances
    /// confirm the scope.
    pub fn known_instance_besides(
        &self,
        machine: &ProviderId,
        known: impl Fn(&ProviderId) -> bool,
    ) -> Option<KnownInstance> {
        let others = || self.instances().filter(|instance| &instance.id != machine);
        others()
            .find(|instance| known(&instance.id))
            .or_else(|| others().next())
            .map(|instance| KnownInstance::of(instance, &self.scope, self.taken))
    }
}

impl Index {
    fn of<'a>(instances: impl Iterator<Item = &'a Instance>) -> Self {
        let mut index = Self::default();
        for instance in instances {
            let aliases = instance.aliases.iter();
            let aliases = aliases.filter(|alias| **alias != instance.name);
            for name in aliases.chain([&instance.name]) {
                let namesakes = index.names.entry(name.clone()).or_default();
                namesakes.push(instance.id.clone());
            }
            if let Some(uuid) = &instance.system_uuid {
                let same = index.uuids.entry(uuid.to_ascii_lowercase()).or_default();
                same.push(instance.id.clone());
            }
        }
        index
    }
}
