//! Servers.

mod address;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, Instance, InstanceList, InstanceState, Match, NodeFacts, Priority,
    ProviderId, ScopeFingerprint, is_label_value,
};
use cloudkeel_toolkit::{
    EventRecorder, InstanceSource, Inventory, Listed, LookupError, Search, SharedRead,
};

use crate::client::{Api, Service};
use crate::config::Networking;
use crate::id::ServerIds;
use crate::wire::compute::{Flavor, Server, ServerFlavor};
use crate::wire::network::{Network, Port};

/// How long a list of flavors serves.
const FLAVORS_FRESH: Duration = Duration::from_hours(1);

/// For how many servers ports are asked for at once, so that the address of the request stays short.
const PORTS_AT_ONCE: usize = 50;

/// What is read of ports.
const PORT_FIELDS: [(&str, &str); 6] = [
    ("fields", "id"),
    ("fields", "status"),
    ("fields", "device_id"),
    ("fields", "network_id"),
    ("fields", "fixed_ips"),
    ("fields", "trunk_details"),
];

/// What makes a server a Node, besides the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) ids: ServerIds,
    pub(crate) networking: Networking,
}

/// The servers of the project. Clones share what was read.
#[derive(Clone)]
pub(crate) struct Servers {
    pub(crate) api: Api,
    pub(crate) rules: Rules,
    pub(crate) events: Arc<EventRecorder>,
    pub(crate) inventory: Arc<Inventory<Server>>,
    pub(crate) flavors: Arc<SharedRead<Vec<Flavor>>>,
}

#[async_trait]
impl InstanceSource for Servers {
    type Id = String;
    type Item = Server;

    fn scope(&self) -> ScopeFingerprint {
        self.api.scope_of(self.api.project())
    }

    fn parse_id(&self, id: &ProviderId) -> Result<String, String> {
        self.rules.ids.read(id).map_err(|error| error.to_string())
    }

    fn instance(&self, server: &Server) -> Instance {
        self.rules.instance(server)
    }

    /// One list of servers and one of ports, whatever their number.
    async fn list(&self) -> Result<Listed<Server>, CloudError> {
        let items = self.inventory.fresh(|| self.read()).await?;
        let other = items.iter().find_map(|server| self.other_project(server));
        Ok(Listed {
            scope: other.unwrap_or_else(|| self.scope()),
            items: items.to_vec(),
        })
    }

    async fn get(&self, id: &String) -> Result<Server, LookupError> {
        let mut server: Server = self.api.get(id, Priority::Urgent).await?;
        if let Some(other) = self.other_project(&server) {
            return Err(LookupError::OtherScope(other));
        }
        let one = std::slice::from_mut(&mut server);
        self.complete(one, Priority::Urgent).await?;
        self.inventory.record(std::slice::from_ref(&server));
        Ok(server)
    }

    async fn search(&self, node: &NodeFacts) -> Result<Search<Server>, CloudError> {
        // Nova takes a regular expression.
        let name = format!("^{}$", regex::escape(&node.name));
        let named = [("name", name.as_str())];
        let found = self.api.all_with(&named, Priority::Urgent);
        let mut servers: Vec<Server> = found.await?;
        servers.retain(|server| server.name == node.name && self.other_project(server).is_none());
        self.complete(&mut servers, Priority::Urgent).await?;
        self.inventory.record(&servers);
        Ok(Search::by_name(node, servers))
    }

    /// An ID may be spelled in several ways.
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let Some(text) = &node.provider_id else {
            return Match::of(list.named(&node.name));
        };
        let id = self.rules.ids.read(text).ok();
        let found = id.and_then(|id| list.get(&self.rules.ids.write(&id)));
        found.map_or(Match::None, Match::One)
    }

    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        self.events.ambiguous(node, doubt);
    }
}

impl Servers {
    /// All servers, as they were at most this long ago.
    pub(crate) async fn no_older_than(
        &self,
        age: Duration,
    ) -> Result<Arc<Vec<Server>>, CloudError> {
        self.inventory.no_older_than(age, || self.read()).await
    }

    async fn read(&self) -> Result<Vec<Server>, CloudError> {
        let mut servers: Vec<Server> = self.api.all_with(&[], Priority::Background).await?;
        self.complete(&mut servers, Priority::Background).await?;
        Ok(servers)
    }

    /// The project of a server, if it is not ours.
    fn other_project(&self, server: &Server) -> Option<ScopeFingerprint> {
        let project = server.tenant_id.as_deref();
        let other = project.filter(|project| *project != self.api.project());
        other.map(|other| self.api.scope_of(other))
    }

    /// Adds what the list of servers does not show: ports, and labels of flavors whose name cannot be one.
    async fn complete(&self, servers: &mut [Server], priority: Priority) -> Result<(), CloudError> {
        if servers.is_empty() {
            return Ok(());
        }
        if self.api.has(Service::Network) {
            self.add_ports(servers, priority).await?;
        }
        let needs_flavor = |server: &&mut Server| !has_plain_flavor(server);
        for server in servers.iter_mut().filter(needs_flavor) {
            let read = || self.api.all(&[]);
            let flavors = self.flavors.no_older_than(FLAVORS_FRESH, read).await?;
            server.flavor_label = flavor_label(server, &flavors);
        }
        Ok(())
    }

    async fn add_ports(
        &self,
        servers: &mut [Server],
        priority: Priority,
    ) -> Result<(), CloudError> {
        let mut ports = Vec::new();
        if servers.len() > PORTS_AT_ONCE {
            let filters = [&PORT_FIELDS[..], &[("project_id", self.api.project())]].concat();
            ports = self.api.all_with::<Port>(&filters, priority).await?;
        }
        // A port may belong to another project than its server.
        let is_missing = |server: &&Server| !ports.iter().any(|port| port.device_id == server.id);
        let missing = servers.iter().filter(is_missing);
        let missing: Vec<_> = missing.map(|server| server.id.clone()).collect();
        for ids in missing.chunks(PORTS_AT_ONCE) {
            let ids = ids.iter().map(|id| ("device_id", id.as_str()));
            let filters: Vec<_> = PORT_FIELDS.into_iter().chain(ids).collect();
            ports.extend(self.api.all_with::<Port>(&filters, priority).await?);
        }
        let mut by_server: BTreeMap<String, Vec<Port>> = BTreeMap::new();
        for port in ports {
            let ports = by_server.entry(port.device_id.clone()).or_default();
            ports.push(port);
        }
        for server in servers {
            server.ports = by_server.remove(&server.id).unwrap_or_default();
            if server.ports.iter().any(|port| port.trunk_details.is_some()) {
                self.add_trunk(server, priority).await;
            }
        }
        Ok(())
    }

    /// Adds the addresses of ports inside of trunks, under the names of their networks.
    async fn add_trunk(&self, server: &mut Server, priority: Priority) {
        let ports = server.ports.iter();
        let trunks = ports.filter_map(|port| port.trunk_details.as_ref());
        let subs = trunks.flat_map(|trunk| &trunk.sub_ports);
        let ids: Vec<_> = subs.map(|sub| ("id", sub.port_id.as_str())).collect();
        if ids.is_empty() {
            return;
        }
        let read = async {
            let ports: Vec<Port> = self.api.all_with(&ids, priority).await?;
            let networks = ports.iter().map(|port| ("id", port.network_id.as_str()));
            let networks: Vec<_> = networks.collect();
            let networks: Vec<Network> = self.api.all_with(&networks, priority).await?;
            Ok::<_, CloudError>((ports, networks))
        };
        match read.await {
            Ok((ports, networks)) => address::add_sub_ports(server, &ports, &networks),
            // As in the Go CCM: the Node gets its other addresses.
            Err(error) => {
                tracing::warn!(%error, server = server.id, "failed to read the ports of a trunk");
            }
        }
    }
}

fn has_plain_flavor(server: &Server) -> bool {
    let name = server.flavor.original_name.as_deref();
    name.is_some_and(is_label_value)
}

/// The name of a server's flavor if it can be a label, else its ID.
fn flavor_label(server: &Server, flavors: &[Flavor]) -> Option<String> {
    let ServerFlavor { id, original_name } = &server.flavor;
    let is_it = |flavor: &&Flavor| {
        Some(&flavor.id) == id.as_ref() || Some(&flavor.name) == original_name.as_ref()
    };
    let found = flavors.iter().find(is_it);
    let name = found.map(|flavor| &flavor.name);
    let name = name.filter(|name| is_label_value(name));
    let id = found.map(|flavor| &flavor.id).or(id.as_ref());
    name.or(id).cloned()
}

impl Rules {
    /// A server as an instance.
    pub(crate) fn instance(&self, server: &Server) -> Instance {
        let original = server.flavor.original_name.clone();
        let original = original.filter(|name| is_label_value(name));
        let zone = server.availability_zone.as_deref().map(zone_label);
        Instance {
            state: match server.status.as_str() {
                "ACTIVE" => InstanceState::Running,
                "SHUTOFF" => InstanceState::ShutDown,
                "BUILD" | "HARD_REBOOT" | "MIGRATING" | "PASSWORD" | "REBOOT" | "REBUILD"
                | "RESIZE" | "REVERT_RESIZE" | "VERIFY_RESIZE" => InstanceState::Changing,
                _ => InstanceState::Unknown,
            },
            instance_type: original.or_else(|| server.flavor_label.clone()),
            zone: zone.filter(|zone| !zone.is_empty()),
            region: self.ids.region.clone(),
            addresses: address::of_server(server, &self.networking),
            ..Instance::new(self.ids.write(&server.id), &server.name)
        }
    }
}

/// A zone as the Go CCM writes it: runs of what no label takes become one dash.
pub(crate) fn zone_label(zone: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut label = String::new();
    let mut is_run = false;
    for c in zone.chars() {
        if is_good(c) {
            label.push(c);
        } else if !is_run {
            label.push('-');
        }
        is_run = !is_good(c);
    }
    let label = label.trim_matches(['-', '_', '.']);
    label.get(..63).unwrap_or(label).to_owned()
}

#[cfg(test)]
mod tests;
