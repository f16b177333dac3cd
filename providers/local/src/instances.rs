//! Machines.

use std::collections::BTreeMap;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Instance, InstanceList, InstanceState, Match, NodeAddress, NodeFacts, Priority,
    ProviderId, ScopeFingerprint,
};
use cloudkeel_toolkit::{InstanceSource, Listed, LookupError, Search, by_id_uuid_or_name};

use crate::annotations::PREFIX;
use crate::client::{Api, BATCH, requests};
use crate::id::LocalId;
use crate::wire::{AddressScope, Machine, MachineState};

#[async_trait]
impl InstanceSource for Api {
    type Id = u64;
    type Item = Machine;

    fn scope(&self) -> ScopeFingerprint {
        self.fingerprint(&self.home().project)
    }

    fn parse_id(&self, id: &ProviderId) -> Result<u64, String> {
        LocalId::read_in(&self.home().project, id).map_err(|error| error.to_string())
    }

    fn instance(&self, machine: &Machine) -> Instance {
        instance(&self.home().project, machine.clone())
    }

    fn terminated(&self, machine: &Machine) -> Option<String> {
        (!machine.is_alive()).then(|| "deleted".to_owned())
    }

    async fn list(&self) -> Result<Listed<Machine>, CloudError> {
        let machines = self.list(requests::machines()).await?;
        Ok(Listed {
            scope: self.fingerprint(&machines.project),
            items: machines.value,
        })
    }

    async fn get(&self, id: &u64) -> Result<Machine, LookupError> {
        self.machine(*id).await
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }

    async fn get_many(&self, ids: &[u64]) -> Result<Vec<Machine>, LookupError> {
        self.machines(ids, Priority::Urgent).await
    }

    async fn search(&self, node: &NodeFacts) -> Result<Search<Machine>, CloudError> {
        if let Some(uuid) = &node.system_uuid {
            let uuid = uuid.to_lowercase();
            let mut items = self.machines_with("uuid", &uuid).await?;
            items.retain(Machine::is_alive);
            if !items.is_empty() {
                let looked_for = format!("the system UUID {uuid:?}");
                return Ok(Search { looked_for, items });
            }
        }
        let mut found = BTreeMap::new();
        for key in ["name", "hostname"] {
            let machines = self.machines_with(key, &node.name).await?;
            found.extend(machines.into_iter().map(|machine| (machine.id, machine)));
        }
        Ok(Search::by_name(node, found.into_values().collect()))
    }

    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        by_id_uuid_or_name(node, list)
    }
}

fn instance(project: &str, machine: Machine) -> Instance {
    let id = LocalId::new(project, machine.id).provider_id();
    let own_name = machine.hostname.as_ref().unwrap_or(&machine.name);
    let mut addresses = vec![NodeAddress::hostname(own_name)];
    addresses.extend(machine.addresses.iter().map(|a| match a.scope {
        AddressScope::Private => NodeAddress::internal(a.ip),
        AddressScope::Public => NodeAddress::external(a.ip),
    }));
    let labels = machine.labels.into_iter();
    Instance {
        aliases: machine.hostname.into_iter().collect(),
        system_uuid: Some(machine.uuid),
        state: match machine.state {
            MachineState::Running => InstanceState::Running,
            MachineState::Starting | MachineState::Stopping => InstanceState::Changing,
            MachineState::Off => InstanceState::ShutDown,
            MachineState::Deleted => InstanceState::Unknown,
        },
        instance_type: Some(machine.kind),
        zone: Some(machine.zone),
        region: Some(machine.region),
        addresses,
        labels: labels.filter(|(key, _)| key.starts_with(PREFIX)).collect(),
        ..Instance::new(id, machine.name)
    }
}
