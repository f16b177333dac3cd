//! The Go admission server's webhook: asks the API whether it would take the load balancer of a Service.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, LoadBalancerSpec};
use cloudkeel_toolkit::{BalancerReview, REVIEW_TIMEOUT};

use crate::annotations::LOAD_BALANCER_ID;
use crate::client::Api;
use crate::load_balancer::certificate::Certificates;
use crate::load_balancer::desired::Desired;
use crate::load_balancer::{Facts, is_disowned};
use crate::wire::{BalancerRequest, LoadBalancer};

/// The webhook.
pub(crate) struct ServiceReview {
    pub(crate) api: Api,
    pub(crate) facts: Facts,
}

#[async_trait]
impl BalancerReview for ServiceReview {
    const NAME: &'static str = "digitalocean-lb-service";
    const PATH: &'static str = "/lb-service";
    const CLOUD: &'static str = "DigitalOcean";
    type Request = BalancerRequest;

    async fn request(
        &self,
        service: &LoadBalancerSpec,
    ) -> Result<Option<BalancerRequest>, CloudError> {
        if is_disowned(&service.balancer_ref.annotations)? {
            return Ok(None);
        }
        let all = Certificates::default();
        let certificate = all.find(&self.api, &self.facts, service, None).await?;
        let desired = Desired::of(service, &self.facts, None, certificate.as_deref());
        let mut request = desired.checked()?;
        request.validate_only = Some(true);
        // The owner tag is ours, and no business of this request.
        request.settings.tags.clone_from(&self.facts.cluster_tag);
        Ok(Some(request))
    }

    async fn validate(
        &self,
        service: &LoadBalancerSpec,
        old: Option<&LoadBalancerSpec>,
        request: &BalancerRequest,
    ) -> Result<(), CloudError> {
        let id_of = |it: &LoadBalancerSpec| LOAD_BALANCER_ID.readable(&it.balancer_ref.annotations);
        let id = id_of(service).or_else(|| id_of(old?));
        let request = match id {
            Some(id) => self.api.replace_request::<LoadBalancer>(&id, request),
            None => self.api.create_request::<LoadBalancer>(request),
        };
        let request = request.read_only().within(REVIEW_TIMEOUT);
        self.api.send(request).await
    }
}
