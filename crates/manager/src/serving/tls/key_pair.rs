//! A certificate chain with its key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPairFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyPairPem {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// rustls requires `Debug` for everything that chooses certificates; the key must not be printed.
/// A key pair that another part of the program provides, and replaces at any time. Empty until it is known.
#[derive(Debug, Clone, Default)]
pub struct SharedKeyPair(Arc<RwLock<Option<KeyPairPem>>>);

impl SharedKeyPair {
    /// This one is to be served from now on.
    pub(crate) fn set(&self, pair: KeyPairPem) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(pair);
    }

    pub(super) fn get(&self) -> Option<KeyPairPem> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl fmt::Debug for KeyPairPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairBytes").finish_non_exhaustive()
    }
}

impl KeyPairFiles {
    pub(super) fn new(certificate: &Path, key: &Path) -> Self {
        Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        }
    }

    pub(super) async fn read(&self) -> Result<KeyPairPem, String> {
        Ok(KeyPairPem {
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

impl KeyPairPem {
    pub(super) fn new(certificate: String, key: String) -> Self {
        Self {
            certificate: certificate.into_bytes(),
            key: key.into_bytes(),
        }
    }

    /// Checks that both can be parsed and belong together.
    pub(crate) fn parse(&self) -> Result<TlsKeyPair, String> {
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let leaf = chain
            .first()
            .ok_or("the certificate file holds no certificate")?;
        let info = CertificateInfo::read(leaf)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("the key is not PEM: {error}"))?;
        let key = CertifiedKey::from_der(chain, key, &default_provider())
            .map_err(|error| error.to_string())?;
        Ok(TlsKeyPair {
            key: Arc::new(key),
            info,
        })
    }
}

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct TlsKeyPair {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) info: CertificateInfo,
}

/// Facts about a certificate.
#[derive(Debug)]
pub(crate) struct CertificateInfo {
    /// DNS names and addresses, in lower case.
    pub(super) names: Vec<String>,
    /// The organization in its subject.
    pub(super) organization: Option<String>,
    /// When it expires.
    pub(super) expires: Timestamp,
}

impl CertificateInfo {
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
