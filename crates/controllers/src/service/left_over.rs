//! Balancers that carry this cluster's mark: those of Services that another cloud serves by now are
//! removed, those whose Service is gone are told.

use std::collections::BTreeMap;

use cloudkeel_api::{ErrorKind, OwnedBalancer, ServiceRef};
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

/// The balancers of this cluster, by cloud.
type Shown<'a> = BTreeMap<&'a str, Vec<OwnedBalancer>>;

/// Whether a cloud shows this balancer.
fn shows(shown: &Shown<'_>, cloud: &str, balancer: &OwnedBalancer) -> bool {
    shown
        .get(cloud)
        .is_some_and(|owned| owned.contains(balancer))
}

impl ServiceController {
    /// Asks every cloud for the balancers of this cluster.
    pub(super) async fn look_for_left_over(&self) {
        let mut shown = BTreeMap::new();
        for cloud in &self.parts.clouds {
            let Some(balancers) = cloud.provider.load_balancers() else {
                continue;
            };
            match balancers.owned().await {
                Ok(owned) => _ = shown.insert(cloud.name.as_str(), owned),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    debug!(cloud = cloud.name, %error, "left-overs cannot be found");
                }
                Err(error) => {
                    warn!(cloud = cloud.name, %error, "left-overs cannot be looked for now");
                }
            }
        }
        for (cloud, owned) in &shown {
            self.sort_out(cloud, owned, &shown);
        }
    }

    fn sort_out(&self, cloud: &str, owned: &[OwnedBalancer], shown: &Shown<'_>) {
        let mut left_over = 0;
        for balancer in owned {
            match self.whose(cloud, balancer, shown) {
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

    fn whose(&self, cloud: &str, balancer: &OwnedBalancer, shown: &Shown<'_>) -> Whose {
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
            // The token of one cloud is that of the other: both show the one that serves.
            Some(serving) if shows(shown, &serving.cloud, balancer) => Whose::InUse,
            Some(_) if wants_balancer(&there, classes) => Whose::Moved(service.clone()),
            // It is being deleted, and its cleanup will come by here.
            _ if there.deleting => Whose::InUse,
            _ => Whose::Nobody,
        }
    }
}
