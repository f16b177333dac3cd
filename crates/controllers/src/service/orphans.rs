//! Balancers that carry this cluster's owner labels: those of Services that another cloud serves by now are
//! deleted, those without a Service are reported.

use std::collections::BTreeMap;

use cloudkeel_api::{ErrorKind, OwnedResource};
use tracing::{debug, warn};

use super::controller::ServiceController;
use super::owner::{owner_of_service, wants_balancer};
use super::record::Presence;
use crate::runtime::Urgency;

/// The balancers of this cluster, by cloud.
type Shown<'a> = BTreeMap<&'a str, Vec<OwnedResource>>;

impl ServiceController {
    /// Asks every cloud for the balancers of this cluster.
    pub(super) async fn check_for_orphans(&self) {
        let mut shown = Shown::new();
        for cloud in &self.parts.clouds {
            let provider = cloud.provider();
            let Some(balancers) = provider.load_balancers() else {
                continue;
            };
            let cloud = cloud.name.as_str();
            match balancers.owned().await {
                Ok(owned) => _ = shown.insert(cloud, owned),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    debug!(cloud, %error, "the cloud cannot list the cluster's load balancers");
                }
                Err(error) => warn!(cloud, %error, "failed to list the cluster's load balancers"),
            }
        }
        for (cloud, owned) in &shown {
            let orphans = owned.iter().filter(|it| self.is_orphan(cloud, it, &shown));
            self.parts.observer.left_over(cloud, orphans.count());
        }
    }

    /// Whether a balancer has no Service any more, which is logged. One whose Service another cloud serves
    /// by now is deleted when that is worked on.
    fn is_orphan(&self, cloud: &str, balancer: &OwnedResource, shown: &Shown<'_>) -> bool {
        let OwnedResource {
            id, name, service, ..
        } = balancer;
        let key = service.as_ref().map(ToString::to_string);
        let key = key.unwrap_or_default();
        let is_its = |uid: &str| service.as_ref().is_some_and(|service| service.uid == uid);
        let is_known = self.records.read(&key, |record| {
            let mut clouds = record.clouds();
            is_its(&record.seen.service.uid) && clouds.any(|known| known == cloud)
        });
        if is_known == Some(true) {
            return false;
        }
        let classes = &self.parts.classes;
        let there = self.parts.services.get(&key);
        if let Some(there) = there.filter(|there| is_its(&there.service.uid)) {
            let owner = owner_of_service(&there, classes);
            // One that is being deleted is cleaned up here.
            if there.deleting || owner.is_some_and(|owner| owner.cloud == cloud) {
                return false;
            }
            // The token of one cloud may be that of the other: then both show the balancer that serves.
            let serving = owner.and_then(|owner| shown.get(owner.cloud.as_str()));
            if serving.is_some_and(|owned| owned.contains(balancer)) {
                return false;
            }
            if wants_balancer(&there, classes) {
                warn!(
                    cloud,
                    service = key,
                    balancer = id,
                    "another cloud serves it now"
                );
                self.records.update(&there, |record| {
                    record.set_presence(cloud, Presence::Possible);
                });
                self.queue.add(key, Urgency::Refresh);
                return false;
            }
        }
        warn!(
            cloud,
            balancer = id,
            name,
            service = service.as_ref().map(ToString::to_string),
            "a load balancer of this cluster has no service any more; it is left alone"
        );
        true
    }
}
