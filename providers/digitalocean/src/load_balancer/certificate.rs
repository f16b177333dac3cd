//! The certificate that a Service asks for, by ID or by name.

use std::time::Duration;

use cloudkeel_api::{CloudError, Failures, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::SharedRead;

use crate::annotations::{CERTIFICATE_ID, CERTIFICATE_NAME};
use crate::client::Api;
use crate::wire::{Certificate, LoadBalancer};

/// How long a list of certificates serves.
const FRESH: Duration = Duration::from_secs(10);
pub(crate) const FIND: &str = "find certificate";
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
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) | Self::Renewed(id) => Some(id),
            Self::None | Self::Missing(_) => None,
        }
    }
}

/// The certificates of the account.
#[derive(Debug, Default)]
pub(crate) struct Certificates(SharedRead<Vec<Certificate>>);

impl Certificates {
    /// The certificate that a Service asks for. [`Invalid`](cloudkeel_api::ErrorKind::Invalid) if there is none of its name.
    pub(crate) async fn find(
        &self,
        api: &Api,
        spec: &LoadBalancerSpec,
        have: Option<&LoadBalancer>,
    ) -> Result<FoundCertificate, CloudError> {
        let annotations = &spec.balancer_ref.annotations;
        let asked = |key: &str| annotations.get(key).filter(|text| !text.is_empty());
        if let Some(id) = asked(CERTIFICATE_ID.name()) {
            return renewed(api, id, have).await;
        }
        let Some(name) = asked(CERTIFICATE_NAME.name()) else {
            return Ok(FoundCertificate::None);
        };
        let read = || api.every::<Certificate>(Priority::Normal);
        let all = self.0.no_older_than(FRESH, read).await?;
        let found = all.iter().find(|certificate| certificate.name == *name);
        let found = found.ok_or_else(|| {
            let key = CERTIFICATE_NAME.name();
            CloudError::invalid(FIND, format!("{key}: there is no certificate {name:?}"))
        })?;
        Ok(FoundCertificate::Id(found.id.clone()))
    }
}

/// Let's Encrypt certificates get a new ID when they are renewed, and the load balancer gets it at once.
async fn renewed(
    api: &Api,
    asked: &String,
    have: Option<&LoadBalancer>,
) -> Result<FoundCertificate, CloudError> {
    let asked_for = || FoundCertificate::Id(asked.clone());
    let present = have.and_then(LoadBalancer::certificate);
    let Some(present) = present.filter(|present| *present != asked) else {
        return Ok(asked_for());
    };
    let present = api.find::<Certificate>(present, Priority::Normal).await?;
    let Some(present) = present.filter(|present| present.kind == LETS_ENCRYPT) else {
        return Ok(asked_for());
    };
    Ok(
        match api.find::<Certificate>(asked, Priority::Normal).await? {
            Some(wanted) if wanted.name != present.name => asked_for(),
            Some(_) | None => FoundCertificate::Renewed(present.id),
        },
    )
}
