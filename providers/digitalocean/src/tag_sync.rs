//! Puts the cluster's tag on the load balancers of its Services, also on those that were created without it.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Priority, ServiceFacts};
use cloudkeel_toolkit::{Cause, Schedule, ServiceFollower};

use crate::annotations::LOAD_BALANCER_ID;
use crate::client::Api;
use crate::load_balancer::is_owned_by;
use crate::wire::LoadBalancer;

/// The pause between two passes.
const PERIOD: Duration = Duration::from_mins(15);
/// Clusters of one account do not all begin at the same time.
const MAX_DELAY: Duration = Duration::from_mins(10);

/// The controller.
pub(crate) struct TagSync {
    pub(crate) api: Api,
    /// The Go CCM's tag of this cluster.
    pub(crate) tag: String,
}

#[async_trait]
impl ServiceFollower for TagSync {
    const NAME: &'static str = "digitalocean-tag-sync";

    fn schedule(&self) -> Schedule {
        Schedule::spread(PERIOD, MAX_DELAY, &self.tag)
    }

    /// One list for all Services, and one call for all that lack the tag.
    async fn reconcile(&self, services: &[ServiceFacts], _: Cause) -> Result<(), CloudError> {
        let served = services.iter().filter(|service| service.has_balancer());
        let served: Vec<_> = served.collect();
        if served.is_empty() {
            return Ok(());
        }
        let all: Vec<LoadBalancer> = self.api.every(Priority::Background).await?;
        let untagged = untagged(&served, &all, &self.tag);
        if untagged.is_empty() {
            return Ok(());
        }
        self.api.tag(&self.tag, &untagged).await
    }
}

/// The load balancers of these Services that lack the tag. Pure.
fn untagged(services: &[&ServiceFacts], all: &[LoadBalancer], tag: &String) -> Vec<String> {
    let is_served = |balancer: &LoadBalancer| {
        services.iter().any(|service| {
            let id = service.annotations.get(LOAD_BALANCER_ID.name());
            match id.filter(|id| !id.is_empty()) {
                Some(id) => *id == balancer.id,
                None => is_owned_by(balancer, &service.service),
            }
        })
    };
    let lacks = |balancer: &LoadBalancer| !balancer.settings.tags.contains(tag);
    let lacking = all.iter().filter(|it| lacks(it) && is_served(it));
    lacking.map(|balancer| balancer.id.clone()).collect()
}
