//! The Go admission server's webhook: asks the API whether it would take the load balancer of a Service.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, LoadBalancerSpec, Problem};
use cloudkeel_toolkit::{BalancerReview, Reviewed};
use tokio::time::timeout;

use crate::client::Api;
use crate::load_balancer::certificate::{Certificates, FIND, FoundCertificate};
use crate::load_balancer::desired::Desired;
use crate::load_balancer::{Facts, annotated_id, is_disowned};
use crate::wire::{BalancerRequest, LoadBalancer};

/// Less than an API server waits.
const WITHIN: Duration = Duration::from_secs(8);

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

    fn is_left_alone(&self, service: &LoadBalancerSpec) -> Result<bool, Problem> {
        is_disowned(&service.balancer_ref.annotations)
    }

    async fn request(
        &self,
        service: &LoadBalancerSpec,
    ) -> Result<Reviewed<BalancerRequest>, CloudError> {
        let certificates = Certificates::default();
        let found = timeout(WITHIN, certificates.find(&self.api, service, None)).await;
        let (certificate, missing) = match found {
            Ok(Ok(found)) => (found, None),
            Ok(Err(error)) if error.kind() == ErrorKind::Invalid => {
                (FoundCertificate::None, Some(error.message().to_owned()))
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                return Err(CloudError::new(
                    FIND,
                    ErrorKind::Timeout,
                    "no answer in time",
                ));
            }
        };
        let desired = Desired::of(service, &self.facts, None, certificate.id());
        let mut request = desired.request;
        request.validate_only = Some(true);
        // The owner tag is ours, and no business of this request.
        request.settings.tags = self.facts.cluster_tag.iter().cloned().collect();
        let problems = missing.map_or(desired.problems, |missing| vec![missing]);
        Ok(Reviewed { request, problems })
    }

    async fn validate(
        &self,
        service: &LoadBalancerSpec,
        old: Option<&LoadBalancerSpec>,
        request: &BalancerRequest,
    ) -> Result<(), CloudError> {
        let id = annotated_id(&service.balancer_ref);
        let id = id.or_else(|| annotated_id(&old?.balancer_ref));
        let request = match id {
            Some(id) => self.api.replace_request::<LoadBalancer>(id, request),
            None => self.api.create_request::<LoadBalancer>(request),
        };
        self.api.send(request.read_only().within(WITHIN)).await
    }
}
