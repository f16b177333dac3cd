//! Which cloud serves which Services, as the configuration says.

use cloudkeel_api::ClusterIdentity;
use cloudkeel_controllers::service::owner::{Classes, ServiceOwner};

use crate::config::{CloudEntry, Setup};

/// What the service controller has to know of the configuration.
pub(super) struct Balancing {
    pub(super) classes: Classes,
    pub(super) cluster: ClusterIdentity,
}

impl Balancing {
    pub(super) fn of(setup: &Setup, cluster: ClusterIdentity) -> Self {
        Self {
            classes: Classes::new(setup.clouds.iter().map(owner).collect()),
            cluster,
        }
    }
}

fn owner(entry: &CloudEntry) -> ServiceOwner {
    let scope = &entry.load_balancers;
    ServiceOwner {
        cloud: entry.name.clone(),
        default: scope.default,
        class: scope.class.clone(),
        target_clouds: scope.targets.clouds.clone(),
        by: scope.targets.by,
    }
}
