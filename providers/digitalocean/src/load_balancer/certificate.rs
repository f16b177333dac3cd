//! The certificate that a Service asks for, by ID or by name.

use std::time::Duration;

use cloudkeel_api::{CloudError, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::SharedRead;

use super::Facts;
use crate::annotations::{CERTIFICATE_ID, CERTIFICATE_NAME};
use crate::client::Api;
use crate::config::BalancerType;
use crate::wire::{Certificate, LoadBalancer};

/// How long a list of certificates serves.
const FRESH: Duration = Duration::from_secs(10);
const LETS_ENCRYPT: &str = "lets_encrypt";

/// The certificates of the account.
#[derive(Debug, Default)]
pub(crate) struct Certificates(SharedRead<Vec<Certificate>>);

impl Certificates {
    /// The ID of the certificate that a Service asks for, if it asks for one and its load balancer ends TLS. [`Invalid`](cloudkeel_api::ErrorKind::Invalid)
    /// if there is none of its name.
    pub(crate) async fn find(
        &self,
        api: &Api,
        facts: &Facts,
        spec: &LoadBalancerSpec,
        have: Option<&LoadBalancer>,
    ) -> Result<Option<String>, CloudError> {
        let annotations = &spec.balancer_ref.annotations;
        if facts.kind(annotations, have) == BalancerType::Network {
            return Ok(None);
        }
        let asked = |key: &str| annotations.get(key).filter(|text| !text.is_empty());
        if let Some(id) = asked(CERTIFICATE_ID.name()) {
            return renewed(api, id, have).await.map(Some);
        }
        let Some(name) = asked(CERTIFICATE_NAME.name()) else {
            return Ok(None);
        };
        let read = || api.every::<Certificate>(Priority::Normal);
        let all = self.0.no_older_than(FRESH, read).await?;
        let found = all.iter().find(|certificate| certificate.name == *name);
        let found = found.ok_or_else(|| {
            let key = CERTIFICATE_NAME.name();
            let message = format!("{key}: there is no certificate {name:?}");
            CloudError::invalid("find certificate", message)
        })?;
        Ok(Some(found.id.clone()))
    }
}

/// The certificate of this ID, or the one that Let's Encrypt has issued in its place: that has a new ID, and the load
/// balancer gets it at once.
async fn renewed(
    api: &Api,
    asked: &String,
    have: Option<&LoadBalancer>,
) -> Result<String, CloudError> {
    let find = |id| api.find::<Certificate>(id, Priority::Normal);
    let present = have.and_then(LoadBalancer::certificate);
    let Some(present) = present.filter(|present| *present != asked) else {
        return Ok(asked.clone());
    };
    match find(present).await? {
        Some(present) if present.kind == LETS_ENCRYPT => match find(asked).await? {
            Some(wanted) if wanted.name != present.name => Ok(wanted.id),
            _ => Ok(present.id),
        },
        _ => Ok(asked.clone()),
    }
}
