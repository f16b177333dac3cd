//! Machines: cloud servers, and dedicated servers where there are some.

mod address;
mod dedicated;

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{
    Instance, InstanceList, InstanceState, Match, NodeFacts, ProviderContext, ProviderId,
    ScopeFingerprint,
};
use cloudkeel_toolkit::{
    EventRecorder, IdError, JoinedInstances, ListedResources, ProvenInstances, RestInstance,
    RestInstances,
};

use self::dedicated::DedicatedServers;
use crate::client::{Api, Login};
use crate::config::{AddressFamily, Config};
use crate::id::HetznerId;
use crate::wire::Server;

/// The label that says by whom a machine is provided.
pub const PROVIDED_BY: &str = "instance.hetzner.cloud/provided-by";

/// The cloud servers as they were last listed, for instances, routes and targets.
pub(crate) type Servers = ListedResources<Api, Server>;

/// What makes a machine a Node, besides the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) family: AddressFamily,
    pub(crate) zone_label: bool,
    /// The private network.
    pub(crate) network: Option<u64>,
    pub(crate) forward_internal_ips: bool,
    pub(crate) delete_renamed: bool,
}

impl Rules {
    pub(crate) fn new(config: &Config, network: Option<u64>) -> Self {
        Self {
            family: config.address_family,
            zone_label: config.zone_label,
            network,
            forward_internal_ips: config.robot.enabled && config.robot.forward_internal_ips,
            delete_renamed: config.robot.delete_renamed,
        }
    }
}

/// The machines of a project, and of a Robot account if there is one.
pub(crate) fn instances(
    rules: Rules,
    servers: &Arc<Servers>,
    robot: Login,
    scope: &ScopeFingerprint,
    context: &ProviderContext,
    events: &Arc<EventRecorder>,
) -> JoinedInstances {
    let clock = || Arc::clone(&context.clock);
    let cloud = RestInstances {
        resources: Arc::clone(servers),
        rules,
        scope: scope.clone(),
        events: Arc::clone(events),
    };
    let cloud = ProvenInstances::new(cloud, clock());
    let Login::Known(robot) = robot else {
        return JoinedInstances::new(scope.clone(), clock()).with_own("Cloud", cloud, |_| true);
    };
    let dedicated = DedicatedServers {
        robot,
        rules,
        scope: scope.clone(),
        events: Arc::clone(events),
    };
    let dedicated = ProvenInstances::new(dedicated, clock());
    let events = Arc::clone(events);
    JoinedInstances::new(scope.clone(), clock())
        .with_own("Cloud", cloud, |id| HetznerId::read_robot(id).is_none())
        .with_own("Robot", dedicated, |id| HetznerId::read_robot(id).is_some())
        .on_ambiguous(move |node, doubt| events.ambiguous(node, doubt))
}

impl RestInstance for Rules {
    type Id = u64;
    type Item = Server;

    fn parse_id(&self, id: &ProviderId) -> Result<u64, IdError> {
        match HetznerId::read(id)? {
            HetznerId::Cloud(id) => Ok(id),
            HetznerId::Robot(_) => Err(IdError::OtherAccount(
                "it is a dedicated server, and there is no login to Robot".to_owned(),
            )),
        }
    }

    fn instance(&self, server: &Server) -> Instance {
        self.cloud(server)
    }

    /// An ID may be spelled in several ways.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let Some(text) = &node.provider_id else {
            return Match::of(list.named(&node.name));
        };
        let id = HetznerId::read(text).ok();
        let found = id.and_then(|id| list.get(&id.provider_id()));
        found.map_or(Match::None, Match::One)
    }
}

impl Rules {
    /// A cloud server as a machine.
    pub(crate) fn cloud(&self, server: &Server) -> Instance {
        let location = server.location.as_ref().map(|location| &location.name);
        Instance {
            state: match server.status.as_str() {
                "running" => InstanceState::Running,
                "off" => InstanceState::ShutDown,
                "initializing" | "starting" | "stopping" | "deleting" | "migrating"
                | "rebuilding" => InstanceState::Changing,
                _ => InstanceState::Unknown,
            },
            instance_type: Some(server.server_type.name.clone()),
            zone: location
                .filter(|_| self.zone_label)
                .map(|location| zone_of(location).to_owned()),
            region: location.cloned(),
            addresses: address::of_cloud(server, self.family, self.network),
            labels: provided_by("cloud"),
            ..Instance::new(HetznerId::Cloud(server.id).provider_id(), &server.name)
        }
    }
}

fn provided_by(whom: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(PROVIDED_BY.to_owned(), whom.to_owned())])
}

/// The data centre that a location had when Nodes got their first labels. Labels stay as they were.
fn zone_of(location: &str) -> &str {
    match location {
        "nbg1" => "nbg1-dc3",
        "hel1" => "hel1-dc2",
        "fsn1" => "fsn1-dc14",
        "ash" => "ash-dc1",
        "hil" => "hil-dc1",
        "sin" => "sin-dc1",
        other => other,
    }
}

#[cfg(test)]
mod tests;
