//! The certificates of HTTPS services.

use std::collections::BTreeSet;

use cloudkeel_api::{BalancerRef, CloudError, ErrorKind, Failures, Priority};
use cloudkeel_http::Request;
use cloudkeel_toolkit::Labels;

use super::desired::{Desired, DesiredCertificate};
use super::owner_labels::{CLUSTER_UID, OWNER, SERVICE_UID};
use super::step::NewCertificate;
use crate::annotations::{HTTP_CERTIFICATES, ServiceProtocol};
use crate::client::Api;
use crate::wire::{Certificate, Issuance, LoadBalancer, ResourceId};

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
            _ => None,
        }
    }

    /// Whether services have to wait for one.
    pub(super) const fn is_awaited(&self) -> bool {
        !matches!(self, Self::NotWanted | Self::Known(_))
    }
}

/// Where certificates are looked up: in a list of all of them if there is one, else in the cloud.
#[derive(Clone, Copy)]
pub(super) struct CertificateSource<'a> {
    pub(super) api: &'a Api,
    pub(super) listed: Option<&'a [Certificate]>,
}

impl CertificateSource<'_> {
    async fn those(
        self,
        request: Request,
        fits: impl Fn(&Certificate) -> bool,
    ) -> Result<Vec<Certificate>, CloudError> {
        let found = match self.listed {
            Some(_) => None,
            None => Some(self.api.all(request).await?),
        };
        let all = found.as_deref().or(self.listed).unwrap_or_default();
        Ok(all.iter().filter(|it| fits(it)).cloned().collect())
    }

    async fn named(self, name: &str) -> Result<Option<Certificate>, CloudError> {
        let request = self.api.named::<Certificate>(name);
        let found = self.those(request, |it| it.name == name).await?;
        Ok(found.into_iter().next())
    }

    pub(super) async fn of(self, uid: &String) -> Result<Vec<Certificate>, CloudError> {
        let request = self.api.labelled::<Certificate>(SERVICE_UID, uid);
        let is_its = |it: &Certificate| it.labels.get(SERVICE_UID) == Some(uid);
        self.those(request, is_its).await
    }
}

/// Whether finding them needs a question to the cloud.
pub(super) fn needs_list(asked: &Desired) -> bool {
    let https = asked.protocol == ServiceProtocol::Https;
    let is_named = !matches!(
        asked.certificates,
        DesiredCertificate::None | DesiredCertificate::Impossible(_)
    );
    https && is_named
}

/// Finds the wanted certificates.
pub(super) async fn find(
    source: CertificateSource<'_>,
    asked: &Desired,
    balancer_ref: &BalancerRef,
    cluster: Option<&str>,
) -> Result<Certificates, CloudError> {
    if asked.protocol != ServiceProtocol::Https {
        return Ok(Certificates::NotWanted);
    }
    match &asked.certificates {
        DesiredCertificate::None => Ok(Certificates::NotWanted),
        DesiredCertificate::Impossible(why) => Ok(unobtainable(why)),
        DesiredCertificate::Uploaded(names) => find_uploaded(source, names).await,
        DesiredCertificate::Managed {
            name,
            domains,
            staging,
        } => {
            let ours = source.of(&balancer_ref.service.uid).await?;
            Ok(classify_managed(&ours, balancer_ref, || {
                new(
                    name,
                    domains,
                    *staging,
                    OWNER.added(&Labels::new(), balancer_ref, cluster),
                )
            }))
        }
    }
}

fn unobtainable(why: impl Into<String>) -> Certificates {
    Certificates::Unobtainable(Failures::invalid(why))
}

async fn find_uploaded(
    source: CertificateSource<'_>,
    names: &[String],
) -> Result<Certificates, CloudError> {
    let mut ids = BTreeSet::new();
    for name in names {
        if let Ok(id) = name.parse() {
            ids.insert(id);
            continue;
        }
        let Some(certificate) = source.named(name).await? else {
            let key = HTTP_CERTIFICATES.name();
            let why = format!("{key}: the project has no certificate {name:?}");
            return Ok(unobtainable(why));
        };
        ids.insert(certificate.id);
    }
    Ok(Certificates::Known(ids))
}

/// What is to be done about the one certificate with the Service's label. Pure.
fn classify_managed(
    ours: &[Certificate],
    balancer_ref: &BalancerRef,
    new: impl FnOnce() -> NewCertificate,
) -> Certificates {
    match ours {
        [] => Certificates::Missing(new()),
        [one] => match one.issuance() {
            Issuance::Done => Certificates::Known(BTreeSet::from([one.id])),
            Issuance::Pending => Certificates::Pending(one.name.clone()),
            Issuance::Failed(why) => unobtainable(format!(
                "certificate {} ({}) could not be issued: {why}; fix the cause and retry it in the \
                 cloud, or delete it",
                one.id, one.name
            )),
        },
        several => {
            let ids: Vec<_> = several.iter().map(|c| c.id.to_string()).collect();
            unobtainable(format!(
                "certificates {} all carry the owner label of {}: delete all but one",
                ids.join(" and "),
                balancer_ref.service
            ))
        }
    }
}

fn new(name: &str, domains: &[String], staging: bool, mut labels: Labels) -> NewCertificate {
    if staging {
        labels.insert(STAGING.to_owned(), "true".to_owned());
    }
    NewCertificate {
        name: name.to_owned(),
        domains: domains.to_vec(),
        labels,
    }
}

impl Certificate {
    /// Whether cloudkeel had it issued for this cluster, and nothing uses it but balancers that are deleted.
    pub(super) fn goes(&self, cluster: Option<&String>, balancers: &[LoadBalancer]) -> bool {
        let deleted = balancers.iter().filter(|it| !it.protection.delete);
        let is_issued = cluster.is_some() && self.labels.get(CLUSTER_UID) == cluster;
        let is_deleted = |user: &ResourceId| deleted.clone().any(|it| it.id == user.id);
        self.status.is_some() && is_issued && self.used_by.iter().all(is_deleted)
    }
}

/// Has a certificate issued. One of that name that is not ours is left alone.
pub(super) async fn issue(api: &Api, new: &NewCertificate) -> Result<(), CloudError> {
    let request = api.create_request::<Certificate>(&new.body());
    let error = match api.send(request.priority(Priority::Urgent)).await {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => error,
        other => return other,
    };
    let listed = None;
    let named = CertificateSource { api, listed }.named(&new.name).await?;
    let service = |labels: &Labels| labels.get(SERVICE_UID).cloned();
    match named {
        // It was created by an attempt whose answer was lost.
        Some(named) if service(&named.labels) == service(&new.labels) => Ok(()),
        Some(named) => {
            let message = format!(
                "certificate {} is called {:?} but does not carry the owner label of the Service: choose \
                 another name, or add the label",
                named.id, named.name
            );
            Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message))
        }
        None => Err(error),
    }
}
