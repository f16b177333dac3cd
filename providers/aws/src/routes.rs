//! Pod routes of the cluster's route table.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, Priority};
use cloudkeel_toolkit::{Nodes, RouteNode, RouteTable, RowChange, node_by_id};
use ipnet::IpNet;

use crate::account::Account;
use crate::client::Call;
use crate::id::AwsId;
use crate::tags::ClusterTag;
use crate::wire::{self, Ec2Instance};

const CREATE: &str = "create route";

/// The route table of the cluster.
pub(crate) struct AwsRoutes {
    account: Arc<Account>,
    /// The table that the settings name.
    table: Option<String>,
    /// What names of routes begin with: the name of the cluster.
    cluster_name: String,
    /// The table that was found last: routes are added to the one that was just listed.
    last: Mutex<Option<String>>,
}

/// A route of IPv4, and the table that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    table: String,
    destination: IpNet,
    /// The instance that it leads to, else the cloud's word for the next hop.
    hop: Hop,
    is_blackhole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hop {
    Instance {
        id: String,
        /// Whether it drops what is not addressed to itself.
        checks_source: bool,
    },
    Other(String),
}

impl AwsRoutes {
    pub(crate) fn new(account: &Arc<Account>, table: Option<String>, cluster_name: &str) -> Self {
        Self {
            account: Arc::clone(account),
            table,
            cluster_name: cluster_name.to_owned(),
            last: Mutex::default(),
        }
    }

    async fn table(&self) -> Result<wire::RouteTable, CloudError> {
        let call = Call::ec2("DescribeRouteTables");
        let call = match &self.table {
            Some(id) => call.filter("route-table-id", [id]),
            None => call.filter("tag-key", self.account.cluster.keys()),
        };
        let api = &self.account.api;
        let found = api.all_of_ec2(call, "routeTableSet/item", Priority::Normal);
        the_one(found.await?, self.table.as_ref(), &self.account.cluster)
    }
}

/// The one with the cluster's tag, unless the settings name it.
fn the_one(
    mut found: Vec<wire::RouteTable>,
    named: Option<&String>,
    cluster: &ClusterTag,
) -> Result<wire::RouteTable, CloudError> {
    found.retain(|table| named.is_some() || cluster.is_tagged(&table.tags));
    <[wire::RouteTable; 1]>::try_from(found)
        .map(|[table]| table)
        .map_err(|found| {
            let ids: Vec<_> = found.iter().map(|table| table.id.as_str()).collect();
            let tag = cluster.key();
            let message = match (named, ids.as_slice()) {
                (Some(id), _) => format!("there is no route table {id}: correct RouteTableID"),
                (None, []) => {
                    format!("no route table has the tag {tag}: tag one, or set RouteTableID")
                }
                (None, ids) => format!(
                    "route tables {} all have the tag {tag}: keep it on one, or set RouteTableID",
                    ids.join(", ")
                ),
            };
            CloudError::invalid("find route table", message)
        })
}

fn row(table: &str, route: &wire::Route) -> Option<Row> {
    let other = || {
        let hop = route.gateway.as_ref().or(route.interface.as_ref());
        Hop::Other(hop.map_or("another target", String::as_str).to_owned())
    };
    let instance = route.instance.as_ref().map(|id| Hop::Instance {
        id: id.clone(),
        checks_source: false,
    });
    Some(Row {
        table: table.to_owned(),
        destination: route.destination?,
        hop: instance.unwrap_or_else(other),
        is_blackhole: route.is_blackhole,
    })
}

#[async_trait]
impl RouteTable for AwsRoutes {
    type Row = Row;
    type Hops = Arc<Vec<Ec2Instance>>;

    async fn rows(&self) -> Result<Vec<Row>, CloudError> {
        let table = self.table().await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(table.id.clone());
        let rows = table.routes.iter();
        Ok(rows.filter_map(|route| row(&table.id, route)).collect())
    }

    async fn hops(&self, age: Duration) -> Result<Arc<Vec<Ec2Instance>>, CloudError> {
        self.account.no_older_than(age).await
    }

    /// As the Go CCM names routes.
    fn name(&self, row: &Row) -> String {
        format!("{}-{}", self.cluster_name, row.destination)
    }

    fn destination(&self, row: &Row) -> IpNet {
        row.destination
    }

    fn hop(&self, row: &Row, _: &Self::Hops) -> String {
        let (Hop::Instance { id: hop, .. } | Hop::Other(hop)) = &row.hop;
        hop.clone()
    }

    fn node<'a>(&self, row: &Row, _: &Self::Hops, nodes: &'a Nodes) -> Option<&'a NodeFacts> {
        let Hop::Instance { id, .. } = &row.hop else {
            return None;
        };
        node_by_id(nodes, |node| {
            AwsId::read_instance(node).as_ref() == Some(id)
        })
    }

    fn is_blackhole(&self, row: &Row, _: &Self::Hops) -> bool {
        row.is_blackhole
    }

    fn row(
        &self,
        destination: IpNet,
        node: RouteNode<'_>,
        instances: &Self::Hops,
    ) -> Result<Row, CloudError> {
        let name = node.name;
        if let IpNet::V6(destination) = destination {
            let message = format!("{destination}: only IPv4 is routed to instances");
            return Err(CloudError::unsupported(CREATE, message));
        }
        let id = match node.provider_id.map(AwsId::read) {
            Some(Ok(AwsId::Instance(id))) => Some(id),
            Some(Ok(AwsId::Fargate(_))) => {
                let message = format!("Node {name}: a route cannot lead to Fargate");
                return Err(CloudError::unsupported(CREATE, message));
            }
            Some(Err(error)) => {
                return Err(CloudError::invalid(CREATE, format!("Node {name}: {error}")));
            }
            None => None,
        };
        let is_it = |instance: &&Ec2Instance| match &id {
            Some(id) => instance.id == *id,
            None => instance.private_dns_name.as_deref() == Some(name),
        };
        let live = instances
            .iter()
            .filter(|instance| instance.state != "terminated");
        let found = live.clone().find(is_it).ok_or_else(|| {
            let message = format!("Node {name}: its instance is not in the account");
            CloudError::new(CREATE, ErrorKind::NotFound, message)
        })?;
        Ok(Row {
            // Only a read says which table it is.
            table: String::new(),
            destination,
            hop: Hop::Instance {
                id: found.id.clone(),
                checks_source: found.source_dest_check,
            },
            is_blackhole: false,
        })
    }

    fn is_same(&self, wanted: &Row, present: &Row) -> bool {
        let id = |row: &Row| match &row.hop {
            Hop::Instance { id, .. } => Some(id.clone()),
            Hop::Other(_) => None,
        };
        wanted.destination == present.destination && id(wanted) == id(present)
    }

    async fn change(&self, change: &RowChange<Row>) -> Result<(), CloudError> {
        let api = &self.account.api;
        match change {
            RowChange::Remove(row) => {
                let call = Call::ec2("DeleteRoute")
                    .set("RouteTableId", &row.table)
                    .set("DestinationCidrBlock", row.destination);
                api.send(&call).await.map(drop)
            }
            RowChange::Add(row) => self.add(row).await,
        }
    }
}

impl AwsRoutes {
    /// An instance that drops what is not addressed to itself would drop what its Pods are sent.
    async fn add(&self, row: &Row) -> Result<(), CloudError> {
        let Hop::Instance { id, checks_source } = &row.hop else {
            return Err(CloudError::invalid(CREATE, "it leads to no instance"));
        };
        let api = &self.account.api;
        if *checks_source {
            let call = Call::ec2("ModifyInstanceAttribute")
                .set("InstanceId", id)
                .set("SourceDestCheck.Value", false);
            api.send(&call).await?;
        }
        let last = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let table = match last {
            Some(id) => id,
            None => self.table().await?.id,
        };
        let call = Call::ec2("CreateRoute")
            .set("RouteTableId", table)
            .set("DestinationCidrBlock", row.destination)
            .set("InstanceId", id);
        api.send(&call).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Tags;

    #[test]
    fn the_table_is_the_one_that_is_named_or_has_the_tag_of_this_cluster() {
        let table = |id: &str, tag: (&str, &str)| wire::RouteTable {
            id: id.to_owned(),
            is_main: false,
            tags: Tags::from([(tag.0.to_owned(), tag.1.to_owned())]),
            subnets: std::collections::BTreeSet::new(),
            routes: Vec::new(),
        };
        let cluster = ClusterTag {
            id: "x".to_owned(),
            has_legacy: true,
        };
        let ours = table("t-1", ("kubernetes.io/cluster/x", "owned"));
        let old = table("t-2", ("KubernetesCluster", "x"));
        let other = table("t-3", ("KubernetesCluster", "y"));
        for (case, tables, named, expected) in [
            ("of two clusters", vec![&ours, &other], None, Ok("t-1")),
            ("in the old form", vec![&old, &other], None, Ok("t-2")),
            ("named", vec![&other], Some("t-3"), Ok("t-3")),
            (
                "none",
                vec![&other],
                None,
                Err("no route table has the tag"),
            ),
            ("two", vec![&ours, &old], None, Err("t-1, t-2 all have")),
        ] {
            let tables = tables.into_iter().cloned().collect();
            let named = named.map(str::to_owned);
            let found = the_one(tables, named.as_ref(), &cluster);
            match (found, expected) {
                (Ok(found), Ok(id)) => assert_eq!(found.id, id, "{case}"),
                (Err(error), Err(part)) => assert!(error.message().contains(part), "{error}"),
                (found, _) => panic!("{case}: {found:?}"),
            }
        }
    }
}
