//! Machines.
use crate::*;

/// The number of the machine that a provider ID names.
pub(crate) fn number(id: &ProviderId) -> Option<u64> {
    id.as_str().strip_prefix("example://")?.parse().ok()
}

fn instance(machine: Machine) -> Instance {
    let id = ProviderId::new("example", &machine.id.to_string());
    let addresses = machine.addresses.iter();
    Instance {
        state: match machine.state {
            MachineState::Running => InstanceState::Running,
            MachineState::Off => InstanceState::ShutDown,
            _ => InstanceState::Changing,
        },
        zone: Some(machine.zone),
        addresses: addresses.map(|a| NodeAddress::internal(a.ip)).collect(),
        ..Instance::new(id, machine.name)
    }
}

#[async_trait]
impl Instances for Account {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        let taken = self.clock.now();
        let machines = self.api.machines().await?.into_iter().map(instance);
        Ok(Sweep::complete(self.scope.clone(), taken, machines))
    }
    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        let Some(id) = node.provider_id.clone() else {
            return match self.sweep().await {
                Ok(sweep) => self.identify(node, &sweep).into_existence(&node.name),
                Err(error) => Existence::Unknown(Doubt::NoAnswer(error)),
            };
        };
        let Some(machine) = number(&id) else {
            let why = "expected example://<number>".to_owned();
            return Existence::Unknown(Doubt::NotOurs { id, why });
        };
        let error = match self.api.machine(machine).await {
            Ok(machine) => return Existence::present(instance(machine)),
            Err(error) => error,
        };
        // A credential of another account finds neither this machine nor the one that vouches for it.
        if let Some(witness) = sighting.and_then(|seen| number(seen.machine()))
            && let Err(error) = self.api.machine(witness).await
        {
            return Existence::Unknown(Doubt::NoAnswer(error));
        }
        Existence::weigh_error(id, error, &self.scope, sighting, self.clock.now())
    }
}
