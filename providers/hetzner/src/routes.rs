//! Routes of the private network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, ErrorKind, Event, NodeFacts, ProviderId, Route, RouteChange, RouteTarget, Routes,
    Shared, Subject,
};
use ipnet::IpNet;

use crate::client::{Api, Ended};
use crate::fleet::Fleet;
use crate::id::HetznerId;
use crate::tell::Teller;
use crate::wire::{self, Network, Server};

/// Servers that were seen this long ago still tell whose address is whose.
const FRESH: Duration = Duration::from_mins(2);

/// The reason of the event about a Pod network outside of the cluster's.
const CLUSTER_CIDR_MISCONFIGURED: &str = "ClusterCIDRMisconfigured";

const CREATE: &str = "create route";

/// The routes of the private network.
pub(crate) struct HetznerRoutes {
    pub(crate) api: Api,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) network: u64,
    pub(crate) cluster_cidrs: Vec<IpNet>,
    pub(crate) teller: Arc<Teller>,
}

impl HetznerRoutes {
    fn route(&self, route: &wire::Route, servers: &[Server], nodes: &[Shared<NodeFacts>]) -> Route {
        let has_gateway = |server: &&Server| server.ip_in(self.network) == Some(route.gateway);
        let server = servers.iter().find(has_gateway);
        let target = match server {
            Some(server) => node_of(server, nodes).map_or_else(
                || RouteTarget::Elsewhere {
                    hop: server.name.clone(),
                },
                RouteTarget::node,
            ),
            None => RouteTarget::Elsewhere {
                hop: route.gateway.to_string(),
            },
        };
        Route {
            name: name_of(route),
            destination: route.destination,
            target,
            blackhole: server.is_none(),
            follows_addresses: true,
        }
    }

    /// The route that a Node should have, as the cloud spells it.
    fn wanted(&self, route: &Route, servers: &[Server]) -> Result<wire::Route, CloudError> {
        let RouteTarget::Node {
            name,
            uid,
            provider_id,
            addresses,
        } = &route.target
        else {
            let message = format!("a route to {} leads to no Node", route.destination);
            return Err(CloudError::invalid(CREATE, message));
        };
        if let IpNet::V6(destination) = route.destination {
            let message = format!("{destination}: Hetzner's networks route IPv4 only");
            return Err(CloudError::unsupported(CREATE, message));
        }
        self.tell_outside(name, uid, route.destination);
        let server = find_server(name, provider_id.as_ref(), servers)?;
        let gateway = server.ip_in(self.network).ok_or_else(|| {
            let message = format!("server {} is not in network {}", server.name, self.network);
            CloudError::invalid(CREATE, message)
        })?;
        if !addresses.contains(&gateway) {
            return Err(not_an_address(name, gateway));
        }
        Ok(wire::Route {
            destination: route.destination,
            gateway,
        })
    }

    fn tell_outside(&self, node: &str, uid: &str, destination: IpNet) {
        let mut clusters = self.cluster_cidrs.iter();
        if self.cluster_cidrs.is_empty() || clusters.any(|cidr| cidr.contains(&destination)) {
            return;
        }
        let subject = Subject::Node {
            name: node.to_owned(),
            uid: uid.to_owned(),
        };
        let message =
            format!("its Pod network {destination} is outside of the cluster's --cluster-cidr");
        let event = Event::warning(subject, CLUSTER_CIDR_MISCONFIGURED, message);
        self.teller.tell(event);
    }

    async fn carry_out(
        &self,
        change: &RouteChange,
        network: &mut Network,
        servers: &Result<Arc<Vec<Server>>, CloudError>,
    ) -> Result<(), CloudError> {
        match change {
            RouteChange::Delete(route) => {
                let known = network.routes.iter();
                let known = known.copied().find(|known| name_of(known) == route.name);
                match known {
                    Some(known) => self.delete(&known, network).await,
                    None => Ok(()),
                }
            }
            RouteChange::Create(route) => {
                let servers = servers.as_ref().map_err(CloudError::retold)?;
                let wanted = self.wanted(route, servers)?;
                self.create(wanted, network).await
            }
        }
    }

    async fn create(&self, wanted: wire::Route, network: &mut Network) -> Result<(), CloudError> {
        let known = network.routes.iter();
        let known = known
            .copied()
            .find(|known| known.destination == wanted.destination);
        match known {
            Some(known) if known == wanted => return Ok(()),
            // The cloud refuses two ways to one place, and whose the other is, only a new look can tell.
            Some(known) => return Err(taken(&known)),
            None => {}
        }
        finished(CREATE, self.api.add_route(self.network, &wanted).await?)?;
        network.routes.push(wanted);
        Ok(())
    }

    async fn delete(&self, known: &wire::Route, network: &mut Network) -> Result<(), CloudError> {
        match self.api.delete_route(self.network, known).await {
            Ok(ended) => finished("delete route", ended)?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        network.routes.retain(|route| route != known);
        Ok(())
    }
}

#[async_trait]
impl Routes for HetznerRoutes {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let network = self.api.network(self.network).await?;
        if network.routes.is_empty() {
            return Ok(Vec::new());
        }
        let servers = self.fleet.no_older_than(FRESH).await?;
        let routes = network.routes.iter();
        Ok(routes
            .map(|route| self.route(route, &servers, nodes))
            .collect())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let mut network = match self.api.network(self.network).await {
            Ok(network) => network,
            Err(error) => return changes.iter().map(|_| Err(error.retold())).collect(),
        };
        let is_creation = |change: &RouteChange| matches!(change, RouteChange::Create(_));
        let servers = if changes.iter().any(is_creation) {
            self.servers_for(changes).await
        } else {
            Ok(Arc::default())
        };
        let numbered = || changes.iter().enumerate();
        let deletions = numbered().filter(|(_, change)| !is_creation(change));
        let creations = numbered().filter(|(_, change)| is_creation(change));
        let mut results = BTreeMap::new();
        let mut locked: Option<CloudError> = None;
        for (place, change) in deletions.chain(creations) {
            let result = match &locked {
                // What is locked for one is locked for all.
                Some(error) => Err(error.retold()),
                None => self.carry_out(change, &mut network, &servers).await,
            };
            if let Err(error) = &result
                && error.kind() == ErrorKind::Busy
            {
                locked = Some(error.retold());
            }
            results.insert(place, result);
        }
        results.into_values().collect()
    }
}

impl HetznerRoutes {
    /// The servers, listed anew if one of the wanted is too young for the last list.
    async fn servers_for(&self, changes: &[RouteChange]) -> Result<Arc<Vec<Server>>, CloudError> {
        let servers = self.fleet.no_older_than(FRESH).await?;
        let known = |change: &RouteChange| match change {
            RouteChange::Create(route) => match self.wanted(route, &servers) {
                Ok(_) => true,
                // What can never be routed is no matter of age.
                Err(error) => error.kind() == ErrorKind::Unsupported,
            },
            RouteChange::Delete(_) => true,
        };
        if changes.iter().all(known) {
            return Ok(servers);
        }
        self.fleet.no_older_than(Duration::from_secs(10)).await
    }
}

fn finished(operation: &'static str, ended: Ended) -> Result<(), CloudError> {
    match ended {
        Ended::Done => Ok(()),
        Ended::StillRunning => Err(CloudError::new(
            operation,
            ErrorKind::Busy,
            "the network is still being changed",
        )),
    }
}

fn taken(known: &wire::Route) -> CloudError {
    let (destination, gateway) = (known.destination, known.gateway);
    let message =
        format!("{destination} is routed to {gateway} already, so that route is left alone");
    CloudError::new(CREATE, ErrorKind::Conflict, message)
}

/// As the Go CCM names routes.
fn name_of(route: &wire::Route) -> String {
    format!("{}-{}", route.gateway, route.destination)
}

/// The Node of a server: by its ID, whatever it is called, else by its name.
fn node_of<'a>(server: &Server, nodes: &'a [Shared<NodeFacts>]) -> Option<&'a NodeFacts> {
    let id = HetznerId::Cloud(server.id);
    let by_id = |node: &&Shared<NodeFacts>| {
        let text = node.provider_id.as_ref();
        text.is_some_and(|text| HetznerId::read(text) == Ok(id))
    };
    let by_name =
        |node: &&Shared<NodeFacts>| node.provider_id.is_none() && node.name == server.name;
    let mut all = nodes.iter();
    let node = all.find(by_id).or_else(|| nodes.iter().find(by_name))?;
    Some(node)
}

fn find_server<'a>(
    node: &str,
    id: Option<&ProviderId>,
    servers: &'a [Server],
) -> Result<&'a Server, CloudError> {
    let refuse = |why: String| CloudError::invalid(CREATE, format!("Node {node}: {why}"));
    let found = match id.map(HetznerId::read) {
        None => servers.iter().find(|server| server.name == node),
        Some(Ok(HetznerId::Cloud(id))) => servers.iter().find(|server| server.id == id),
        Some(Ok(HetznerId::Robot(_))) => {
            let message = format!(
                "Node {node}: a route of the private network cannot lead to a dedicated server"
            );
            return Err(CloudError::unsupported(CREATE, message));
        }
        Some(Err(error)) => return Err(refuse(error.to_string())),
    };
    found.ok_or_else(|| {
        let message = format!("Node {node}: its server is not in the project");
        CloudError::new(CREATE, ErrorKind::NotFound, message)
    })
}

fn not_an_address(node: &str, gateway: IpAddr) -> CloudError {
    let message = format!(
        "Node {node}: its server has {gateway} in the private network, which is none of the Node's \
         addresses"
    );
    CloudError::invalid(CREATE, message)
}
