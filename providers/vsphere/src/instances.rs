//! Virtual machines: of one vCenter each, joined to one cloud.

pub(crate) mod address;
mod guest_os;
mod metadata;
pub(crate) mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, ErrorKind, Instance, InstanceList, InstanceState, Match, NodeAddress,
    NodeFacts, Priority, ProviderContext, ProviderId, ScopeFingerprint,
};
use cloudkeel_toolkit::{
    EventRecorder, InstanceSource, JoinedInstances, Listed, LookupError, ProvenInstances, Search,
};

use self::address::AddressRules;
use self::zone::ZoneCategories;
use crate::client::{Api, VmList};
use crate::config::{Config, VCenterConfig};
use crate::id::VmUuid;
use crate::wire::{ObjectRef, Vm, VmDetails};

/// The reason of the event about a Node that several machines could be.
const LOOKUP_FAILED: &str = "InstanceLookupFailed";

/// How many machines are looked up in one call.
const BATCH: usize = 500;

/// What makes a machine a Node, besides the machine.
pub(crate) struct Rules {
    pub(crate) addresses: AddressRules,
    pub(crate) zones: Option<ZoneCategories>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Whether no machine is ever reported as gone.
    pub(crate) keeps_missing: bool,
}

impl Rules {
    fn new(config: &Config, vcenter: &VCenterConfig) -> Self {
        let labels = &config.labels;
        let zones = labels.zone.clone().zip(labels.region.clone());
        Self {
            addresses: AddressRules {
                families: vcenter.families.clone(),
                networks: config.nodes.clone(),
            },
            zones: zones.map(|(zone, region)| ZoneCategories { zone, region }),
            labels: config.node_labels.clone(),
            keeps_missing: config.skip_node_deletion,
        }
    }
}

/// The machines of all vCenters.
pub(crate) fn instances(
    config: &Config,
    vcenters: &[Arc<Api>],
    scope: &ScopeFingerprint,
    context: &ProviderContext,
) -> JoinedInstances {
    let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
    let clock = || Arc::clone(&context.clock);
    let mut joined = JoinedInstances::new(scope.clone(), clock());
    for (vcenter, api) in config.vcenters.iter().zip(vcenters) {
        let machines = Machines {
            api: Arc::clone(api),
            rules: Rules::new(config, vcenter),
            scope: scope.clone(),
            listed: Mutex::default(),
        };
        let name = format!("vCenter {}", vcenter.name());
        joined = joined.with(name, ProvenInstances::new(machines, clock()));
    }
    joined.on_ambiguous(move |node, doubt| events.warn(node, LOOKUP_FAILED, doubt.to_string()))
}

/// The machines of one vCenter.
struct Machines {
    api: Arc<Api>,
    rules: Rules,
    scope: ScopeFingerprint,
    /// The references of the machines that were last listed, for their details.
    listed: Mutex<BTreeMap<VmUuid, ObjectRef>>,
}

impl Machines {
    fn listed(&self) -> MutexGuard<'_, BTreeMap<VmUuid, ObjectRef>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machines of a list that could be Nodes: no templates, and none whose UUID another one has too.
    async fn list_nodes(&self) -> Result<Vec<Vm>, CloudError> {
        let VmList { machines, .. } = self.api.list().await?;
        let machines = without_namesakes(machines);
        let listed = machines.iter().map(|vm| (vm.uuid, vm.reference.clone()));
        *self.listed() = listed.collect();
        Ok(machines)
    }

    /// Machines with everything that their Nodes are given.
    async fn complete(&self, references: &[ObjectRef]) -> Result<Vec<Vm>, CloudError> {
        let mut machines = self.api.details(references).await?;
        if let Some(categories) = &self.rules.zones {
            zone::locate(&self.api, categories, &mut machines).await;
        }
        Ok(machines)
    }

    /// The one machine with this UUID. A template stands in only where there is no other: a Node whose machine was made
    /// one is not gone.
    async fn one(&self, uuid: VmUuid) -> Result<Option<Vm>, CloudError> {
        let references = self.api.find(uuid).await?;
        if references.is_empty() {
            return Ok(None);
        }
        let mut found = self.complete(&references).await?;
        found.retain(|vm| vm.uuid == uuid);
        let (templates, machines): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|vm| vm.is_template);
        let mut found = if machines.is_empty() {
            templates
        } else {
            machines
        };
        match (found.pop(), found.len()) {
            (Some(machine), 0) => Ok(Some(machine)),
            (None, _) => Err(unanswered(format!(
                "a search found {}, but it cannot be read",
                references
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
            (Some(last), _) => {
                let names = found.iter().chain([&last]).map(|vm| vm.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                Err(unanswered(format!(
                    "several virtual machines have the UUID {uuid}: {names}"
                )))
            }
        }
    }

    /// That a search finds no machine is believed only if a list shows none either, and nothing in it could be the
    /// machine.
    async fn absence(&self, uuid: VmUuid) -> CloudError {
        if self.rules.keeps_missing {
            let message = "SKIP_NODE_DELETION is set, so Nodes without a virtual machine are kept";
            return CloudError::unsupported("FindAllByUuid", message);
        }
        let list = match self.api.list().await {
            Ok(list) => list,
            Err(error) => return error,
        };
        if list.machines.iter().any(|vm| vm.uuid == uuid) {
            return unanswered(format!("a list shows {uuid}, a search does not"));
        }
        if !list.unidentified.is_empty() {
            return unanswered(format!(
                "{uuid} could be one of the virtual machines that show no UUID: {}",
                list.unidentified.join(", ")
            ));
        }
        let message = format!("no virtual machine has the UUID {uuid}");
        CloudError::new("FindAllByUuid", ErrorKind::NotFound, message)
    }
}

fn unanswered(message: String) -> CloudError {
    CloudError::new("FindAllByUuid", ErrorKind::Incomplete, message)
}

/// Machines that are no templates and have a UUID of their own.
fn without_namesakes(mut machines: Vec<Vm>) -> Vec<Vm> {
    machines.retain(|vm| !vm.is_template);
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for vm in &machines {
        if !seen.insert(vm.uuid) {
            twice.insert(vm.uuid);
        }
    }
    machines.retain(|vm| !twice.contains(&vm.uuid));
    machines
}

#[async_trait]
impl InstanceSource for Machines {
    type Id = VmUuid;
    type Item = Vm;

    fn scope(&self) -> ScopeFingerprint {
        self.scope.clone()
    }

    fn parse_id(&self, id: &ProviderId) -> Result<VmUuid, String> {
        VmUuid::read(id).map_err(|error| error.to_string())
    }

    fn instance(&self, machine: &Vm) -> Instance {
        self.rules.instance(machine)
    }

    async fn list(&self) -> Result<Listed<Vm>, CloudError> {
        Ok(Listed {
            scope: self.scope.clone(),
            items: self.list_nodes().await?,
        })
    }

    async fn get(&self, id: &VmUuid) -> Result<Vm, LookupError> {
        match self.one(*id).await? {
            Some(machine) => Ok(machine),
            None => Err(self.absence(*id).await.into()),
        }
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }

    async fn get_many(&self, ids: &[VmUuid]) -> Result<Vec<Vm>, LookupError> {
        let ids: BTreeSet<_> = ids.iter().collect();
        let listed = self.list_nodes().await?.into_iter();
        let asked = listed.filter(|vm| ids.contains(&vm.uuid));
        let references: Vec<_> = asked.map(|vm| vm.reference).collect();
        if references.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.complete(&references).await?)
    }

    /// By the UUID that its kubelet reports, in either byte order, else by the name that the guest reports.
    async fn search(&self, node: &NodeFacts) -> Result<Search<Vm>, CloudError> {
        let uuid = node.system_uuid.as_deref().and_then(VmUuid::parse);
        if let Some(uuid) = uuid
            && let Some(machine) = self.one(uuid).await?
        {
            let looked_for = format!("the system UUID {uuid}");
            let items = vec![machine];
            return Ok(Search { looked_for, items });
        }
        let mut machines = self.list_nodes().await?;
        machines.retain(|vm| self.rules.instance(vm).answers_to(&node.name));
        let references: Vec<_> = machines.into_iter().map(|vm| vm.reference).collect();
        let items = match references.as_slice() {
            [] => Vec::new(),
            references => self.complete(references).await?,
        };
        Ok(Search::by_name(node, items))
    }

    async fn describe(
        &self,
        instances: Vec<Instance>,
        _: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let listed = self.listed().clone();
        let uuid_of = |instance: &Instance| VmUuid::read(&instance.id).ok();
        let summaries = instances.iter().filter(|instance| instance.is_summary);
        let references = summaries.filter_map(|it| listed.get(&uuid_of(it)?).cloned());
        let references: Vec<_> = references.collect();
        let described = match references.as_slice() {
            [] => Ok(Vec::new()),
            references => self.complete(references).await,
        };
        let described = described.map(|machines| {
            let by_uuid = machines.into_iter().map(|vm| (vm.uuid, vm));
            by_uuid.collect::<BTreeMap<_, _>>()
        });
        let one = |instance: Instance| match &described {
            _ if !instance.is_summary => Ok(instance),
            Err(error) => Err(error.clone_without_source()),
            Ok(machines) => {
                let found = uuid_of(&instance).and_then(|uuid| machines.get(&uuid));
                found.map(|vm| self.rules.instance(vm)).ok_or_else(|| {
                    let message =
                        format!("virtual machine {} is not shown any more", instance.name);
                    CloudError::new("describe virtual machines", ErrorKind::NotFound, message)
                })
            }
        };
        instances.into_iter().map(one).collect()
    }

    /// IDs and system UUIDs have two byte orders.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let of_uuid = |uuid: VmUuid| {
            let orders = [uuid, uuid.swapped()].map(VmUuid::provider_id);
            let found: BTreeMap<_, _> = orders
                .iter()
                .filter_map(|id| list.get(id))
                .map(|instance| (&instance.id, instance))
                .collect();
            Match::of(found.into_values().collect())
        };
        if let Some(id) = &node.provider_id {
            return VmUuid::read(id).map_or(Match::None, of_uuid);
        }
        let uuid = node.system_uuid.as_deref().and_then(VmUuid::parse);
        match uuid.map_or(Match::None, of_uuid) {
            Match::None => Match::of(list.named(&node.name)),
            found => found,
        }
    }

    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        tracing::debug!(node = node.name, %doubt, "several virtual machines could be a Node's");
    }
}

impl Rules {
    /// A machine as its Node sees it.
    pub(crate) fn instance(&self, machine: &Vm) -> Instance {
        let name = machine.host_name.as_ref().unwrap_or(&machine.name);
        let summary = Instance {
            system_uuid: Some(machine.uuid.to_string()),
            state: match machine.power_state.as_str() {
                "poweredOn" => InstanceState::Running,
                // A suspended machine runs no kubelet either.
                "poweredOff" | "suspended" => InstanceState::ShutDown,
                _ => InstanceState::Unknown,
            },
            is_summary: machine.details.is_none(),
            ..Instance::new(machine.uuid.provider_id(), name)
        };
        let Some(details) = &machine.details else {
            return summary;
        };
        let zone = details.zone.clone();
        let addresses = self.addresses_of(machine, details);
        let not_ready = match (&addresses, &zone) {
            (Err(why), _) | (_, Err(why)) => Some(why.clone()),
            (Ok(_), Ok(_)) => None,
        };
        let zone = zone.unwrap_or_default();
        Instance {
            instance_type: Some(guest_os::instance_type(details)),
            zone: zone.zone,
            region: zone.region,
            addresses: addresses.unwrap_or_default(),
            labels: self.labels.clone(),
            not_ready,
            ..summary
        }
    }

    /// Host name and addresses, or why there are none yet.
    fn addresses_of(&self, machine: &Vm, details: &VmDetails) -> Result<Vec<NodeAddress>, String> {
        let name = &machine.name;
        let Some(host_name) = &machine.host_name else {
            return Err(format!(
                "virtual machine {name} reports no host name: are VMware Tools running in it?"
            ));
        };
        let preferred = metadata::static_addresses(&details.guest_info)
            .map_err(|why| format!("guestinfo.metadata of virtual machine {name}: {why}"))?;
        let ips = self.addresses.choose(&details.nics, &preferred);
        let ips = ips.map_err(|why| format!("virtual machine {name}: {why}"))?;
        let mut addresses = vec![NodeAddress::hostname(host_name)];
        addresses.extend(ips);
        Ok(addresses)
    }
}

#[cfg(test)]
pub(crate) mod tests;
