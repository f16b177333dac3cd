//! TLS of a listener: which certificate, which versions, which cipher suites.

mod certificate_resolver;
mod cipher_suite;
mod client_certificates;
mod key_pair;
mod managed;
mod reload;
mod self_signed;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ServerConfig, SupportedProtocolVersion};

use self::certificate_resolver::{Certificates, Resolver, SniCertificate};
use self::client_certificates::AnyClientCertificate;
use self::key_pair::KeyPairFiles;
pub(crate) use self::key_pair::KeyPairPem;
pub use self::key_pair::SharedKeyPair;
pub(crate) use self::managed::{is_usable, make_key_pair};
use self::reload::ReloadingKeyPair;
use self::self_signed::SelfSigned;
use crate::options::ListenerOptions;
use crate::serving::ServingError;

/// How often certificate files are checked. They are read instead of watched, because a projected volume swaps a
/// link far above the file.
const RELOAD_PERIOD: Duration = Duration::from_secs(2);

/// The identity of a listener.
#[derive(Debug, Clone, Default)]
pub struct ServerNames {
    /// The file names of a saved certificate: `NAME.crt` and `NAME.key`.
    pub pair_name: String,
    /// Names and addresses for a self-signed certificate, besides `localhost` and `127.0.0.1`.
    pub names: Vec<String>,
    /// A key pair that another part of the program provides. A self-signed one is served until it does.
    pub provided: Option<SharedKeyPair>,
}

/// Whether client certificates are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients may send one: the manager's own port.
    Requested,
    /// Not requested: the webhook port.
    NotRequested,
}

/// TLS of one listener.
pub(super) struct Tls {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    clock: Arc<dyn Clock>,
}

impl Tls {
    pub(super) async fn new(
        options: &ListenerOptions,
        names: &ServerNames,
        clients: ClientCertificates,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServingError> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: cipher_suite::cipher_suites(&options.cipher_suites)?,
            ..ring::default_provider()
        });
        let versions = usable(
            cipher_suite::versions_from(&options.min_version)?,
            &provider,
        );
        let certificates = Arc::new(load(options, names, &*clock).await?);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?;
        let builder = match clients {
            ClientCertificates::Requested => {
                builder.with_client_cert_verifier(Arc::new(AnyClientCertificate::new(provider)))
            }
            ClientCertificates::NotRequested => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(Resolver {
            certificates: Arc::clone(&certificates),
            local_ip: None,
        }));
        config.alpn_protocols = protocols(options.http2);
        Ok(Self {
            config: Arc::new(config),
            certificates,
            clock,
        })
    }

    /// The configuration for a connection to this local address.
    pub(super) fn config_for(&self, local_ip: IpAddr) -> Arc<ServerConfig> {
        if !self.certificates.know_addresses() {
            return Arc::clone(&self.config);
        }
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::new(Resolver {
            certificates: Arc::clone(&self.certificates),
            local_ip: Some(local_ip.to_canonical()),
        });
        Arc::new(config)
    }

    /// Reloads the certificates periodically. Never returns.
    pub(super) async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(RELOAD_PERIOD).await;
            self.certificates.refresh(&*self.clock).await;
        }
    }
}

async fn load(
    options: &ListenerOptions,
    names: &ServerNames,
    clock: &dyn Clock,
) -> Result<Certificates, ServingError> {
    let fallback = if let Some((certificate, key)) = &options.cert_and_key {
        ReloadingKeyPair::from_files(KeyPairFiles::new(certificate, key)).await?
    } else {
        let directory = options.cert_dir.as_deref();
        let names_with_address = with_address(&names.names, options.address);
        let recipe = SelfSigned::new(&names_with_address, directory, &names.pair_name);
        match &names.provided {
            Some(provided) => ReloadingKeyPair::provided(provided.clone(), &recipe, clock)?,
            None => ReloadingKeyPair::self_signed(recipe, clock).await?,
        }
    };
    let mut named = Vec::new();
    for pair in &options.sni {
        let files = KeyPairFiles::new(&pair.cert, &pair.key);
        named.push(SniCertificate::new(
            &pair.names,
            ReloadingKeyPair::from_files(files).await?,
        ));
    }
    Ok(Certificates::new(fallback, named))
}

fn with_address(names: &[String], address: IpAddr) -> Vec<String> {
    let mut names = names.to_vec();
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    names
}

/// Without a suite for TLS 1.2, TLS 1.2 is disabled.
fn usable(
    mut versions: Vec<&'static SupportedProtocolVersion>,
    provider: &CryptoProvider,
) -> Vec<&'static SupportedProtocolVersion> {
    let suites = &provider.cipher_suites;
    versions.retain(|version| suites.iter().any(|suite| suite.version() == *version));
    versions
}

fn protocols(http2: bool) -> Vec<Vec<u8>> {
    let http1 = b"http/1.1".to_vec();
    if http2 {
        vec![b"h2".to_vec(), http1]
    } else {
        vec![http1]
    }
}
