//! Routes of the private network.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, Priority, Subject};
use cloudkeel_toolkit::{EventRecorder, Nodes, RouteNode, RouteTable, RowChange, node_by_id};
use ipnet::IpNet;

use crate::client::{ActionState, requests};
use crate::id::HetznerId;
use crate::instances::Servers;
use crate::wire::{Network, Route, Server};

/// The reason of the event about a Pod network outside of the cluster's.
const CLUSTER_CIDR_MISCONFIGURED: &str = "ClusterCIDRMisconfigured";

const CREATE: &str = "create route";

/// The routes of the private network.
pub(crate) struct HetznerRoutes {
    pub(crate) servers: Arc<Servers>,
    pub(crate) network: u64,
    pub(crate) cluster_cidrs: Vec<IpNet>,
    pub(crate) events: Arc<EventRecorder>,
}

impl HetznerRoutes {
    fn server<'a>(&self, row: &Route, servers: &'a [Server]) -> Option<&'a Server> {
        let mut servers = servers.iter();
        servers.find(|server| server.ip_in(self.network) == Some(row.gateway))
    }

    fn report_outside(&self, node: RouteNode<'_>, destination: IpNet) {
        let mut clusters = self.cluster_cidrs.iter();
        if self.cluster_cidrs.is_empty() || clusters.any(|cidr| cidr.contains(&destination)) {
            return;
        }
        let subject = Subject::Node {
            name: node.name.to_owned(),
            uid: node.uid.to_owned(),
        };
        let message = format!("Pod CIDR {destination} of the Node is outside --cluster-cidr");
        self.events
            .warn(subject, CLUSTER_CIDR_MISCONFIGURED, message);
    }
}

#[async_trait]
impl RouteTable for HetznerRoutes {
    type Row = Route;
    type Hops = Arc<Vec<Server>>;

    async fn rows(&self) -> Result<Vec<Route>, CloudError> {
        let api = &self.servers.api;
        let network: Network = api.get(&self.network, Priority::Normal).await?;
        Ok(network.routes)
    }

    async fn hops(&self, age: Duration) -> Result<Arc<Vec<Server>>, CloudError> {
        self.servers.no_older_than(age).await
    }

    /// As the Go CCM names routes.
    fn name(&self, row: &Route) -> String {
        format!("{}-{}", row.gateway, row.destination)
    }

    fn destination(&self, row: &Route) -> IpNet {
        row.destination
    }

    fn hop(&self, row: &Route, servers: &Arc<Vec<Server>>) -> String {
        let server = self.server(row, servers);
        server.map_or_else(|| row.gateway.to_string(), |server| server.name.clone())
    }

    /// By the server's ID, whatever the Node is called, else by its name.
    fn node<'a>(
        &self,
        row: &Route,
        servers: &Arc<Vec<Server>>,
        nodes: &'a Nodes,
    ) -> Option<&'a NodeFacts> {
        let server = self.server(row, servers)?;
        let by_id = node_by_id(nodes, |id| HetznerId::read_cloud(id) == Some(server.id));
        by_id.or_else(|| {
            let mut unnamed = nodes.iter().filter(|node| node.provider_id.is_none());
            let node = unnamed.find(|node| node.name == server.name);
            node.map(|node| &**node)
        })
    }

    fn is_blackhole(&self, row: &Route, servers: &Arc<Vec<Server>>) -> bool {
        self.server(row, servers).is_none()
    }

    fn follows_addresses(&self, _: &Route) -> bool {
        true
    }

    fn row(
        &self,
        destination: IpNet,
        node: RouteNode<'_>,
        servers: &Arc<Vec<Server>>,
    ) -> Result<Route, CloudError> {
        if let IpNet::V6(destination) = destination {
            let message = format!("{destination}: Hetzner's networks route IPv4 only");
            return Err(CloudError::unsupported(CREATE, message));
        }
        self.report_outside(node, destination);
        let server = find_server(node, servers)?;
        let gateway = server.ip_in(self.network).ok_or_else(|| {
            let message = format!("server {} is not in network {}", server.name, self.network);
            CloudError::invalid(CREATE, message)
        })?;
        if !node.addresses.contains(&gateway) {
            return Err(not_an_address(node.name, gateway));
        }
        Ok(Route {
            destination,
            gateway,
        })
    }

    fn is_same(&self, wanted: &Route, present: &Route) -> bool {
        wanted == present
    }

    async fn change(&self, change: &RowChange<Route>) -> Result<(), CloudError> {
        let (verb, operation, row) = match change {
            RowChange::Remove(row) => ("delete_route", "delete route", row),
            RowChange::Add(row) => ("add_route", CREATE, row),
        };
        let request = requests::route_action(self.network, verb, row);
        match self.servers.api.act(request).await? {
            ActionState::Done => Ok(()),
            ActionState::StillRunning => Err(CloudError::new(
                operation,
                ErrorKind::Busy,
                "the network is still being changed",
            )),
        }
    }
}

fn find_server<'a>(node: RouteNode<'_>, servers: &'a [Server]) -> Result<&'a Server, CloudError> {
    let name = node.name;
    let found = match node.provider_id.map(HetznerId::read) {
        None => servers.iter().find(|server| server.name == name),
        Some(Ok(HetznerId::Cloud(id))) => servers.iter().find(|server| server.id == id),
        Some(Ok(HetznerId::Robot(_))) => {
            let message = format!(
                "Node {name}: a route of the private network cannot lead to a dedicated server"
            );
            return Err(CloudError::unsupported(CREATE, message));
        }
        Some(Err(error)) => {
            return Err(CloudError::invalid(CREATE, format!("Node {name}: {error}")));
        }
    };
    found.ok_or_else(|| {
        let message = format!("Node {name}: its server is not in the project");
        CloudError::new(CREATE, ErrorKind::NotFound, message)
    })
}

fn not_an_address(node: &str, gateway: IpAddr) -> CloudError {
    let message = format!(
        "Node {node}: its server has {gateway} in the private network, which is not an address of the \
         Node"
    );
    CloudError::invalid(CREATE, message)
}
