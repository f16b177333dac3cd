//! Routes of one table or network: which exist, which change, and in as few calls as possible.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, ErrorKind, NodeFacts, ProviderId, Route, RouteChange, RouteTarget, Routes, Shared,
};
use ipnet::IpNet;

/// What next hops were resolved with this long ago still says whose address is whose.
const FRESH: Duration = Duration::from_mins(2);

/// The same for a Node whose instance may be too young for that.
const FRESH_FOR_NEW: Duration = Duration::from_secs(10);

const CREATE: &str = "create route";

/// The Nodes of the cluster.
pub type Nodes = [Shared<NodeFacts>];

/// The Node that a route should lead to.
#[derive(Debug, Clone, Copy)]
pub struct RouteNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// Its instance.
    pub provider_id: Option<&'a ProviderId>,
    /// Its addresses, in their order.
    pub addresses: &'a [IpAddr],
}

/// One change of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange<R> {
    /// Takes a row away.
    Remove(R),
    /// Adds a row.
    Add(R),
}

/// A cloud's route table in its own terms.
#[async_trait]
pub trait RouteTable: Send + Sync + 'static {
    /// A route as the cloud shows it or is asked for it.
    type Row: Clone + Send + Sync;
    /// What next hops are resolved with, such as a list of instances; `()` if rows and Nodes say it all.
    type Hops: Default + Send + Sync;

    /// All rows of the table, also those of other owners.
    async fn rows(&self) -> Result<Vec<Self::Row>, CloudError>;

    /// Reads what next hops are resolved with, no older than this.
    async fn hops(&self, age: Duration) -> Result<Self::Hops, CloudError> {
        let _ = age;
        Ok(Self::Hops::default())
    }

    /// The name of a row, by which it is deleted.
    fn name(&self, row: &Self::Row) -> String;

    /// Which Pod network a row is for.
    fn destination(&self, row: &Self::Row) -> IpNet;

    /// The next hop in words.
    fn hop(&self, row: &Self::Row, hops: &Self::Hops) -> String;

    /// The Node that a row leads to, if it is one of the cluster.
    fn node<'a>(
        &self,
        row: &Self::Row,
        hops: &Self::Hops,
        nodes: &'a Nodes,
    ) -> Option<&'a NodeFacts>;

    /// Whether there is nothing at the next hop any more.
    fn is_blackhole(&self, row: &Self::Row, hops: &Self::Hops) -> bool;

    /// Whether the row holds an address of the Node.
    fn follows_addresses(&self, row: &Self::Row) -> bool {
        let _ = row;
        false
    }

    /// The row for a route to a Node. `Unsupported` for a family that cannot be routed, `NotFound` for a Node
    /// whose instance is missing.
    fn row(
        &self,
        destination: IpNet,
        node: RouteNode<'_>,
        hops: &Self::Hops,
    ) -> Result<Self::Row, CloudError>;

    /// Whether a row that is there is the wanted one.
    fn is_same(&self, wanted: &Self::Row, present: &Self::Row) -> bool;

    /// Carries out one change. A table that is locked is `Busy`.
    async fn change(&self, change: &RowChange<Self::Row>) -> Result<(), CloudError>;

    /// Carries out changes, removals first; one result each. Override where the cloud takes many in one call.
    async fn change_all(&self, changes: &[RowChange<Self::Row>]) -> Vec<Result<(), CloudError>> {
        let mut results: Vec<Result<(), CloudError>> = Vec::with_capacity(changes.len());
        let mut stuck: BTreeSet<IpNet> = BTreeSet::new();
        let mut locked: Option<CloudError> = None;
        for change in changes {
            let (RowChange::Remove(row) | RowChange::Add(row)) = change;
            let destination = self.destination(row);
            let result = match (&locked, change) {
                // What is locked for one is locked for all.
                (Some(error), _) => Err(error.clone_without_source()),
                (None, RowChange::Add(_)) if stuck.contains(&destination) => {
                    let message = format!("the route to {destination} could not be deleted");
                    Err(CloudError::new(CREATE, ErrorKind::Conflict, message))
                }
                _ => self.change(change).await,
            };
            if let Err(error) = &result {
                stuck.insert(destination);
                let is_locked = error.kind() == ErrorKind::Busy;
                locked = is_locked.then(|| error.clone_without_source());
            }
            results.push(result);
        }
        results
    }
}

/// The Node of an instance: by its ID, whatever it is called.
pub fn node_by_id(
    nodes: &[Shared<NodeFacts>],
    is_it: impl Fn(&ProviderId) -> bool,
) -> Option<&NodeFacts> {
    let mut nodes = nodes.iter();
    let node = nodes.find(|node| node.provider_id.as_ref().is_some_and(&is_it));
    node.map(|node| &**node)
}

/// The Node with an address.
pub fn node_by_address(nodes: &[Shared<NodeFacts>], ip: IpAddr) -> Option<&NodeFacts> {
    let has = |node: &&Shared<NodeFacts>| node.addresses.iter().any(|a| a.ip() == Some(ip));
    nodes.iter().find(has).map(|node| &**node)
}

/// [`Routes`] of a table.
pub struct TableRoutes<T>(pub T);

impl<T: RouteTable> TableRoutes<T> {
    fn route(&self, row: &T::Row, hops: &T::Hops, nodes: &[Shared<NodeFacts>]) -> Route {
        let table = &self.0;
        let elsewhere = || RouteTarget::Elsewhere {
            hop: table.hop(row, hops),
        };
        let node = table.node(row, hops, nodes);
        Route {
            name: table.name(row),
            destination: table.destination(row),
            target: node.map_or_else(elsewhere, RouteTarget::node),
            blackhole: table.is_blackhole(row, hops),
            follows_addresses: table.follows_addresses(row),
        }
    }

    fn wanted(&self, route: &Route, hops: &T::Hops) -> Result<T::Row, CloudError> {
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
        let node = RouteNode {
            name,
            uid,
            provider_id: provider_id.as_ref(),
            addresses,
        };
        self.0.row(route.destination, node, hops)
    }

    /// What next hops are resolved with, read anew if an instance is too young for the last read. `None` if
    /// nothing is created.
    async fn hops_for(&self, changes: &[RouteChange]) -> Result<Option<T::Hops>, CloudError> {
        let created = |change: &RouteChange| match change {
            RouteChange::Create(route) => Some(route.clone()),
            RouteChange::Delete(_) => None,
        };
        let created: Vec<Route> = changes.iter().filter_map(created).collect();
        if created.is_empty() {
            return Ok(None);
        }
        let hops = self.0.hops(FRESH).await?;
        let is_resolved = |route: &Route| match self.wanted(route, &hops) {
            Ok(_) => true,
            // What can never be routed is no matter of age.
            Err(error) => error.kind() == ErrorKind::Unsupported,
        };
        if created.iter().all(is_resolved) {
            return Ok(Some(hops));
        }
        self.0.hops(FRESH_FOR_NEW).await.map(Some)
    }

    /// What has to change in the table for one change, if anything. Rows that are `leaving` are removed by
    /// other changes.
    fn plan(
        &self,
        change: &RouteChange,
        rows: &[T::Row],
        leaving: &BTreeSet<&str>,
        hops: Result<&Option<T::Hops>, &CloudError>,
    ) -> Result<Option<RowChange<T::Row>>, CloudError> {
        let table = &self.0;
        let route = match change {
            RouteChange::Delete(route) => {
                let row = rows.iter().find(|row| table.name(row) == route.name);
                return Ok(row.cloned().map(RowChange::Remove));
            }
            RouteChange::Create(route) => route,
        };
        let hops = hops.map_err(CloudError::clone_without_source)?;
        let Some(hops) = hops else {
            return Ok(None);
        };
        let wanted = self.wanted(route, hops)?;
        let mut staying = rows.iter().filter(|row| {
            table.destination(row) == route.destination
                && !leaving.contains(table.name(row).as_str())
        });
        match staying.next() {
            None => Ok(Some(RowChange::Add(wanted))),
            Some(row) if table.is_same(&wanted, row) => Ok(None),
            // Clouds refuse two ways to one network, and only a new list says whose the other is.
            Some(row) => {
                let (destination, hop) = (route.destination, table.hop(row, hops));
                let message = format!(
                    "{destination} is routed to {hop} already, so that route is left alone"
                );
                Err(CloudError::new(CREATE, ErrorKind::Conflict, message))
            }
        }
    }
}

#[async_trait]
impl<T: RouteTable> Routes for TableRoutes<T> {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let rows = self.0.rows().await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let hops = self.0.hops(FRESH).await?;
        let routes = rows.iter().map(|row| self.route(row, &hops, nodes));
        Ok(routes.collect())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let rows = match self.0.rows().await {
            Ok(rows) => rows,
            Err(error) => {
                let failed = changes.iter().map(|_| Err(error.clone_without_source()));
                return failed.collect();
            }
        };
        let hops = self.hops_for(changes).await;
        let leaving = changes.iter().filter_map(|change| match change {
            RouteChange::Delete(route) => Some(route.name.as_str()),
            RouteChange::Create(_) => None,
        });
        let leaving: BTreeSet<_> = leaving.collect();
        let mut results = Vec::with_capacity(changes.len());
        let (mut removals, mut additions) = (Vec::new(), Vec::new());
        for (place, change) in changes.iter().enumerate() {
            let planned = self.plan(change, &rows, &leaving, hops.as_ref());
            results.push(match planned {
                Ok(Some(change @ RowChange::Remove(_))) => {
                    removals.push((place, change));
                    Ok(())
                }
                Ok(Some(change @ RowChange::Add(_))) => {
                    additions.push((place, change));
                    Ok(())
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            });
        }
        let planned = removals.into_iter().chain(additions);
        let (places, planned): (Vec<_>, Vec<_>) = planned.unzip();
        if planned.is_empty() {
            return results;
        }
        let done = self.0.change_all(&planned).await;
        let done = done
            .into_iter()
            .map(Some)
            .chain(std::iter::repeat_with(|| None));
        for ((place, change), done) in places.into_iter().zip(&planned).zip(done) {
            if let Some(result) = results.get_mut(place) {
                *result = outcome(change, done);
            }
        }
        results
    }
}

/// A row that is gone already is as good as removed; a change of which nothing was said is not done.
fn outcome<R>(
    change: &RowChange<R>,
    done: Option<Result<(), CloudError>>,
) -> Result<(), CloudError> {
    match (change, done) {
        (RowChange::Remove(_), Some(Err(error))) if error.is_not_found() => Ok(()),
        (_, Some(result)) => result,
        (_, None) => Err(CloudError::new(
            "change routes",
            ErrorKind::Incomplete,
            "the cloud did not report the result of the change",
        )),
    }
}

#[cfg(test)]
mod tests;
