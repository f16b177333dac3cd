//! Dedicated servers.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, ErrorKind, Instance, InstanceList, InstanceState, Match, NodeAddress, NodeFacts,
    ProviderId, ScopeFingerprint,
};
use cloudkeel_toolkit::{EventRecorder, InstanceSource, Listed, LookupError, Search};

use super::{Rules, address, provided_by};
use crate::client::Robot;
use crate::id::HetznerId;
use crate::wire::RobotServer;

/// The reason of the event about a Node whose server has got another name.
const POSSIBLE_DELETION: &str = "PossibleNodeDeletion";

/// The reason of the event about addresses that a Node does not get.
const MISCONFIGURED_INTERNAL_IP: &str = "MisconfiguredInternalIP";

/// The dedicated servers of a Robot account. Robot allows few requests, so its list serves for a while.
pub(super) struct DedicatedServers {
    pub(super) robot: Arc<Robot>,
    pub(super) rules: Rules,
    pub(super) scope: ScopeFingerprint,
    pub(super) events: Arc<EventRecorder>,
}

#[async_trait]
impl InstanceSource for DedicatedServers {
    type Id = u64;
    type Item = RobotServer;

    fn scope(&self) -> ScopeFingerprint {
        self.scope.clone()
    }

    fn parse_id(&self, id: &ProviderId) -> Result<u64, String> {
        HetznerId::read_robot(id).ok_or_else(|| "it is no dedicated server".to_owned())
    }

    fn instance(&self, server: &RobotServer) -> Instance {
        self.rules.robot(server)
    }

    async fn list(&self) -> Result<Listed<RobotServer>, CloudError> {
        Ok(Listed {
            scope: self.scope.clone(),
            items: self.robot.servers().await?.to_vec(),
        })
    }

    async fn get(&self, number: &u64) -> Result<RobotServer, LookupError> {
        Ok(self.robot.server(*number).await?)
    }

    /// A server that has another name than the Node is not the Node's any more.
    async fn get_for(&self, node: &NodeFacts, number: &u64) -> Result<RobotServer, LookupError> {
        // Robot allows few requests: a list of a moment ago will do if it shows the server as it was.
        let listed = self.robot.servers().await.unwrap_or_default();
        let mut listed = listed.iter();
        let mut server = match listed.find(|s| s.number == *number && s.name == node.name) {
            Some(server) => server.clone(),
            None => self.robot.server(*number).await?,
        };
        if server.name != node.name {
            return Err(self.renamed(node, &server).into());
        }
        server.state = match self.robot.operating_status(*number).await.as_deref() {
            Some("shut off") => InstanceState::ShutDown,
            Some("running" | "not supported") => InstanceState::Running,
            _ => InstanceState::Unknown,
        };
        Ok(server)
    }

    /// The list shows neither who has got another name since nor whether a server runs.
    fn list_from(&self) -> usize {
        usize::MAX
    }

    /// The last list only says which servers to ask for: a Node that is new may have a server that has got the
    /// name since.
    async fn search(&self, node: &NodeFacts) -> Result<Search<RobotServer>, CloudError> {
        let servers = named(&self.robot, &node.name).await?;
        Ok(Search::by_name(node, servers))
    }

    /// The list may be old: a name may be another server's by now, so it has to be looked up.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let own = |instance: &&Instance| HetznerId::read_robot(&instance.id).is_some();
        let Some(text) = &node.provider_id else {
            let named = list.named(&node.name);
            return match named.len() {
                0 | 1 => Match::None,
                _ => Match::of(named.into_iter().filter(own).collect()),
            };
        };
        let id = HetznerId::read(text).ok();
        let found = id.and_then(|id| list.get(&id.provider_id()));
        // A server that has got another name may be another Node by now.
        let found = found.filter(|instance| instance.name == node.name);
        found.map_or(Match::None, Match::One)
    }

    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        let mut addresses = instance.addresses.clone();
        if !self.rules.forward_internal_ips {
            return addresses;
        }
        let forwarded = address::forwarded(&addresses, node, self.rules.family);
        if !forwarded.refused.is_empty() {
            let message = format!(
                "these private addresses of the kubelet are left out: {}",
                forwarded.refused.join("; ")
            );
            self.events.warn(node, MISCONFIGURED_INTERNAL_IP, message);
        }
        addresses.extend(forwarded.kept);
        addresses
    }
}

impl DedicatedServers {
    /// The server is there under another name: it may have become another Node, or was only renamed. Whether
    /// that counts as its absence is a setting.
    fn renamed(&self, node: &NodeFacts, server: &RobotServer) -> CloudError {
        let why = format!(
            "dedicated server {} is named {:?}, but the Node is named {:?}",
            server.number, server.name, node.name
        );
        self.events.warn(node, POSSIBLE_DELETION, &why);
        let kind = if self.rules.delete_renamed {
            ErrorKind::NotFound
        } else {
            ErrorKind::NotOurs
        };
        CloudError::new("GET /server/{number} (renamed)", kind, why)
    }
}

/// The servers of this name, as they are now.
async fn named(robot: &Robot, name: &str) -> Result<Vec<RobotServer>, CloudError> {
    let listed = robot.servers().await?;
    let mut found = Vec::new();
    for known in listed.iter().filter(|server| server.name == name) {
        match robot.server(known.number).await {
            Ok(server) if server.name == name => found.push(server),
            Err(error) if !error.is_not_found() => return Err(error),
            Ok(_) | Err(_) => {
                let now = robot.servers_now().await?;
                let namesakes = now.iter().filter(|server| server.name == name);
                return Ok(namesakes.cloned().collect());
            }
        }
    }
    Ok(found)
}

impl Rules {
    /// A dedicated server as a machine.
    pub(crate) fn robot(&self, server: &RobotServer) -> Instance {
        let zone = server.dc.to_lowercase();
        let region = zone.split('-').next().unwrap_or(&zone).to_owned();
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Instance {
            state: server.state,
            instance_type: said(as_label(&server.product)),
            zone: said(zone),
            region: said(region),
            addresses: address::of_robot(server, self.family),
            labels: provided_by("robot"),
            ..Instance::new(HetznerId::Robot(server.number).provider_id(), &server.name)
        }
    }
}

/// A product's name as the value of a label, which begins and ends with a letter or a digit.
pub(super) fn as_label(product: &str) -> String {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let label: String = product.replace(' ', "-").chars().filter(allowed).collect();
    let is_sign = |c: char| !c.is_ascii_alphanumeric();
    let short: String = label.trim_start_matches(is_sign).chars().take(63).collect();
    short.trim_end_matches(is_sign).to_owned()
}
