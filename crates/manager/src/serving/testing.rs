//! Shared by the tests of this module: CAs, certificates, and a clock.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use cloudkeel_api::{Clock, SystemClock};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::CertificateDer;

use crate::options::ListenerOptions;

/// A port on the loopback interface with default settings.
pub(super) fn listener_options() -> ListenerOptions {
    ListenerOptions {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        http2: true,
        http2_streams: 100,
        cert_dir: None,
        cert_and_key: None,
        cipher_suites: Vec::new(),
        min_version: "VersionTLS12".to_owned(),
        sni: Vec::new(),
        share_port: false,
    }
}

pub(super) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Signs certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, in PEM.
pub(super) struct Issued {
    pub(super) der: CertificateDer<'static>,
    pub(super) pem: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A client's certificate, in at most one group.
    pub(super) fn client(&self, user: &str, group: Option<&str>) -> Issued {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !user.is_empty() {
            params.distinguished_name.push(DnType::CommonName, user);
        }
        if let Some(group) = group {
            params
                .distinguished_name
                .push(DnType::OrganizationName, group);
        }
        self.sign(params)
    }

    /// A server's certificate.
    pub(super) fn server(&self, names: &[&str]) -> Issued {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    pub(super) fn sign(&self, mut params: CertificateParams) -> Issued {
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            der: certificate.der().clone(),
            pem: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}
