//! Authentication by client certificate.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::log_messages::CLIENT_CA_UNUSABLE;
use crate::serving::user::User;

/// The extra field that holds the certificate's fingerprint.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The attribute of a subject that holds the user's unique ID.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The CAs whose signatures are trusted.
#[derive(Debug, Clone)]
pub(super) struct CaBundle(Arc<dyn ClientCertVerifier>);

impl CaBundle {
    /// Reads a PEM bundle. Certificates that cannot be used are skipped.
    pub(super) fn parse(bundle: &str) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(bundle.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("it is not PEM: {error}"))?;
        let mut roots = RootCertStore::empty();
        let (used, ignored) = roots.add_parsable_certificates(certificates);
        if ignored > 0 {
            tracing::warn!(used, ignored, "{CLIENT_CA_UNUSABLE}");
        }
        WebPkiClientVerifier::builder_with_provider(roots.into(), default_provider().into())
            .build()
            .map(Self)
            .map_err(|error| format!("it holds no usable certificate: {error}"))
    }

    /// Checks that one of the CAs signed this certificate for client authentication, and that it is valid now.
    pub(super) fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<(), String> {
        let (leaf, intermediates) = chain.split_first().ok_or("there is no certificate")?;
        let now = std::time::Duration::try_from(now.as_duration()).unwrap_or_default();
        self.0
            .verify_client_cert(leaf, intermediates, UnixTime::since_unix_epoch(now))
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

/// The subject of a certificate.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) common_name: String,
    organizations: Vec<String>,
    uids: Vec<String>,
}

impl Subject {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| format!("the certificate cannot be parsed: {error}"))?;
        let name = parsed.subject();
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            value.as_str().ok().map(str::to_owned)
        };
        Ok(Self {
            // If there are several common names, Go takes the last.
            common_name: name
                .iter_common_name()
                .filter_map(text)
                .last()
                .unwrap_or_default(),
            organizations: name.iter_organization().filter_map(text).collect(),
            uids: name.iter_by_oid(&UID).filter_map(text).collect(),
        })
    }
}

/// The user that a certificate authenticates: its common name, with its organizations as groups. `None` without a
/// common name.
pub(super) fn user_of(certificate: &CertificateDer<'_>) -> Result<Option<User>, String> {
    let subject = Subject::of(certificate)?;
    if subject.common_name.is_empty() {
        return Ok(None);
    }
    let uid = match subject.uids.as_slice() {
        [] => String::new(),
        [uid] if !uid.is_empty() => uid.clone(),
        uids => {
            return Err(format!(
                "the certificate should hold one UID, it holds {uids:?}"
            ));
        }
    };
    let fingerprint = format!("X509SHA256={}", hex(digest(&SHA256, certificate).as_ref()));
    Ok(Some(User {
        name: subject.common_name,
        uid,
        groups: subject.organizations,
        extra: [(CREDENTIAL_ID.to_owned(), vec![fingerprint])].into(),
    }))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
