//! A certificate chain with its key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PairFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// What is in them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PairBytes {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// The library wants everything that chooses certificates to be printable; the key is not.
impl fmt::Debug for PairBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairBytes").finish_non_exhaustive()
    }
}

impl PairFiles {
    pub(super) fn new(certificate: &Path, key: &Path) -> Self {
        Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        }
    }

    pub(super) async fn read(&self) -> Result<PairBytes, String> {
        Ok(PairBytes {
            certificate: read(&self.certificate).await?,
            key: read(&self.key).await?,
        })
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    tokio::fs::read(path)
        .await
        .map_err(|error| format!("{}: {error}", path.display()))
}

impl PairBytes {
    pub(super) fn new(certificate: String, key: String) -> Self {
        Self {
            certificate: certificate.into_bytes(),
            key: key.into_bytes(),
        }
    }

    /// Checks that both can be read and belong together.
    pub(super) fn parse(&self) -> Result<Pair, String> {
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let leaf = chain
            .first()
            .ok_or("the certificate file holds no certificate")?;
        let about = About::read(leaf)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("the key is not PEM: {error}"))?;
        let key = CertifiedKey::from_der(chain, key, &default_provider())
            .map_err(|error| error.to_string())?;
        Ok(Pair {
            key: Arc::new(key),
            about,
        })
    }
}

/// A certificate and a key that fit.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) about: About,
}

/// What a certificate says about itself.
#[derive(Debug)]
pub(super) struct About {
    /// DNS names and addresses, in lower case.
    pub(super) names: Vec<String>,
    /// The organization in its subject.
    pub(super) organization: Option<String>,
    /// Until when it is good.
    pub(super) expires: Timestamp,
}

impl About {
    fn read(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| format!("the certificate cannot be parsed: {error}"))?;
        let mut names = Vec::new();
        if let Ok(Some(alternatives)) = parsed.subject_alternative_name() {
            names.extend(alternatives.value.general_names.iter().filter_map(name));
        }
        let organization = parsed
            .subject()
            .iter_organization()
            .find_map(|value| value.as_str().ok())
            .map(str::to_owned);
        let expires = Timestamp::from_second(parsed.validity().not_after.timestamp())
            .unwrap_or(Timestamp::MAX);
        Ok(Self {
            names,
            organization,
            expires,
        })
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
            let v6 = <[u8; 16]>::try_from(*bytes).map(std::net::IpAddr::from);
            v4.or(v6).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
