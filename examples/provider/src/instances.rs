//! Machines.
use crate::*;

/// The number of the machine that a provider ID names.
pub(crate) fn number(id: &ProviderId) -> Option<u64> {
    IdError::number(id, "example", "a machine").ok()
}

#[async_trait]
impl InstanceSource for Account {
    type Id = u64;
    type Item = Machine;
    fn scope(&self) -> ScopeFingerprint {
        self.scope.clone()
    }
    fn parse_id(&self, id: &ProviderId) -> Result<u64, String> {
        number(id).ok_or_else(|| "expected example://<number>".to_owned())
    }
    fn instance(&self, machine: &Machine) -> Instance {
        let id = ProviderId::new("example", &machine.id.to_string());
        let addresses = machine.addresses.iter().map(|address| match address.scope {
            AddressScope::Private => NodeAddress::internal(address.ip),
            AddressScope::Public => NodeAddress::external(address.ip),
        });
        let hostname = NodeAddress::hostname(&machine.name);
        Instance {
            state: match machine.state {
                MachineState::Running => InstanceState::Running,
                MachineState::Off => InstanceState::ShutDown,
                _ => InstanceState::Changing,
            },
            addresses: std::iter::once(hostname).chain(addresses).collect(),
            instance_type: Some(machine.kind.clone()),
            zone: Some(machine.zone.clone()),
            region: Some(machine.region.clone()),
            ..Instance::new(id, &machine.name)
        }
    }
    fn terminated(&self, machine: &Machine) -> Option<String> {
        (machine.state == MachineState::Deleted).then(|| "deleted".to_owned())
    }
    async fn list(&self) -> Result<Listed<Machine>, CloudError> {
        let (scope, items) = (self.scope.clone(), self.api.machines().await?);
        Ok(Listed { scope, items })
    }
    async fn get(&self, id: &u64) -> Result<Machine, LookupError> {
        Ok(self.api.machine(*id).await?)
    }
}
