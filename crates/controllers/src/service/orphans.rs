//! Checks the resources with this cluster's owner labels: deletes balancers of Services that another cloud serves now,
//! and reports balancers without a Service.

use std::collections::BTreeMap;

use cloudkeel_api::{ErrorKind, OwnedResource, ResourceKind, ServiceRef};
use tracing::{debug, warn};

use super::controller::ServiceController;
use super::owner::{owner_of_service, wants_balancer};
use super::record::Presence;
use crate::log_messages::{ORPHAN_CHECK_FAILED, ORPHAN_FOUND, OTHER_CLOUD_SERVES};
use crate::runtime::{Urgency, contain_call};

/// The resources of this cluster, by cloud.
type Owned<'a> = BTreeMap<&'a str, Vec<OwnedResource>>;

impl ServiceController {
    /// Lists the resources of this cluster in every cloud.
    pub(super) async fn check_for_orphans(&self) {
        let mut owned = Owned::new();
        for cloud in &self.parts.clouds {
            let provider = cloud.provider();
            let Some(balancers) = provider.load_balancers() else {
                continue;
            };
            let cloud = cloud.name.as_str();
            match contain_call("list what is owned", balancers.owned()).await {
                Ok(resources) => _ = owned.insert(cloud, resources),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    debug!(cloud, err = %error, "cloud cannot list load balancers of this cluster");
                }
                Err(error) => {
                    warn!(cloud, err = %error, "{ORPHAN_CHECK_FAILED}");
                }
            }
        }
        for (cloud, resources) in &owned {
            let orphans = resources
                .iter()
                .filter(|it| self.is_orphan(cloud, it, &owned));
            // Other resources go with their balancer; only balancers are counted.
            let balancers = orphans.filter(|it| it.kind == ResourceKind::LoadBalancer);
            self.parts.observer.left_over(cloud, balancers.count());
        }
    }

    /// Whether a resource has no Service any more, which is logged. One whose Service another cloud serves by now is
    /// deleted when the Service is reconciled.
    fn is_orphan(&self, cloud: &str, resource: &OwnedResource, owned: &Owned<'_>) -> bool {
        let service = resource.service.as_ref();
        let key = service.map(ToString::to_string).unwrap_or_default();
        let is_its = |known: &ServiceRef| service.is_some_and(|service| service.is(known));
        let is_known = self.records.read(&key, |record| {
            let mut clouds = record.clouds();
            is_its(&record.seen.service) && clouds.any(|known| known == cloud)
        });
        if is_known == Some(true) {
            return false;
        }
        let (kind, id) = (resource.kind.as_str(), &resource.id);
        let classes = &self.parts.classes;
        let current = self.parts.services.get(&key);
        if let Some(current) = current.filter(|current| is_its(&current.service)) {
            let owner = owner_of_service(&current, classes);
            // One that is being deleted is cleaned up here.
            if current.deleting || owner.is_some_and(|owner| owner.cloud == cloud) {
                return false;
            }
            // The token of one cloud may be that of the other: then both show the balancer that serves.
            let serving = owner.and_then(|owner| owned.get(owner.cloud.as_str()));
            if serving.is_some_and(|serving| serving.contains(resource)) {
                return false;
            }
            if wants_balancer(&current, classes) {
                warn!(cloud, service = key, kind, id, "{OTHER_CLOUD_SERVES}");
                self.records.update(&current, |record| {
                    record.set_presence(cloud, Presence::Seen);
                });
                self.queue.add(key, Urgency::Refresh);
                return false;
            }
        }
        let (name, service) = (&resource.name, service.map(ToString::to_string));
        warn!(cloud, service, kind, id, name, "{ORPHAN_FOUND}");
        true
    }
}
