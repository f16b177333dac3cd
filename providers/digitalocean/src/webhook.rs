//! The Go admission server's webhook: asks the API whether it would take the load balancer of a Service.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, CloudError, ErrorKind, LoadBalancerSpec, Webhook,
};
use cloudkeel_toolkit::balancer_asked_by;
use serde_json::Value;

use crate::annotations::{CERTIFICATE_ID, CERTIFICATE_NAME, LOAD_BALANCER_ID};
use crate::client::Api;
use crate::load_balancer::desired::Desired;
use crate::load_balancer::health::KUBE_PROXY_PORT;
use crate::load_balancer::{Facts, is_disowned};
use crate::wire::{BalancerRequest, Certificate};

/// Less than an API server waits.
const WITHIN: Duration = Duration::from_secs(8);

/// The webhook.
pub(crate) struct ServiceWebhook {
    pub(crate) api: Api,
    pub(crate) facts: Facts,
}

#[async_trait]
impl Webhook for ServiceWebhook {
    fn name(&self) -> &'static str {
        "digitalocean-lb-service"
    }

    fn path(&self) -> &'static str {
        "/lb-service"
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        if !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
            return Ok(allowed(None));
        }
        let Some(service) = asked_by(&request.object, request) else {
            return Ok(allowed(None));
        };
        match is_disowned(&service.balancer_ref.annotations) {
            Ok(true) => return Ok(allowed(None)),
            Ok(false) => {}
            Err(problem) => return Ok(denied(&problem.to_string())),
        }
        let (asked, problems) = self.request(&service).await?;
        if !problems.is_empty() {
            return Ok(denied(&problems.join("; ")));
        }
        let old = asked_by(&request.old_object, request);
        if let Some(old) = &old
            && self.request(old).await?.0 == asked
        {
            return Ok(allowed(None));
        }
        let id = id_of(&service).or_else(|| old.as_ref().and_then(id_of));
        let answer = self.api.validate(id, &asked, WITHIN).await;
        Ok(decide(answer))
    }
}

fn asked_by(object: &Value, request: &AdmissionRequest) -> Option<LoadBalancerSpec> {
    balancer_asked_by(object, request, KUBE_PROXY_PORT)
}

fn id_of(service: &LoadBalancerSpec) -> Option<&String> {
    let id = service
        .balancer_ref
        .annotations
        .get(LOAD_BALANCER_ID.name());
    id.filter(|id| !id.is_empty())
}

impl ServiceWebhook {
    /// What the API is asked about, and what is wrong before it is asked.
    async fn request(
        &self,
        service: &LoadBalancerSpec,
    ) -> Result<(BalancerRequest, Vec<String>), CloudError> {
        let annotations = &service.balancer_ref.annotations;
        let given = |key: &str| annotations.get(key).filter(|text| !text.is_empty());
        let mut missing = None;
        let certificate = match (given(CERTIFICATE_ID.name()), given(CERTIFICATE_NAME.name())) {
            (Some(id), _) => Some(id.clone()),
            (None, None) => None,
            (None, Some(name)) => {
                let request = self.api.list::<Certificate>().within(WITHIN);
                let all: Vec<Certificate> = self.api.all(request).await?;
                let found = all
                    .into_iter()
                    .find(|certificate| certificate.name == *name);
                if found.is_none() {
                    let key = CERTIFICATE_NAME.name();
                    missing = Some(format!("{key}: there is no certificate {name:?}"));
                }
                found.map(|certificate| certificate.id)
            }
        };
        let Desired {
            mut request,
            problems,
            ..
        } = Desired::of(service, &self.facts, None, certificate.as_deref());
        request.validate_only = Some(true);
        // The owner tag is ours, and no business of this request.
        request.settings.tags = self.facts.cluster_tag.iter().cloned().collect();
        let problems = missing.map_or(problems, |missing| vec![missing]);
        Ok((request, problems))
    }
}

fn allowed(warning: Option<String>) -> Admission {
    Admission::Allow {
        patch: Vec::new(),
        warnings: warning.into_iter().collect(),
    }
}

fn denied(why: &str) -> Admission {
    Admission::Deny {
        why: format!("failed to build load balancer request: {why}"),
    }
}

/// What the API understood and refused is denied. That it cannot say now is no reason to deny anything.
fn decide(answer: Result<(), CloudError>) -> Admission {
    let Err(error) = answer else {
        return allowed(None);
    };
    match error.kind() {
        ErrorKind::Invalid
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Conflict
        | ErrorKind::LimitExceeded
        | ErrorKind::Denied
        | ErrorKind::Unsupported => Admission::Deny {
            why: format!(
                "DigitalOcean refuses this load balancer: {}",
                error.message()
            ),
        },
        _ => allowed(Some(format!(
            "the load balancer was not checked: {}",
            error.message()
        ))),
    }
}
