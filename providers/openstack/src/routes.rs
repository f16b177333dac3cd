//! Routes of a router.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, Priority};
use cloudkeel_http::Request;
use cloudkeel_toolkit::{
    Nodes, Resource as _, RouteNode, RouteTable, RowChange, is_refusal, node_by_address,
};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Api, Service, wrapped};
use crate::instances::Servers;
use crate::wire::compute::Server;
use crate::wire::network::{AddressPair, ExtraRoute, Port, Router};

const CREATE: &str = "create route";
const DELETE: &str = "delete route";

/// How many ports are asked for at once, so that the address of the request stays short.
const PORTS_AT_ONCE: usize = 50;

/// What Neutron can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// Routers have routes.
    pub(crate) routes: bool,
    /// Routes are added and removed one by one, so that no other client's change is lost.
    pub(crate) atomic: bool,
    /// Ports drop what is sent from addresses that they do not know.
    pub(crate) address_pairs: bool,
}

#[derive(Deserialize)]
struct ExtensionList {
    extensions: Vec<Extension>,
}

#[derive(Deserialize)]
struct Extension {
    alias: String,
}

impl Extensions {
    pub(crate) async fn read(api: &Api) -> Result<Self, CloudError> {
        let network = api.client(Service::Network)?;
        let list: ExtensionList = network.fetch(Request::get("/extensions")).await?;
        let has = |alias: &str| list.extensions.iter().any(|it| it.alias == alias);
        let atomic = has("extraroute-atomic");
        Ok(Self {
            routes: atomic || has("extraroute"),
            atomic,
            address_pairs: has("allowed-address-pairs"),
        })
    }
}

/// The routes of a router.
pub(crate) struct RouterRoutes {
    pub(crate) servers: Servers,
    pub(crate) router: String,
    pub(crate) extensions: Extensions,
}

#[async_trait]
impl RouteTable for RouterRoutes {
    type Row = ExtraRoute;
    type Hops = Arc<Vec<Server>>;

    async fn rows(&self) -> Result<Vec<ExtraRoute>, CloudError> {
        Ok(self.router().await?.routes)
    }

    async fn hops(&self, age: Duration) -> Result<Arc<Vec<Server>>, CloudError> {
        self.servers.no_older_than(age).await
    }

    fn name(&self, row: &ExtraRoute) -> String {
        format!("{}-{}", row.nexthop, row.destination)
    }

    fn destination(&self, row: &ExtraRoute) -> IpNet {
        row.destination
    }

    fn hop(&self, row: &ExtraRoute, _: &Arc<Vec<Server>>) -> String {
        row.nexthop.to_string()
    }

    fn node<'a>(
        &self,
        row: &ExtraRoute,
        _: &Arc<Vec<Server>>,
        nodes: &'a Nodes,
    ) -> Option<&'a NodeFacts> {
        node_by_address(nodes, row.nexthop)
    }

    fn is_blackhole(&self, row: &ExtraRoute, servers: &Arc<Vec<Server>>) -> bool {
        !servers.iter().any(|server| has_ip(server, row.nexthop))
    }

    fn follows_addresses(&self, _: &ExtraRoute) -> bool {
        true
    }

    fn row(
        &self,
        destination: IpNet,
        node: RouteNode<'_>,
        servers: &Arc<Vec<Server>>,
    ) -> Result<ExtraRoute, CloudError> {
        let ids = &self.servers.rules.ids;
        let id = node.provider_id.map(|id| ids.read(id)).transpose();
        let id = id.map_err(|error| CloudError::invalid(CREATE, error.to_string()))?;
        let is_it = |server: &&Server| match &id {
            Some(id) => server.id == *id,
            None => server.name == node.name,
        };
        let server = servers.iter().find(is_it).ok_or_else(|| {
            let message = format!("Node {}: its server is not in the project", node.name);
            CloudError::new(CREATE, ErrorKind::NotFound, message)
        })?;
        let is_v4 = matches!(destination, IpNet::V4(_));
        let of_family = node.addresses.iter().filter(|ip| ip.is_ipv4() == is_v4);
        // A floating IP is no next hop.
        let nexthop = of_family.copied().find(|ip| has_ip(server, *ip));
        let nexthop = nexthop.ok_or_else(|| {
            let (node, family) = (&node.name, if is_v4 { "IPv4" } else { "IPv6" });
            let message = format!("Node {node}: no {family} address found for it in its networks");
            CloudError::invalid(CREATE, message)
        })?;
        Ok(ExtraRoute {
            destination,
            nexthop,
        })
    }

    fn is_same(&self, wanted: &ExtraRoute, present: &ExtraRoute) -> bool {
        wanted == present
    }

    async fn change(&self, change: &RowChange<ExtraRoute>) -> Result<(), CloudError> {
        let (remove, add) = match change {
            RowChange::Remove(row) => (vec![*row], vec![]),
            RowChange::Add(row) => (vec![], vec![*row]),
        };
        self.apply(&remove, &add).await
    }

    /// All of them in one call each for removals and additions. If Neutron refuses one, each is tried by itself.
    async fn change_all(&self, changes: &[RowChange<ExtraRoute>]) -> Vec<Result<(), CloudError>> {
        let (mut remove, mut add) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                RowChange::Remove(row) => remove.push(*row),
                RowChange::Add(row) => add.push(*row),
            }
        }
        let Err(error) = self.apply(&remove, &add).await else {
            return changes.iter().map(|_| Ok(())).collect();
        };
        if changes.len() == 1 || !is_refusal(&error) {
            let failed = changes.iter().map(|_| Err(error.clone_without_source()));
            return failed.collect();
        }
        let mut results = Vec::with_capacity(changes.len());
        for change in changes {
            results.push(self.change(change).await);
        }
        results
    }
}

/// Whether a server has an address in one of its networks.
fn has_ip(server: &Server, ip: IpAddr) -> bool {
    server.ports.iter().any(|port| port.has_ip(ip))
}

impl RouterRoutes {
    async fn router(&self) -> Result<Router, CloudError> {
        let (api, id) = (&self.servers.api, &self.router);
        let found = api.get(id, Priority::Normal).await;
        found.map_err(|error| {
            if error.is_not_found() {
                let message = format!("there is no router {id:?}: check `router-id`");
                return CloudError::invalid("list routes", message);
            }
            error
        })
    }

    /// Ports come first both ways: what is left after a crash is then the route, by which it is repeated.
    async fn apply(&self, remove: &[ExtraRoute], add: &[ExtraRoute]) -> Result<(), CloudError> {
        if self.extensions.address_pairs {
            self.pair(remove, add).await?;
        }
        if !self.extensions.atomic {
            return self.replace(remove, add).await;
        }
        for (rows, end, operation) in [
            (remove, "/remove_extraroutes", DELETE),
            (add, "/add_extraroutes", CREATE),
        ] {
            if !rows.is_empty() {
                let request = Request::put(format!("/routers/{{id}}{end}")).named(operation);
                let body = wrapped(Router::ONE, &json!({"routes": rows}));
                let request = request.param("id", &self.router).json(body);
                self.servers.api.send(Service::Network, request).await?;
            }
        }
        Ok(())
    }

    /// Where routes cannot be added one by one, the whole table is written, unless another client changed it since
    /// it was read.
    async fn replace(&self, remove: &[ExtraRoute], add: &[ExtraRoute]) -> Result<(), CloudError> {
        let router = self.router().await?;
        let mut routes = router.routes.clone();
        routes.retain(|row| !remove.contains(row));
        routes.extend(add.iter().filter(|row| !router.routes.contains(row)));
        if routes == router.routes {
            return Ok(());
        }
        let body = json!({"routes": routes});
        let api = &self.servers.api;
        api.update::<Router>(&router.id, router.revision_number, &body)
            .await
    }

    /// Lets the ports of Nodes send from their Pod networks, or forbids it again.
    async fn pair(&self, remove: &[ExtraRoute], add: &[ExtraRoute]) -> Result<(), CloudError> {
        let mut hops: Vec<IpAddr> = remove.iter().chain(add).map(|row| row.nexthop).collect();
        hops.sort_unstable();
        hops.dedup();
        let mut wanted: BTreeMap<String, (Port, Vec<AddressPair>)> = BTreeMap::new();
        for port in self.ports_of(&hops).await? {
            let pairs = port.allowed_address_pairs.clone();
            wanted.insert(port.id.clone(), (port, pairs));
        }
        for row in remove {
            each_pair(&mut wanted, row, |pairs, cidr| {
                pairs.retain(|pair| pair.ip_address != cidr);
            });
        }
        for row in add {
            each_pair(&mut wanted, row, |pairs, cidr| {
                if !pairs.iter().any(|pair| pair.ip_address == cidr) {
                    pairs.push(AddressPair {
                        ip_address: cidr.to_owned(),
                        mac_address: None,
                    });
                }
            });
        }
        for (port, pairs) in wanted.into_values() {
            if pairs != port.allowed_address_pairs {
                let (api, body) = (&self.servers.api, json!({"allowed_address_pairs": pairs}));
                let updated = api.update::<Port>(&port.id, port.revision_number, &body);
                updated.await.map_err(CloudError::vanished)?;
            }
        }
        Ok(())
    }

    /// The ports with these addresses in the networks of the router.
    async fn ports_of(&self, hops: &[IpAddr]) -> Result<Vec<Port>, CloudError> {
        let api = &self.servers.api;
        let of_router = [
            ("device_id", self.router.as_str()),
            ("fields", "id"),
            ("fields", "network_id"),
        ];
        let of_router: Vec<Port> = api.all(&of_router).await?;
        let networks = of_router.iter().map(|own| &own.network_id);
        let is_routed = |port: &Port| networks.clone().any(|id| *id == port.network_id);
        let mut found = Vec::new();
        for hops in hops.chunks(PORTS_AT_ONCE) {
            let hops: Vec<_> = hops.iter().map(|hop| format!("ip_address={hop}")).collect();
            let filters = hops.iter().map(|hop| ("fixed_ips", hop.as_str()));
            let filters: Vec<_> = filters.collect();
            found.extend(api.all::<Port>(&filters).await?);
        }
        // Without port security, a port sends from any address.
        found.retain(|port| port.port_security_enabled && is_routed(port));
        Ok(found)
    }
}

fn each_pair(
    ports: &mut BTreeMap<String, (Port, Vec<AddressPair>)>,
    row: &ExtraRoute,
    change: impl Fn(&mut Vec<AddressPair>, &str),
) {
    let cidr = row.destination.to_string();
    let ports = ports.values_mut();
    let of_hop = ports.filter(|(port, _)| port.has_ip(row.nexthop));
    of_hop.for_each(|(_, pairs)| change(pairs, &cidr));
}
