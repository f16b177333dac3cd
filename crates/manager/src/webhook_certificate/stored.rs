//! What the Secret of the webhook certificate contains. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::serving::{KeyPairPem, is_usable, make_key_pair};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The certificate before the current one, which a replica may still serve.
const PREVIOUS: &str = "previous.crt";

/// The content of the Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stored {
    pub(super) current: Option<KeyPairPem>,
    previous: Option<Vec<u8>>,
}

impl Stored {
    pub(super) fn of(secret: &Secret) -> Self {
        let read = |key: &str| {
            let value = secret.data.as_ref()?.get(key)?;
            (!value.0.is_empty()).then(|| value.0.clone())
        };
        let current = read(CERTIFICATE).zip(read(KEY));
        let current = current.map(|(certificate, key)| KeyPairPem { certificate, key });
        Self {
            current: current.filter(|pair| pair.parse().is_ok()),
            previous: read(PREVIOUS),
        }
    }

    /// The same with a new certificate, if the current one is missing, about to expire, or for other names.
    pub(super) fn renewed(&self, names: &[String], now: Timestamp) -> Result<Option<Self>, String> {
        let current = self.current.as_ref();
        if current.is_some_and(|pair| is_usable(pair, names, now)) {
            return Ok(None);
        }
        let previous = current.map(|pair| pair.certificate.clone());
        Ok(Some(Self {
            current: Some(make_key_pair(names, now)?),
            previous,
        }))
    }

    /// What the API server trusts: the current certificate and the one before.
    pub(super) fn bundle(&self, now: Timestamp) -> Vec<u8> {
        let current = self
            .current
            .as_ref()
            .map(|pair| pair.certificate.as_slice());
        let is_valid = |certificate: &&[u8]| is_certificate_valid(certificate, now);
        let previous = self.previous.as_deref().filter(is_valid);
        current
            .into_iter()
            .chain(previous)
            .flatten()
            .copied()
            .collect()
    }

    pub(super) fn write_to(&self, secret: &mut Secret) {
        let mut data = BTreeMap::new();
        if let Some(pair) = &self.current {
            data.insert(CERTIFICATE.to_owned(), ByteString(pair.certificate.clone()));
            data.insert(KEY.to_owned(), ByteString(pair.key.clone()));
        }
        if let Some(previous) = &self.previous {
            data.insert(PREVIOUS.to_owned(), ByteString(previous.clone()));
        }
        secret.data = Some(data);
    }
}

fn is_certificate_valid(certificate: &[u8], now: Timestamp) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use x509_parser::prelude::{FromDer as _, X509Certificate};
    let Ok(der) = CertificateDer::from_pem_slice(certificate) else {
        return false;
    };
    X509Certificate::from_der(&der)
        .is_ok_and(|(_, parsed)| parsed.validity().not_after.timestamp() > now.as_second())
}
