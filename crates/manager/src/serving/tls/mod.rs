//! TLS of a listener: which certificate, which versions, which cipher suites.

mod certificates;
mod client_certificates;
mod pair;
mod reload;
mod self_made;
mod suites;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ServerConfig, SupportedProtocolVersion};

use self::certificates::{Certificates, Named, Resolver};
use self::client_certificates::AnyClientCertificate;
use self::pair::PairFiles;
use self::reload::Reloading;
use self::self_made::SelfMade;
use crate::options::ListenerOptions;
use crate::serving::ServingError;

/// How often certificate files are looked at. Reading beats watching here: a projected volume swaps a link
/// far above the file.
const RELOAD_EVERY: Duration = Duration::from_secs(2);

/// Who a listener is.
#[derive(Debug, Clone, Default)]
pub struct ServerNames {
    /// What the files of a kept certificate are called: `NAME.crt` and `NAME.key`.
    pub pair_name: String,
    /// Names and addresses for a self-made certificate, besides `localhost` and `127.0.0.1`.
    pub names: Vec<String>,
}

/// Whether clients are asked for certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients may show one: the manager's own port.
    Welcome,
    /// They mean nothing: the port of webhooks.
    Ignored,
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
            cipher_suites: suites::cipher_suites(&options.cipher_suites)?,
            ..ring::default_provider()
        });
        let versions = usable(suites::versions_from(&options.min_version)?, &provider);
        let certificates = Arc::new(load(options, names, &*clock).await?);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?;
        let builder = match clients {
            ClientCertificates::Welcome => {
                builder.with_client_cert_verifier(Arc::new(AnyClientCertificate::new(provider)))
            }
            ClientCertificates::Ignored => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(Resolver {
            certificates: Arc::clone(&certificates),
            dialled: None,
        }));
        config.alpn_protocols = protocols(options.http2);
        Ok(Self {
            config: Arc::new(config),
            certificates,
            clock,
        })
    }

    /// The configuration for a connection to this address of ours.
    pub(super) fn config_for(&self, dialled: IpAddr) -> Arc<ServerConfig> {
        if !self.certificates.know_addresses() {
            return Arc::clone(&self.config);
        }
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::new(Resolver {
            certificates: Arc::clone(&self.certificates),
            dialled: Some(dialled.to_canonical()),
        });
        Arc::new(config)
    }

    /// Keeps the certificates up to date. Never returns.
    pub(super) async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(RELOAD_EVERY).await;
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
        Reloading::given(PairFiles::new(certificate, key)).await?
    } else {
        let directory = options.cert_dir.as_deref();
        let names_with_address = with_address(&names.names, options.address);
        let recipe = SelfMade::new(&names_with_address, directory, &names.pair_name);
        Reloading::self_made(recipe, clock).await?
    };
    let mut named = Vec::new();
    for pair in &options.sni {
        let files = PairFiles::new(&pair.cert, &pair.key);
        named.push(Named::new(&pair.names, Reloading::given(files).await?));
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

/// Without a suite for TLS 1.2 there is no TLS 1.2.
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
