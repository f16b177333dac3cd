//! Labels that say where an instance is: the ID of its zone, and the layers of the network above it.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Instance, Priority};
use cloudkeel_toolkit::RecentMap;
use regex::Regex;

use crate::account::Account;
use crate::client::Call;
use crate::id::AwsId;
use crate::wire::Topology;

const ZONE_ID: &str = "topology.k8s.aws/zone-id";
const LAYER: &str = "topology.k8s.aws/network-node-layer-";

/// As many IDs as one call takes.
const BATCH: usize = 100;

/// How long a place in the network, or that there is none to show, is remembered.
const REMEMBERED: Duration = Duration::from_hours(24);

/// What a type or the region is remembered by, beside instances.
const REGION: &str = "";

/// The places of instances in the network.
pub(crate) struct TopologyLabels {
    /// Types whose Nodes wait for their labels.
    mandatory: Option<Regex>,
    /// By instance, by type, or of the whole region: its layers, which may be none.
    known: RecentMap<String, Vec<String>>,
}

impl TopologyLabels {
    pub(crate) fn new(pattern: &str) -> Self {
        Self {
            mandatory: Regex::new(pattern).ok(),
            known: RecentMap::new(REMEMBERED),
        }
    }

    fn is_mandatory(&self, instance: &Instance) -> bool {
        let of_type = instance.instance_type.as_deref().unwrap_or_default();
        let pattern = self.mandatory.as_ref();
        pattern.is_some_and(|pattern| pattern.is_match(of_type))
    }

    /// Adds the labels to each instance, in as few calls as possible.
    pub(crate) async fn describe(
        &self,
        account: &Account,
        mut instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let failure = self.read_missing(account, &instances, priority).await.err();
        let mut described = Vec::with_capacity(instances.len());
        for mut instance in instances.drain(..) {
            described.push(match (self.place_of(&instance), &failure) {
                (None, Some(error)) if self.is_mandatory(&instance) => {
                    Err(error.clone_without_source())
                }
                (layers, _) => {
                    let layers = layers.into_iter().flatten().zip(1..);
                    let layers = layers.map(|(node, layer)| (format!("{LAYER}{layer}"), node));
                    instance.labels.extend(layers);
                    instance.is_summary = false;
                    with_zone_id(account, instance).await
                }
            });
        }
        described
    }

    /// Asks for the places of instances that are not known, all at once.
    async fn read_missing(
        &self,
        account: &Account,
        instances: &[Instance],
        priority: Priority,
    ) -> Result<(), CloudError> {
        let missing: Vec<_> = instances
            .iter()
            .filter(|instance| self.place_of(instance).is_none())
            .filter_map(|instance| Some((AwsId::read_instance(&instance.id)?, instance)))
            .collect();
        for batch in missing.chunks(BATCH) {
            let ids = batch.iter().map(|(id, _)| id);
            let call = Call::ec2("DescribeInstanceTopology").list("InstanceId", ids);
            let found = account
                .api
                .all::<Topology>(&call, "instanceSet/item", priority);
            match found.await {
                Ok(found) => self.record(batch, found),
                Err(error) if is_refused(&error) => {
                    self.remember(REGION, Vec::new());
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A type of which nothing is shown has no place; one that has to have it is asked about again by each instance.
    fn record(&self, asked: &[(String, &Instance)], found: Vec<Topology>) {
        let mut found: BTreeMap<_, _> = found.into_iter().map(|t| (t.instance, t.nodes)).collect();
        for (id, instance) in asked {
            match found.remove(id) {
                Some(nodes) => self.remember(id, nodes),
                None if self.is_mandatory(instance) => self.remember(id, Vec::new()),
                None => {
                    let of_type = instance.instance_type.as_deref().unwrap_or_default();
                    self.remember(of_type, Vec::new());
                }
            }
        }
    }

    fn remember(&self, key: &str, layers: Vec<String>) {
        self.known.insert(key.to_owned(), layers);
    }

    /// The layers above an instance, if they are known or known not to exist.
    fn place_of(&self, instance: &Instance) -> Option<Vec<String>> {
        let id = AwsId::read_instance(&instance.id);
        let of_type = instance.instance_type.clone().unwrap_or_default();
        let keys = [id.unwrap_or_default(), of_type, REGION.to_owned()];
        self.known.first_of(&keys)
    }
}

/// The region does not have it, or it may not be asked for: only labels are missing.
fn is_refused(error: &CloudError) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Denied)
}

async fn with_zone_id(account: &Account, mut instance: Instance) -> Result<Instance, CloudError> {
    let Some(name) = instance.zone.clone() else {
        return Ok(instance);
    };
    let zones = account.zones(Some(&name)).await?;
    let zone = zones.iter().find(|zone| zone.name == name).ok_or_else(|| {
        let message = format!("zone {name:?} is not among those of {}", account.region);
        CloudError::new("describe zone", ErrorKind::Incomplete, message)
    })?;
    if let Some(id) = &zone.id {
        instance.labels.insert(ZONE_ID.to_owned(), id.clone());
    }
    Ok(instance)
}
