//! The certificates of HTTPS services.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{Claim, CloudError, ErrorKind, Failures};

use super::desired::{CertificateWish, Desired};
use super::marks::{SERVICE_UID, marked};
use super::step::NewCertificate;
use crate::annotations::{HTTP_CERTIFICATES, ServiceProtocol};
use crate::client::Api;
use crate::wire::{Certificate, Issuance};

const OPERATION: &str = "find certificate";

/// The label that has a certificate issued by the staging authority.
const STAGING: &str = "HC-Use-Staging-CA";

/// What is known of the wanted certificates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Certificates {
    /// None are wanted.
    #[default]
    NotWanted,
    /// Their IDs.
    Known(BTreeSet<u64>),
    /// The one that should be managed is not there.
    Missing(NewCertificate),
    /// The cloud is still having it issued.
    Pending(String),
    /// They cannot be had, or could not be looked up.
    Unobtainable(Failures),
}

impl Certificates {
    /// The IDs, if any are to be set.
    pub(super) const fn ids(&self) -> Option<&BTreeSet<u64>> {
        match self {
            Self::Known(ids) => Some(ids),
            Self::NotWanted | Self::Missing(_) | Self::Pending(_) | Self::Unobtainable(_) => None,
        }
    }

    /// Whether services have to wait for one.
    pub(super) const fn is_awaited(&self) -> bool {
        match self {
            Self::Missing(_) | Self::Pending(_) | Self::Unobtainable(_) => true,
            Self::NotWanted | Self::Known(_) => false,
        }
    }
}

/// Where certificates are looked for.
#[derive(Clone, Copy)]
pub(super) enum Book<'a> {
    /// In the cloud.
    Cloud(&'a Api),
    /// In a list of all of them.
    Listed(&'a [Certificate]),
}

impl Book<'_> {
    async fn named(self, name: &str) -> Result<Option<Certificate>, CloudError> {
        let is_it = |certificate: &Certificate| certificate.name == name;
        match self {
            Self::Cloud(api) => Ok(api.certificates_named(name).await?.into_iter().find(is_it)),
            Self::Listed(all) => Ok(all.iter().find(|certificate| is_it(certificate)).cloned()),
        }
    }

    async fn of(self, uid: &String) -> Result<Vec<Certificate>, CloudError> {
        match self {
            Self::Cloud(api) => api.certificates_with(SERVICE_UID, uid).await,
            Self::Listed(all) => {
                let ours = all
                    .iter()
                    .filter(|c| c.labels.get(SERVICE_UID) == Some(uid));
                Ok(ours.cloned().collect())
            }
        }
    }
}

/// Whether finding them needs a look at the cloud.
pub(super) fn needs_a_look(asked: &Desired) -> bool {
    let https = asked.protocol == ServiceProtocol::Https;
    let is_named = !matches!(
        asked.certificates,
        CertificateWish::None | CertificateWish::Impossible(_)
    );
    https && is_named
}

/// Finds the wanted certificates.
pub(super) async fn find(
    book: Book<'_>,
    asked: &Desired,
    claim: &Claim,
) -> Result<Certificates, CloudError> {
    if asked.protocol != ServiceProtocol::Https {
        return Ok(Certificates::NotWanted);
    }
    match &asked.certificates {
        CertificateWish::None => Ok(Certificates::NotWanted),
        CertificateWish::Impossible(why) => Ok(unobtainable(why)),
        CertificateWish::Uploaded(names) => find_uploaded(book, names).await,
        CertificateWish::Managed {
            name,
            domains,
            staging,
        } => {
            let ours = book.of(&claim.service.uid).await?;
            Ok(judge_managed(&ours, claim, || {
                new(name, domains, *staging, claim)
            }))
        }
    }
}

fn unobtainable(why: impl Into<String>) -> Certificates {
    Certificates::Unobtainable(Failures::invalid(why))
}

async fn find_uploaded(book: Book<'_>, names: &[String]) -> Result<Certificates, CloudError> {
    let mut ids = BTreeSet::new();
    for name in names {
        if let Ok(id) = name.parse() {
            ids.insert(id);
            continue;
        }
        let Some(certificate) = book.named(name).await? else {
            let key = HTTP_CERTIFICATES.name();
            let why = format!("{key}: the project has no certificate {name:?}");
            return Ok(unobtainable(why));
        };
        ids.insert(certificate.id);
    }
    Ok(Certificates::Known(ids))
}

/// What is to be done about the one certificate with our mark. Pure.
fn judge_managed(
    ours: &[Certificate],
    claim: &Claim,
    new: impl FnOnce() -> NewCertificate,
) -> Certificates {
    match ours {
        [] => Certificates::Missing(new()),
        [one] => match one.issuance() {
            Issuance::Done => Certificates::Known(BTreeSet::from([one.id])),
            Issuance::Pending => Certificates::Pending(one.name.clone()),
            Issuance::Failed(why) => unobtainable(format!(
                "certificate {} ({}) could not be issued: {why}; mend the cause and retry it in the \
                 cloud, or delete it",
                one.id, one.name
            )),
        },
        several => {
            let ids: Vec<_> = several.iter().map(|c| c.id.to_string()).collect();
            unobtainable(format!(
                "certificates {} all carry the mark of {}: delete all but one",
                ids.join(" and "),
                claim.service
            ))
        }
    }
}

fn new(name: &str, domains: &[String], staging: bool, claim: &Claim) -> NewCertificate {
    // Certificates carry the mark of the Service alone, as the Go CCM's do.
    let mut labels = marked(&BTreeMap::new(), claim, None);
    labels.retain(|key, _| key == SERVICE_UID);
    if staging {
        labels.insert(STAGING.to_owned(), "true".to_owned());
    }
    NewCertificate {
        name: name.to_owned(),
        domains: domains.to_vec(),
        labels,
    }
}

/// Has a certificate issued. One of that name that is not ours is left alone.
pub(super) async fn issue(api: &Api, new: &NewCertificate) -> Result<(), CloudError> {
    let error = match api.create_certificate(new.body()).await {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => error,
        other => return other,
    };
    let named = Book::Cloud(api).named(&new.name).await?;
    let mark = |labels: &BTreeMap<String, String>| labels.get(SERVICE_UID).cloned();
    match named {
        // It was made by an attempt whose answer was lost.
        Some(named) if mark(&named.labels) == mark(&new.labels) => Ok(()),
        Some(named) => {
            let message = format!(
                "certificate {} is called {:?} but does not carry the mark of the Service: name \
                 another, or label it",
                named.id, named.name
            );
            Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message))
        }
        None => Err(error),
    }
}
