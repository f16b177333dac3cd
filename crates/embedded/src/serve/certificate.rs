//! The certificates of one run.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ServeError;

const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

pub(super) struct Certificates {
    pub(super) ca_pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Certificates {
    /// A new authority, and what it signed for the server.
    pub(super) fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        let name = "cloudkeel-embedded-ca";
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
        let name = "cloudkeel-embedded";
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        Ok(Self {
            ca_pem: authority.pem(),
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        })
    }

    pub(super) fn server(&self) -> Result<ServerConfig, ServeError> {
        let provider = Arc::new(ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
