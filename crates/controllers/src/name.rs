//! The controllers by name. Every name that upstream ever used for one is kept here, once.

use std::fmt;

/// A controller of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControllerName {
    /// Initialises Nodes and keeps their addresses and labels current.
    CloudNode,
    /// Taints Nodes whose machines are shut down, deletes those whose machines are gone.
    CloudNodeLifecycle,
    /// Load balancers of Services.
    Service,
    /// Routes for Pod networks.
    Route,
    /// Hands out Pod networks to Nodes.
    NodeIpam,
}

impl ControllerName {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::CloudNode,
        Self::CloudNodeLifecycle,
        Self::Service,
        Self::Route,
        Self::NodeIpam,
    ];

    /// The name in `--controllers` and in health checks.
    pub const fn canonical(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node-controller",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle-controller",
            Self::Service => "service-lb-controller",
            Self::Route => "node-route-controller",
            Self::NodeIpam => "node-ipam-controller",
        }
    }

    /// The short name of old, still accepted in `--controllers` and used as a metric label.
    pub const fn alias(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle",
            Self::Service => "service",
            Self::Route => "route",
            Self::NodeIpam => "nodeipam",
        }
    }

    /// Further names under which a leader-migration file may list it.
    pub const fn migration_names(self) -> &'static [&'static str] {
        match self {
            Self::Service => &["service-controller"],
            Self::Route => &["route-controller"],
            Self::CloudNode | Self::CloudNodeLifecycle | Self::NodeIpam => &[],
        }
    }

    /// The ServiceAccount it uses with `--use-service-account-credentials`, for which every cluster
    /// has a role built in.
    pub const fn service_account(self) -> &'static str {
        match self {
            Self::CloudNode | Self::CloudNodeLifecycle | Self::NodeIpam => "node-controller",
            Self::Service => "service-controller",
            Self::Route => "route-controller",
        }
    }

    /// The controller that goes by this name in any of its spellings.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|controller| {
            controller.canonical() == name
                || controller.alias() == name
                || controller.migration_names().contains(&name)
        })
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_finds_its_controller_and_no_other() {
        for controller in ControllerName::ALL {
            for name in [controller.canonical(), controller.alias()] {
                assert_eq!(ControllerName::find(name), Some(controller), "{name}");
            }
            for name in controller.migration_names() {
                assert_eq!(ControllerName::find(name), Some(controller), "{name}");
            }
        }
        assert_eq!(ControllerName::find("node"), None);
    }
}
