//! Instances of EC2, and Fargate Nodes.

mod topology;

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    AddressKind, CloudError, Doubt, ErrorKind, Instance, InstanceList, InstanceState, IpFamily,
    Match, NodeAddress, NodeFacts, Priority, ProviderId, ScopeFingerprint,
};
use cloudkeel_toolkit::{EventRecorder, HasId, InstanceSource, Listed, LookupError, Search};

pub(crate) use self::topology::TopologyLabels;
use crate::account::{Account, INSTANCES, find_instance};
use crate::client::Call;
use crate::id::AwsId;
use crate::wire::{Ec2Instance, Interface};

/// As many values as a filter of EC2 takes.
const BATCH: usize = 200;

/// An instance, or the network interface of a Fargate Node.
#[derive(Debug, Clone)]
pub(crate) enum Machine {
    Instance(Ec2Instance),
    Fargate { name: String, interface: Interface },
}

impl HasId for Machine {
    type Id = AwsId;

    fn id(&self) -> AwsId {
        match self {
            Self::Instance(instance) => AwsId::Instance(instance.id.clone()),
            Self::Fargate { name, .. } => AwsId::Fargate(name.clone()),
        }
    }
}

/// The machines of the account.
pub(crate) struct AwsInstances {
    pub(crate) account: Arc<Account>,
    pub(crate) families: Vec<IpFamily>,
    pub(crate) topology: TopologyLabels,
    pub(crate) events: Arc<EventRecorder>,
}

impl AwsInstances {
    async fn fargate(&self, name: &str) -> Result<Machine, CloudError> {
        let call = Call::ec2("DescribeNetworkInterfaces")
            .filter("attachment.status", ["attached"])
            .filter("vpc-id", [&self.account.vpc])
            .filter("private-ip-address", [AwsId::fargate_address(name)]);
        let api = &self.account.api;
        let found = api.all_of_ec2(call, "networkInterfaceSet/item", Priority::Urgent);
        let found: Vec<Interface> = found.await?;
        let name = name.to_owned();
        match <[Interface; 1]>::try_from(found) {
            Ok([interface]) => Ok(Machine::Fargate { name, interface }),
            // An empty answer is as near to "there is none" as this API comes.
            Err(found) if found.is_empty() => Err(CloudError::new(
                "look up network interface",
                ErrorKind::NotFound,
                format!("no attached network interface has the address of {name}"),
            )),
            Err(found) => Err(CloudError::invalid(
                "look up network interface",
                format!(
                    "{} network interfaces have the address of {name}",
                    found.len()
                ),
            )),
        }
    }

    /// Instances that a filter finds, kept for routes and targets.
    async fn filtered(&self, call: Call) -> Result<Vec<Ec2Instance>, CloudError> {
        let found = self
            .account
            .api
            .all_of_ec2(call, INSTANCES, Priority::Urgent);
        let found: Vec<Ec2Instance> = found.await?;
        self.account.inventory.record(&found);
        Ok(found)
    }

    fn of_instance(&self, machine: &Ec2Instance) -> Instance {
        let id = AwsId::Instance(machine.id.clone()).provider_id(&machine.zone);
        let name = machine.private_dns_name.as_deref().unwrap_or(&machine.id);
        let families = self.families.iter();
        Instance {
            aliases: [machine.id.clone()].into(),
            state: match machine.state.as_str() {
                "running" => InstanceState::Running,
                "stopped" => InstanceState::ShutDown,
                "pending" | "stopping" | "shutting-down" => InstanceState::Changing,
                _ => InstanceState::Unknown,
            },
            instance_type: Some(machine.instance_type.clone()),
            zone: Some(machine.zone.clone()),
            region: Some(self.account.region.clone()),
            addresses: families
                .flat_map(|family| addresses(machine, *family))
                .collect(),
            is_summary: true,
            ..Instance::new(id, name)
        }
    }

    fn of_fargate(&self, name: &str, interface: &Interface) -> Instance {
        let zone = interface.zone.clone().unwrap_or_default();
        let id = AwsId::Fargate(name.to_owned()).provider_id(&zone);
        let dns = interface.private_dns_name.clone();
        let internal = interface.private_ips.first();
        let internal = internal.map(|ip| NodeAddress::new(AddressKind::InternalIp, ip));
        let named = dns.map(|dns| NodeAddress::new(AddressKind::InternalDns, dns));
        Instance {
            state: InstanceState::Running,
            zone: interface.zone.clone(),
            region: Some(self.account.region.clone()),
            addresses: internal.into_iter().chain(named).collect(),
            ..Instance::new(id, format!("{}{name}", crate::id::FARGATE))
        }
    }
}

/// The addresses of one family, in the order of the Go CCM.
fn addresses(machine: &Ec2Instance, family: IpFamily) -> Vec<NodeAddress> {
    let in_use = machine.interfaces.iter();
    let in_use = in_use.filter(|nic| nic.status == "in-use");
    let address = |kind, text: &String| NodeAddress::new(kind, text.as_str());
    if family == IpFamily::V6 {
        let first = in_use.filter_map(|nic| nic.ipv6.first());
        return first
            .map(|ip| address(AddressKind::InternalIp, ip))
            .collect();
    }
    let internal = in_use.flat_map(|nic| &nic.private_ips);
    let internal = internal.map(|ip| address(AddressKind::InternalIp, ip));
    let public = machine.public_ip.iter();
    let public = public.map(|ip| address(AddressKind::ExternalIp, ip));
    let named = machine.private_dns_name.iter().flat_map(|name| {
        [AddressKind::InternalDns, AddressKind::Hostname].map(|kind| address(kind, name))
    });
    let outside = machine.public_dns_name.iter();
    let outside = outside.map(|name| address(AddressKind::ExternalDns, name));
    internal.chain(public).chain(named).chain(outside).collect()
}

/// The ID in the name of a Node that is called by it, also if a domain follows.
fn id_in_name(name: &str) -> Option<&str> {
    let host = name.split('.').next().unwrap_or(name);
    host.starts_with("i-").then_some(host)
}

#[async_trait]
impl InstanceSource for AwsInstances {
    type Id = AwsId;
    type Item = Machine;

    fn scope(&self) -> ScopeFingerprint {
        self.account.scope()
    }

    fn parse_id(&self, id: &ProviderId) -> Result<AwsId, String> {
        AwsId::read(id).map_err(|error| error.to_string())
    }

    fn instance(&self, machine: &Machine) -> Instance {
        match machine {
            Machine::Instance(instance) => self.of_instance(instance),
            Machine::Fargate { name, interface } => self.of_fargate(name, interface),
        }
    }

    fn terminated(&self, machine: &Machine) -> Option<String> {
        match machine {
            Machine::Instance(instance) if instance.state == "terminated" => {
                Some(instance.state.clone())
            }
            _ => None,
        }
    }

    async fn list(&self) -> Result<Listed<Machine>, CloudError> {
        let account = &self.account;
        let all = account.inventory.fresh(|| account.list()).await?;
        Ok(Listed {
            scope: account.scope(),
            items: all.iter().cloned().map(Machine::Instance).collect(),
        })
    }

    async fn get(&self, id: &AwsId) -> Result<Machine, LookupError> {
        match id {
            AwsId::Instance(id) => {
                let found = find_instance(&self.account.api, id).await?;
                self.account.inventory.record(std::slice::from_ref(&found));
                Ok(Machine::Instance(found))
            }
            AwsId::Fargate(name) => Ok(self.fargate(name).await?),
        }
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }

    /// By a filter, which leaves out what it does not find. The look-up by ID would refuse all of them for one that
    /// is gone.
    async fn get_many(&self, ids: &[AwsId]) -> Result<Vec<Machine>, LookupError> {
        let (mut instances, mut found) = (Vec::new(), Vec::new());
        for id in ids {
            match id {
                AwsId::Instance(id) => instances.push(id),
                AwsId::Fargate(name) => match self.fargate(name).await {
                    Ok(machine) => found.push(machine),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        if !instances.is_empty() {
            let call = Call::ec2("DescribeInstances").filter("instance-id", instances);
            found.extend(
                self.filtered(call)
                    .await?
                    .into_iter()
                    .map(Machine::Instance),
            );
        }
        Ok(found)
    }

    /// By the private DNS name, or by the ID if the Node is called by it. Only the cluster's own count.
    async fn search(&self, node: &NodeFacts) -> Result<Search<Machine>, CloudError> {
        const STATES: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];
        let call = Call::ec2("DescribeInstances");
        let call = match id_in_name(&node.name) {
            Some(id) => call.filter("instance-id", [id]),
            None => call.filter("private-dns-name", [&node.name]),
        };
        let mut found = self
            .filtered(call.filter("instance-state-name", STATES))
            .await?;
        found.retain(|instance| self.account.cluster.is_tagged(&instance.tags));
        let items = found.into_iter().map(Machine::Instance).collect();
        Ok(Search::by_name(node, items))
    }

    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        self.topology
            .describe(&self.account, instances, priority)
            .await
    }

    /// An ID may be spelled in several ways, and a Node be called by it.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let id = match &node.provider_id {
            Some(id) => AwsId::read_instance(id),
            None => id_in_name(&node.name).map(str::to_owned),
        };
        match id {
            Some(id) => Match::of(list.named(&id)),
            None if node.provider_id.is_some() => Match::None,
            None => Match::of(list.named(&node.name)),
        }
    }

    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        self.events.ambiguous(node, doubt);
    }
}

#[cfg(test)]
mod tests;
