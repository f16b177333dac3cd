//! Everything that can be asked of the cloud, in one table.

use std::fmt;

use http::Method;
use serde::{Deserialize, Serialize};

/// One kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Who am I?
    ReadScope,
    /// All machines, or those of some IDs or a name.
    ListMachines,
    /// One machine.
    GetMachine,
    /// Makes a machine.
    CreateMachine,
    /// Destroys a machine.
    DeleteMachine,
    /// Switches a machine on.
    PowerOn,
    /// Switches a machine off.
    PowerOff,
    /// All balancers, or those of a name or with some labels.
    ListBalancers,
    /// One balancer.
    GetBalancer,
    /// Makes a balancer.
    CreateBalancer,
    /// Changes a balancer.
    ChangeBalancer,
    /// Takes a balancer down.
    DeleteBalancer,
    /// Replaces the listeners of a balancer.
    SetListeners,
    /// Adds, drains and removes targets of a balancer.
    ChangeTargets,
    /// All routes.
    ListRoutes,
    /// Makes a route.
    CreateRoute,
    /// Removes a route.
    DeleteRoute,
    /// Makes and removes many routes.
    BatchRoutes,
    /// One disk.
    GetVolume,
    /// All managed clusters.
    ListClusters,
    /// How far some work is.
    GetAction,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::ReadScope,
        Self::ListMachines,
        Self::GetMachine,
        Self::CreateMachine,
        Self::DeleteMachine,
        Self::PowerOn,
        Self::PowerOff,
        Self::ListBalancers,
        Self::GetBalancer,
        Self::CreateBalancer,
        Self::ChangeBalancer,
        Self::DeleteBalancer,
        Self::SetListeners,
        Self::ChangeTargets,
        Self::ListRoutes,
        Self::CreateRoute,
        Self::DeleteRoute,
        Self::BatchRoutes,
        Self::GetVolume,
        Self::ListClusters,
        Self::GetAction,
    ];

    /// Its place in the REST API.
    pub const fn path(self) -> &'static str {
        match self {
            Self::ReadScope => "/v1/scope",
            Self::ListMachines | Self::CreateMachine => "/v1/machines",
            Self::GetMachine | Self::DeleteMachine => "/v1/machines/{id}",
            Self::PowerOn => "/v1/machines/{id}/power-on",
            Self::PowerOff => "/v1/machines/{id}/power-off",
            Self::ListBalancers | Self::CreateBalancer => "/v1/balancers",
            Self::GetBalancer | Self::ChangeBalancer | Self::DeleteBalancer => "/v1/balancers/{id}",
            Self::SetListeners => "/v1/balancers/{id}/listeners",
            Self::ChangeTargets => "/v1/balancers/{id}/targets",
            Self::ListRoutes | Self::CreateRoute => "/v1/routes",
            Self::DeleteRoute => "/v1/routes/{id}",
            Self::BatchRoutes => "/v1/routes/batch",
            Self::GetVolume => "/v1/volumes/{id}",
            Self::ListClusters => "/v1/clusters",
            Self::GetAction => "/v1/actions/{id}",
        }
    }

    /// Its method in the REST API.
    pub const fn method(self) -> Method {
        match self {
            Self::ReadScope
            | Self::ListMachines
            | Self::GetMachine
            | Self::ListBalancers
            | Self::GetBalancer
            | Self::ListRoutes
            | Self::GetVolume
            | Self::ListClusters
            | Self::GetAction => Method::GET,
            Self::CreateMachine
            | Self::PowerOn
            | Self::PowerOff
            | Self::CreateBalancer
            | Self::ChangeTargets
            | Self::CreateRoute
            | Self::BatchRoutes => Method::POST,
            Self::ChangeBalancer => Method::PATCH,
            Self::SetListeners => Method::PUT,
            Self::DeleteMachine | Self::DeleteBalancer | Self::DeleteRoute => Method::DELETE,
        }
    }

    /// Whether it could change anything.
    pub fn is_mutating(self) -> bool {
        self.method() != Method::GET
    }

    /// Whether it answers with a list.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Self::ListMachines | Self::ListBalancers | Self::ListRoutes | Self::ListClusters
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method(), self.path())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_operations_share_method_and_path() {
        let places: BTreeSet<_> = Operation::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(places.len(), Operation::ALL.len());
    }
}
