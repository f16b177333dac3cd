//! Puts the cluster's tag on the load balancers of its Services, also on those that were created without it.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Priority, ServiceFacts};
use cloudkeel_toolkit::{Cause, Schedule, ServiceFollower, TaggedBalancers};

use crate::client::Api;
use crate::wire::LoadBalancer;

/// The pause between two passes.
const PERIOD: Duration = Duration::from_mins(15);
/// Clusters of one account do not all begin at the same time.
const MAX_DELAY: Duration = Duration::from_mins(10);

/// The controller.
pub(crate) struct TagSync {
    pub(crate) api: Api,
    pub(crate) balancers: TaggedBalancers<LoadBalancer>,
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
        let served = services.iter().filter(|it| it.has_managed_balancer());
        let served: Vec<_> = served.collect();
        if served.is_empty() {
            return Ok(());
        }
        let all = self.balancers.all(&self.api, Priority::Background).await?;
        let is_served = |it: &LoadBalancer| served.iter().any(|of| self.balancers.is_of(it, of));
        let lacking = all
            .iter()
            .filter(|it| !it.settings.tags.contains(&self.tag));
        let untagged = lacking.filter(|it| is_served(it)).map(|it| it.id.clone());
        let untagged: Vec<_> = untagged.collect();
        if untagged.is_empty() {
            return Ok(());
        }
        self.api.tag(&self.tag, &untagged).await
    }
}
