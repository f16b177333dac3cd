//! Zones and regions: tags on the machine's host, or on anything above it.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::CloudError;

use crate::client::Api;
use crate::client::tags::AttachedTags;
use crate::wire::{Object, ObjectRef, Vm, VmDetails};

/// The categories of tags that name zones and regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZoneCategories {
    pub(crate) zone: String,
    pub(crate) region: String,
}

/// Where a machine is. Both are known, or zones are not configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Zone {
    pub(crate) zone: Option<String>,
    pub(crate) region: Option<String>,
}

/// Finds out where machines are, in one call for what is above them and one for its tags. That tags cannot be read
/// says nothing about the machines, so it only keeps their Nodes waiting.
pub(crate) async fn locate(api: &Api, categories: &ZoneCategories, machines: &mut [Vm]) {
    let starts = machines.iter().flat_map(starts).collect();
    let inventory = Inventory::read(api, &starts).await;
    for machine in machines {
        let zone = match &inventory {
            Ok(inventory) => inventory.zone_of(machine, categories),
            Err(error) => Err(format!("its zone cannot be found out: {error}")),
        };
        if let Some(details) = &mut machine.details {
            details.zone = zone;
        }
    }
}

/// Where searches for tags begin: at the host, then at the resource pool, then at the machine itself.
fn starts(machine: &Vm) -> impl Iterator<Item = ObjectRef> {
    let details = machine.details.as_ref();
    let host = details.and_then(|details: &VmDetails| details.host.clone());
    let pool = details.and_then(|details| details.pool.clone());
    [host, pool, Some(machine.reference.clone())]
        .into_iter()
        .flatten()
}

/// The part of the inventory that is above some objects.
struct Inventory {
    parents: BTreeMap<String, ObjectRef>,
    tags: AttachedTags,
}

impl Inventory {
    async fn read(api: &Api, starts: &BTreeSet<ObjectRef>) -> Result<Self, CloudError> {
        let objects = api.ancestors(starts).await?;
        let references = objects.iter().map(|object| &object.reference);
        let tags = api.tags.attached(references).await?;
        Ok(Self::new(&objects, tags))
    }

    fn new(objects: &[Object], tags: AttachedTags) -> Self {
        let parent = |object: &Object| {
            let parent = object.reference_at("parent");
            let parent = parent.or_else(|| object.reference_at("parentVApp"))?;
            Some((object.reference.id.clone(), parent))
        };
        Self {
            parents: objects.iter().filter_map(parent).collect(),
            tags,
        }
    }

    /// The first way up that has both tags decides.
    fn zone_of(&self, machine: &Vm, categories: &ZoneCategories) -> Result<Zone, String> {
        for start in starts(machine) {
            let found = self.climb(&start, categories);
            if found.zone.is_some() && found.region.is_some() {
                return Ok(found);
            }
        }
        let ZoneCategories { zone, region } = categories;
        Err(format!(
            "virtual machine {} has no tags of the categories {zone:?} and {region:?}, neither itself nor on its \
             host, resource pool or anything above them",
            machine.name
        ))
    }

    /// The tags on the way up. As in the Go CCM, a higher tag replaces a lower one of its category until both
    /// are found.
    fn climb(&self, start: &ObjectRef, categories: &ZoneCategories) -> Zone {
        let mut found = Zone::default();
        let mut at = Some(start);
        // An inventory is not deeper than it has objects.
        for _ in 0..=self.parents.len() {
            let Some(object) = at else { break };
            for tag in self.tags.get(&object.id).into_iter().flatten() {
                if tag.category == categories.zone {
                    found.zone = Some(tag.name.clone());
                }
                if tag.category == categories.region {
                    found.region = Some(tag.name.clone());
                }
            }
            if found.zone.is_some() && found.region.is_some() {
                break;
            }
            at = self.parents.get(&object.id);
        }
        found
    }
}

#[cfg(test)]
mod tests;
