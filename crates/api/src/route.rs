//! Routes for Pod networks.

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;
use serde::Serialize;

use crate::{CloudError, NodeFacts, ProviderId, Shared};

/// The target of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteTarget {
    /// To a Node of this cluster.
    Node {
        /// Its name.
        name: String,
        /// Its UID, by which some clouds name routes.
        uid: String,
        /// Its instance.
        provider_id: Option<ProviderId>,
        /// Its addresses, in their order.
        addresses: Vec<IpAddr>,
    },
    /// To a next hop that is no Node of this cluster: another owner's, or none.
    Elsewhere {
        /// The cloud's name of the next hop.
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
    /// The cloud's name of it. Empty on a route that is still to be created.
    pub name: String,
    /// Which Pod network.
    pub destination: IpNet,
    /// Where it leads.
    pub target: RouteTarget,
    /// Whether the cloud reports that its target does not exist.
    pub blackhole: bool,
    /// Set if the Node's addresses are part of the route, so that a changed address makes it stale.
    pub follows_addresses: bool,
}

/// One change to the cloud's routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteChange {
    /// Create this route. The provider chooses the name.
    Create(Route),
    /// Delete this route, exactly as it was listed.
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

/// The routes of a cloud. The route controller decides which routes should exist; a provider only lists and changes
/// them.
#[async_trait]
pub trait Routes: Send + Sync {
    /// Every route of the table that this cluster uses, also those of other owners.
    ///
    /// `nodes` are the cluster's, so that next hops can be recognized. Complete or an error.
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError>;

    /// Applies changes, in as few calls as the cloud allows, deletions first. One result per change, in their order.
    ///
    /// Idempotent: creating what exists and deleting what does not both succeed without a mutating call. A locked
    /// table is [`Busy`](crate::ErrorKind::Busy), a lost race [`Conflict`](crate::ErrorKind::Conflict), a full one
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded), a network of a family that the cloud cannot route
    /// [`Unsupported`](crate::ErrorKind::Unsupported), a target whose instance is missing
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
