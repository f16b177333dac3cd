//! Routes for Pod networks.

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;
use serde::Serialize;

use crate::{CloudError, NodeFacts, ProviderId, Shared};

/// Where a route leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteTarget {
    /// To a Node of this cluster.
    Node {
        /// Its name.
        name: String,
        /// Its UID, by which some clouds name routes.
        uid: String,
        /// Its machine.
        provider_id: Option<ProviderId>,
        /// Its addresses, in their order.
        addresses: Vec<IpAddr>,
    },
    /// To a next hop that is no Node of this cluster: somebody else's, or nobody's.
    Elsewhere {
        /// The cloud's word for the next hop.
        hop: String,
    },
}

impl RouteTarget {
    /// To this Node.
    pub fn node(node: &NodeFacts) -> Self {
        Self::Node {
            name: node.name.clone(),
            uid: node.uid.clone(),
            provider_id: node.provider_id.clone(),
            addresses: node
                .addresses
                .iter()
                .filter_map(crate::NodeAddress::ip)
                .collect(),
        }
    }

    /// The Node's name, if it leads to one.
    pub fn node_name(&self) -> Option<&str> {
        match self {
            Self::Node { name, .. } => Some(name),
            Self::Elsewhere { .. } => None,
        }
    }
}

/// One route of the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The cloud's name of it. Empty on a route that is still to be made.
    pub name: String,
    /// Which Pod network.
    pub destination: IpNet,
    /// Where it leads.
    pub target: RouteTarget,
    /// The cloud knows that it leads nowhere.
    pub blackhole: bool,
    /// Set if the Node's addresses are part of the route, so that a changed address makes it stale.
    pub follows_addresses: bool,
}

/// One change to the cloud's routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteChange {
    /// Make this route. The name is the provider's to choose.
    Create(Route),
    /// Remove this route, exactly as it was listed.
    Delete(Route),
}

impl fmt::Display for RouteChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, route) = match self {
            Self::Create(route) => ("create", route),
            Self::Delete(route) => ("delete", route),
        };
        let to = match &route.target {
            RouteTarget::Node { name, .. } => name,
            RouteTarget::Elsewhere { hop } => hop,
        };
        write!(f, "{verb} route {} to {to}", route.destination)
    }
}

/// The routes of a cloud. What should be there is decided by the route controller; a provider only
/// lists and changes.
#[async_trait]
pub trait Routes: Send + Sync {
    /// Every route of the table that this cluster uses, also those of others in it.
    ///
    /// `nodes` are the cluster's, so that next hops can be told apart. Complete or an error.
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError>;

    /// Carries out changes, in as few calls as the cloud allows, deletions first. One result per
    /// change, in their order.
    ///
    /// Idempotent: creating what is there and deleting what is not both succeed without a mutating
    /// call. A locked table is [`Busy`](crate::ErrorKind::Busy), a lost race
    /// [`Conflict`](crate::ErrorKind::Conflict), a full one
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded), a network of a family that the cloud
    /// cannot route [`Unsupported`](crate::ErrorKind::Unsupported), a target whose machine is missing
    /// [`NotFound`](crate::ErrorKind::NotFound).
    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reads_like_a_sentence() {
        let route = Route {
            name: String::new(),
            destination: "10.244.1.0/24".parse().unwrap(),
            target: RouteTarget::Elsewhere {
                hop: "10.0.0.9".into(),
            },
            blackhole: true,
            follows_addresses: false,
        };
        assert_eq!(
            RouteChange::Delete(route).to_string(),
            "delete route 10.244.1.0/24 to 10.0.0.9"
        );
    }
}
