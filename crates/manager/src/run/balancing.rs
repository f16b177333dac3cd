//! Which cloud serves which Services, as the configuration says.

use std::sync::Arc;

use cloudkeel_api::{ClusterIdentity, LoadBalancers};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::service::owner::{Classes, ServiceOwner};

use crate::config::{CloudEntry, Setup};

/// What the service controller has to know of the configuration.
pub(super) struct Balancing {
    pub(super) classes: Classes,
    pub(super) cluster: ClusterIdentity,
}

impl Balancing {
    /// From the configuration, and from what the providers serve without it.
    pub(super) fn of(setup: &Setup, clouds: &[Arc<Cloud>], cluster: ClusterIdentity) -> Self {
        let owners = setup.clouds.iter().zip(clouds);
        let owners = owners.map(|(entry, cloud)| owner(entry, cloud));
        Self {
            classes: Classes::new(owners.collect()),
            cluster,
        }
    }
}

fn owner(entry: &CloudEntry, cloud: &Cloud) -> ServiceOwner {
    let scope = &entry.load_balancers;
    let provider = cloud.provider();
    let mut classes = scope.classes.clone();
    classes.extend(
        provider
            .load_balancers()
            .map(LoadBalancers::classes)
            .unwrap_or_default(),
    );
    ServiceOwner {
        cloud: entry.name.clone(),
        default: scope.default,
        classes,
        target_clouds: scope.targets.clouds.clone(),
        by: scope.targets.by,
    }
}
