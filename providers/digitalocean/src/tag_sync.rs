//! Puts the cluster's tag on the load balancers of its Services, also on those that were created without it.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, Priority, ServiceFacts, ServiceType,
};
use tokio::time::{Instant, sleep_until};

use crate::annotations::LOAD_BALANCER_ID;
use crate::client::Api;
use crate::load_balancer::is_owned_by;
use crate::wire::LoadBalancer;

/// Its name.
pub(crate) const NAME: &str = "digitalocean-tag-sync";
/// The pause between two passes.
const PERIOD: Duration = Duration::from_mins(15);
/// Clusters of one account do not all begin at the same time.
const MAX_DELAY_SECONDS: u64 = 600;

/// The controller.
pub(crate) struct TagSync {
    pub(crate) api: Api,
    /// The Go CCM's tag of this cluster.
    pub(crate) tag: String,
}

#[async_trait]
impl BackgroundController for TagSync {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_by_default(&self) -> bool {
        true
    }

    fn watches_services(&self) -> bool {
        true
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let letters = self.tag.bytes().map(u64::from);
        let delay = letters.fold(0, |sum, letter| sum * 31 % MAX_DELAY_SECONDS + letter);
        let mut next = Instant::now() + Duration::from_secs(delay % MAX_DELAY_SECONDS);
        loop {
            let services = context.services.snapshot();
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                synced = self.sync(&services) => synced?,
            }
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                () = sleep_until(next) => next += PERIOD,
            }
        }
    }
}

impl TagSync {
    /// One list for all Services, and one call for all that lack the tag.
    async fn sync(&self, services: &[ServiceFacts]) -> Result<(), CloudError> {
        let served = services
            .iter()
            .filter(|service| service.service_type == ServiceType::LoadBalancer);
        let served: Vec<_> = served.filter(|service| !service.is_deleting).collect();
        if served.is_empty() {
            return Ok(());
        }
        let request = self
            .api
            .list::<LoadBalancer>()
            .priority(Priority::Background);
        let all: Vec<LoadBalancer> = self.api.all(request).await?;
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
    let lacking = all
        .iter()
        .filter(|balancer| !balancer.settings.tags.contains(tag));
    let lacking = lacking.filter(|balancer| is_served(balancer));
    lacking.map(|balancer| balancer.id.clone()).collect()
}
