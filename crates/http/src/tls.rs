//! TLS: trusted CAs, trusted thumbprints, and the client certificate.

use std::str::FromStr;
use std::sync::Arc;

use ::ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use cloudkeel_api::{CloudError, Secret};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::log_messages::{NO_TRUSTED_CA, TLS_NOT_VERIFIED};

/// TLS settings. The default trusts the roots of the system and presents no certificate.
#[derive(Debug, Clone, Default)]
pub struct TlsSettings {
    ca_pem: Vec<Vec<u8>>,
    thumbprints: Vec<Thumbprint>,
    client: Option<ClientCertificate>,
    insecure: bool,
}

/// The digest of a certificate, by SHA-1 or SHA-256, written as `AB:CD:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumbprint(Vec<u8>);

impl Thumbprint {
    fn is_of(&self, certificate: &CertificateDer<'_>) -> bool {
        let algorithm = match self.0.len() {
            20 => &SHA1_FOR_LEGACY_USE_ONLY,
            _ => &SHA256,
        };
        digest(algorithm, certificate).as_ref() == self.0
    }
}

impl FromStr for Thumbprint {
    /// What would be right.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let byte = |pair: &str| {
            let is_pair = pair.len() == 2 && pair.bytes().all(|c| c.is_ascii_hexdigit());
            u8::from_str_radix(pair, 16).ok().filter(|_| is_pair)
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let bytes = bytes.filter(|bytes| [20, 32].contains(&bytes.len()));
        let expected = "20 (SHA-1) or 32 (SHA-256) pairs of hex digits with colons between them";
        bytes.map(Self).ok_or(expected)
    }
}

#[derive(Debug, Clone)]
struct ClientCertificate {
    chain_pem: Vec<u8>,
    key_pem: Secret,
}

impl TlsSettings {
    /// Also trusts these certificates (one or more, PEM).
    #[must_use]
    pub fn trust(mut self, ca_pem: impl Into<Vec<u8>>) -> Self {
        self.ca_pem.push(ca_pem.into());
        self
    }

    /// Also trusts a server whose certificate has this thumbprint, for any name and without a CA.
    #[must_use]
    pub fn trust_thumbprint(mut self, thumbprint: Thumbprint) -> Self {
        self.thumbprints.push(thumbprint);
        self
    }

    /// Presents this certificate (its chain, PEM) with its private key.
    #[must_use]
    pub fn present(mut self, chain_pem: impl Into<Vec<u8>>, key_pem: Secret) -> Self {
        self.client = Some(ClientCertificate {
            chain_pem: chain_pem.into(),
            key_pem,
        });
        self
    }

    /// Accepts any certificate. An attacker on the path can then read the credential.
    #[must_use]
    pub const fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// The settings as rustls understands them, always with the `ring` provider.
    pub fn client_config(&self) -> Result<ClientConfig, CloudError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse("TLS", &error.to_string()))?;
        let builder = if self.insecure {
            tracing::warn!("{TLS_NOT_VERIFIED}");
            let verifier = OwnVerifier {
                provider,
                trust: Trust::Anything,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        } else if !self.thumbprints.is_empty() {
            let roots = Arc::new(self.roots()?);
            let authorities =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
            let verifier = OwnVerifier {
                provider,
                trust: Trust::Thumbprints {
                    known: self.thumbprints.clone(),
                    // Without a single CA there is none to verify with.
                    authorities: authorities.build().ok(),
                },
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let Some(client) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates("client certificate", &client.chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(client.key_pem.expose().as_bytes())
            .map_err(|_| refuse("client key", "no private key in PEM form was found"))?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| refuse("client certificate", &error.to_string()))
    }

    fn roots(&self) -> Result<RootCertStore, CloudError> {
        let mut roots = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            tracing::debug!(err = %error, "failed to read a system CA certificate");
        }
        roots.add_parsable_certificates(system.certs);
        for pem in &self.ca_pem {
            for certificate in certificates("CA", pem)? {
                roots
                    .add(certificate)
                    .map_err(|error| refuse("CA", &error.to_string()))?;
            }
        }
        if roots.is_empty() {
            tracing::warn!("{NO_TRUSTED_CA}");
        }
        Ok(roots)
    }
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CloudError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| refuse(what, &format!("not a certificate in PEM form: {error}")))?;
    if found.is_empty() {
        return Err(refuse(what, "no certificate in PEM form was found"));
    }
    Ok(found)
}

fn refuse(what: &str, why: &str) -> CloudError {
    CloudError::invalid("configure HTTP client", format!("{what}: {why}"))
}

/// A client that takes every certificate, for what sends nothing secret: health checks ask whether a target answers, not who
/// it is.
pub fn any_certificate() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let verifier = Arc::new(OwnVerifier {
        provider,
        trust: Trust::Anything,
    });
    let builder = builder.dangerous();
    let builder = builder.with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

/// Accepts certificates by other rules than those of the system, but still checks that the other side holds the key.
#[derive(Debug)]
struct OwnVerifier {
    provider: Arc<CryptoProvider>,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    Anything,
    /// These certificates, and what a CA has signed.
    Thumbprints {
        known: Vec<Thumbprint>,
        authorities: Option<Arc<WebPkiServerVerifier>>,
    },
}

impl ServerCertVerifier for OwnVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Thumbprints { known, authorities } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        if known.iter().any(|thumbprint| thumbprint.is_of(end_entity)) {
            return Ok(ServerCertVerified::assertion());
        }
        match authorities {
            Some(authorities) => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_certificates_and_keys_are_named() {
        let certificate = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let pem = certificate.cert.pem();
        for (case, settings, needle) in [
            (
                "no CA",
                TlsSettings::default().trust("nonsense"),
                "CA: no certificate",
            ),
            (
                "a broken CA",
                TlsSettings::default()
                    .trust("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"),
                "CA: not a certificate",
            ),
            (
                "no key",
                TlsSettings::default().present(pem.as_str(), Secret::new("hunter2")),
                "client key: no private key",
            ),
            (
                "no chain",
                TlsSettings::default()
                    .present("", Secret::new(certificate.signing_key.serialize_pem())),
                "client certificate: no certificate",
            ),
        ] {
            let error = settings.client_config().unwrap_err().to_string();
            assert!(error.contains(needle), "{case}: {error}");
            assert!(!error.contains("hunter2"), "{case}: {error}");
        }
    }

    #[test]
    fn a_thumbprint_names_one_certificate_by_either_digest() {
        let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (ours, other) = (made("a.test"), made("a.test"));
        for algorithm in [&SHA1_FOR_LEGACY_USE_ONLY, &SHA256] {
            let sum = digest(algorithm, ours.cert.der());
            let pairs: Vec<_> = sum.as_ref().iter().map(|b| format!("{b:02X}")).collect();
            let text = pairs.join(":");
            let thumbprint: Thumbprint = text.parse().unwrap();
            assert!(thumbprint.is_of(ours.cert.der()), "{text}");
            assert!(!thumbprint.is_of(other.cert.der()), "{text}");
            assert_eq!(text.to_lowercase().parse(), Ok(thumbprint));
        }
        for wrong in [
            "",
            "AB",
            "AB:CD",
            "x",
            &"A".repeat(40),
            &["+1"; 20].join(":"),
        ] {
            assert!(wrong.parse::<Thumbprint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_private_key_is_never_printed() {
        let settings = TlsSettings::default().present("chain", Secret::new("hunter2"));
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
