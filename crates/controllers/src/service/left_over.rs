//! Balancers that carry this cluster's mark: those of Services that another cloud serves by now are
//! removed, those whose Service is gone are told.

use cloudkeel_api::{ErrorKind, OwnedResource, ServiceRef};
use tracing::{debug, warn};

use super::controller::ServiceController;
use super::records::Presence;
use super::wants::{owner_of_service, wants_balancer};
use crate::runtime::Urgency;

/// Whose a balancer is, by its marks.
enum Whose {
    /// Its Service's, which this cloud serves or is about to lose.
    InUse,
    /// Its Service's, which another cloud serves.
    Moved(ServiceRef),
    /// Nobody's any more.
    Nobody,
}

impl ServiceController {
    /// Asks every cloud for the balancers of this cluster.
    pub(super) async fn look_for_left_over(&self) {
        for cloud in &self.parts.clouds {
            let provider = cloud.provider();
            let Some(balancers) = provider.load_balancers() else {
                continue;
            };
            match balancers.owned().await {
                Ok(owned) => self.sort_out(&cloud.name, &owned),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    debug!(cloud = cloud.name, %error, "left-overs cannot be found");
                }
                Err(error) => {
                    warn!(cloud = cloud.name, %error, "left-overs cannot be looked for now");
                }
            }
        }
    }

    fn sort_out(&self, cloud: &str, owned: &[OwnedResource]) {
        let mut left_over = 0;
        for balancer in owned {
            match self.whose(cloud, balancer) {
                Whose::InUse => {}
                Whose::Moved(service) => {
                    let key = service.to_string();
                    warn!(cloud, %service, balancer = balancer.id, "another cloud serves it now");
                    if let Some(there) = self.parts.services.get(&key) {
                        self.records.update(&there, |record| {
                            record.set_presence(cloud, Presence::Possible);
                        });
                    }
                    self.queue.add(key, Urgency::Refresh);
                }
                Whose::Nobody => {
                    left_over += 1;
                    warn!(
                        cloud,
                        balancer = balancer.id,
                        name = balancer.name,
                        service = balancer.service.as_ref().map(ToString::to_string),
                        "a load balancer of this cluster has no service any more; it is left alone"
                    );
                }
            }
        }
        self.parts.observer.left_over(cloud, left_over);
    }

    fn whose(&self, cloud: &str, balancer: &OwnedResource) -> Whose {
        let Some(service) = &balancer.service else {
            return Whose::Nobody;
        };
        let key = service.to_string();
        let is_ours = self.records.read(&key, |record| {
            record.uid() == service.uid && record.clouds().any(|known| known == cloud)
        });
        if is_ours == Some(true) {
            return Whose::InUse;
        }
        let there = self.parts.services.get(&key);
        let Some(there) = there.filter(|there| there.service.uid == service.uid) else {
            return Whose::Nobody;
        };
        let classes = &self.parts.classes;
        match owner_of_service(&there, classes) {
            Some(serving) if serving.cloud == cloud => Whose::InUse,
            Some(_) if wants_balancer(&there, classes) => Whose::Moved(service.clone()),
            // It is being deleted, and its cleanup will come by here.
            _ if there.deleting => Whose::InUse,
            _ => Whose::Nobody,
        }
    }
}
