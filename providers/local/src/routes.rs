//! Routes.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, IpFamily, NodeFacts};
use cloudkeel_toolkit::{Nodes, RouteNode, RouteTable, RowChange, node_by_address, node_by_id};
use ipnet::IpNet;

use crate::client::{Api, requests};
use crate::error::refusals;
use crate::id::LocalId;
use crate::wire::{ErrorCode, Hop, NewRoute, Route, RouteBatch, RouteBatchAnswer, RouteResult};

const CREATE: &str = "create route";

/// The routes of the project's network.
pub(crate) struct LocalRoutes(pub(crate) Api);

#[async_trait]
impl RouteTable for LocalRoutes {
    type Row = Route;
    type Hops = ();

    async fn rows(&self) -> Result<Vec<Route>, CloudError> {
        self.0.list_own(requests::list("/v1/routes")).await
    }

    fn name(&self, row: &Route) -> String {
        row.id.to_string()
    }

    fn destination(&self, row: &Route) -> IpNet {
        row.destination
    }

    fn hop(&self, row: &Route, (): &()) -> String {
        row.hop.to_string()
    }

    fn node<'a>(&self, row: &Route, (): &(), nodes: &'a Nodes) -> Option<&'a NodeFacts> {
        match row.hop {
            Hop::Machine(id) => {
                let id = LocalId::new(&self.0.home().project, id).provider_id();
                node_by_id(nodes, |known| *known == id)
            }
            Hop::Ip(ip) => node_by_address(nodes, ip),
        }
    }

    fn is_blackhole(&self, row: &Route, (): &()) -> bool {
        row.blackhole
    }

    fn follows_addresses(&self, row: &Route) -> bool {
        matches!(row.hop, Hop::Ip(_))
    }

    /// The next hop is the Node's machine if it is one of ours, else its address.
    fn row(&self, destination: IpNet, node: RouteNode<'_>, (): &()) -> Result<Route, CloudError> {
        let home = &self.0.home().project;
        let machine = node
            .provider_id
            .and_then(|id| LocalId::read_in(home, id).ok());
        let family = IpFamily::of(destination.addr());
        let mut addresses = node.addresses.iter();
        let address = addresses.find(|ip| IpFamily::of(**ip) == family);
        let address = address.map(|ip| Hop::Ip(*ip));
        let hop = machine.map(Hop::Machine).or(address);
        let hop = hop.ok_or_else(|| {
            let message = format!(
                "node {} has neither a machine here nor an {family} address",
                node.name
            );
            CloudError::invalid(CREATE, message)
        })?;
        Ok(Route {
            id: 0,
            destination,
            hop,
            blackhole: false,
        })
    }

    fn is_same(&self, wanted: &Route, present: &Route) -> bool {
        present.hop == wanted.hop && !present.blackhole
    }

    async fn change(&self, change: &RowChange<Route>) -> Result<(), CloudError> {
        let results = self.change_all(std::slice::from_ref(change)).await;
        results.into_iter().collect()
    }

    async fn change_all(&self, changes: &[RowChange<Route>]) -> Vec<Result<(), CloudError>> {
        let mut batch = RouteBatch::default();
        for change in changes {
            match change {
                RowChange::Remove(row) => batch.delete.push(row.id),
                RowChange::Add(row) => batch.create.push(NewRoute {
                    destination: row.destination,
                    hop: row.hop,
                }),
            }
        }
        let answer: RouteBatchAnswer = match self.0.fetch(requests::change_routes(&batch)).await {
            Ok(answer) => answer,
            Err(error) => {
                let failed = changes.iter().map(|_| Err(error.clone_without_source()));
                return failed.collect();
            }
        };
        let (mut created, mut deleted) = (answer.created.into_iter(), answer.deleted.into_iter());
        let results = changes.iter().map_while(|change| match change {
            RowChange::Remove(_) => Some(result("delete route", deleted.next()?)),
            RowChange::Add(_) => Some(result(CREATE, created.next()?)),
        });
        results.collect()
    }
}

fn result(operation: &'static str, result: RouteResult) -> Result<(), CloudError> {
    let info = match result {
        RouteResult::Done(_) => return Ok(()),
        RouteResult::Error(info) => info,
    };
    let kind = match info.code {
        // Another client was faster: the next list shows whose route it is.
        ErrorCode::AlreadyExists => ErrorKind::Conflict,
        code => refusals()
            .kind(code.as_str())
            .unwrap_or(ErrorKind::Unavailable),
    };
    Err(CloudError::new(operation, kind, info.message))
}
