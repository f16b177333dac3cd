//! Routes on the wire.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::ErrorInfo;

/// A route of the project's network. Destinations are unique.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Never used twice.
    pub id: u64,
    /// Which network.
    pub destination: IpNet,
    /// Where to.
    pub hop: Hop,
    /// There is nothing at the hop any more.
    pub blackhole: bool,
}

/// The next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hop {
    /// A machine of the project.
    Machine(u64),
    /// An address in its network.
    Ip(IpAddr),
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(id) => write!(f, "machine {id}"),
            Self::Ip(ip) => write!(f, "{ip}"),
        }
    }
}

/// What is asked for when a route is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRoute {
    /// Which network.
    pub destination: IpNet,
    /// Where to.
    pub hop: Hop,
}

/// Many changes in one call. Deletions come first; each change succeeds or fails on its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteBatch {
    /// IDs of routes to remove.
    #[serde(default)]
    pub delete: Vec<u64>,
    /// Routes to make.
    #[serde(default)]
    pub create: Vec<NewRoute>,
}

/// What became of a batch, in the order of its lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteBatchAnswer {
    /// Of the deletions.
    pub deleted: Vec<RouteResult>,
    /// Of the new routes.
    pub created: Vec<RouteResult>,
}

/// What became of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteResult {
    /// It happened; this is the ID of the route.
    Done(u64),
    /// It did not.
    Error(ErrorInfo),
}
