//! The certificate that a Service asks for, by ID or by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Failures, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::{SharedRead, unresolved};

use crate::annotations::{CERTIFICATE_ID, CERTIFICATE_NAME};
use crate::client::Api;
use crate::wire::{Certificate, LoadBalancer};

/// How long a list of certificates serves.
const FRESH: Duration = Duration::from_secs(10);
const LETS_ENCRYPT: &str = "lets_encrypt";

/// The certificate of a Service's ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum FoundCertificate {
    /// None is asked for.
    #[default]
    None,
    /// This one.
    Id(String),
    /// The one that Let's Encrypt issued in place of the one that is asked for: the Service gets its ID.
    Renewed(String),
    /// It cannot be found.
    Missing(Failures),
}

impl FoundCertificate {
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) | Self::Renewed(id) => Some(id),
            Self::None | Self::Missing(_) => None,
        }
    }
}

/// The certificates of the account.
#[derive(Debug, Default)]
pub(crate) struct Certificates(SharedRead<Vec<Certificate>>);

fn asked<'a>(annotations: &'a BTreeMap<String, String>, key: &str) -> Option<&'a String> {
    annotations.get(key).filter(|text| !text.is_empty())
}

impl Certificates {
    pub(super) async fn find(
        &self,
        api: &Api,
        spec: &LoadBalancerSpec,
        have: Option<&LoadBalancer>,
    ) -> Result<FoundCertificate, CloudError> {
        let annotations = &spec.balancer_ref.annotations;
        let found = if let Some(id) = asked(annotations, CERTIFICATE_ID.name()) {
            renewed(api, id, have).await
        } else if let Some(name) = asked(annotations, CERTIFICATE_NAME.name()) {
            self.named(api, name).await
        } else {
            return Ok(FoundCertificate::None);
        };
        found.or_else(|error| unresolved(error).map(FoundCertificate::Missing))
    }

    async fn named(&self, api: &Api, name: &str) -> Result<FoundCertificate, CloudError> {
        let read = || api.all(api.list::<Certificate>());
        let all: Arc<Vec<Certificate>> = self.0.no_older_than(FRESH, read).await?;
        let found = all.iter().find(|certificate| certificate.name == name);
        let missing = || {
            let message = format!(
                "{}: there is no certificate {name:?}",
                CERTIFICATE_NAME.name()
            );
            CloudError::invalid("find certificate", message)
        };
        let id = found.ok_or_else(missing)?.id.clone();
        Ok(FoundCertificate::Id(id))
    }
}

async fn get(api: &Api, id: &str) -> Result<Option<Certificate>, CloudError> {
    match api
        .get::<Certificate>(&id.to_owned(), Priority::Normal)
        .await
    {
        Ok(certificate) => Ok(Some(certificate)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Let's Encrypt certificates get a new ID when they are renewed, and the load balancer gets it at once.
async fn renewed(
    api: &Api,
    asked: &str,
    have: Option<&LoadBalancer>,
) -> Result<FoundCertificate, CloudError> {
    let asked_for = || FoundCertificate::Id(asked.to_owned());
    let present = have.and_then(LoadBalancer::certificate);
    let Some(present) = present.filter(|present| *present != asked) else {
        return Ok(asked_for());
    };
    let present = get(api, present).await?;
    let Some(present) = present.filter(|present| present.kind == LETS_ENCRYPT) else {
        return Ok(asked_for());
    };
    Ok(match get(api, asked).await? {
        Some(wanted) if wanted.name != present.name => asked_for(),
        Some(_) | None => FoundCertificate::Renewed(present.id),
    })
}
