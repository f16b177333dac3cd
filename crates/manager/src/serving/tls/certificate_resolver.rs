//! Which certificate is presented to a client.

use std::net::IpAddr;
use std::sync::Arc;

use cloudkeel_api::Clock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::reload::{ReloadOutcome, ReloadingKeyPair};
use crate::log_messages::{CERTIFICATE_REJECTED, CERTIFICATE_RELOADED};

/// All certificates of a listener.
#[derive(Debug)]
pub(super) struct Certificates {
    fallback: ReloadingKeyPair,
    named: Vec<SniCertificate>,
}

/// A certificate for some server names (SNI).
#[derive(Debug)]
pub(super) struct SniCertificate {
    /// Names and patterns such as `*.example.com`; those in the certificate if empty.
    names: Vec<String>,
    pair: ReloadingKeyPair,
}

impl SniCertificate {
    pub(super) fn new(names: &[String], pair: ReloadingKeyPair) -> Self {
        Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            pair,
        }
    }

    fn has_explicitly(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn has_inside(&self, name: &str) -> bool {
        let inside =
            |pair: &ReloadingKeyPair| pair.current().info.names.iter().any(|known| known == name);
        self.names.is_empty() && inside(&self.pair)
    }
}

impl Certificates {
    pub(super) fn new(fallback: ReloadingKeyPair, named: Vec<SniCertificate>) -> Self {
        Self { fallback, named }
    }

    /// Loads new certificates into use.
    pub(super) async fn refresh(&self, clock: &dyn Clock) {
        let named = self.named.iter().map(|named| &named.pair);
        for pair in std::iter::once(&self.fallback).chain(named) {
            match pair.refresh(clock).await {
                Some(ReloadOutcome::Loaded { expires }) => {
                    tracing::info!(%expires, "{CERTIFICATE_RELOADED}");
                }
                Some(ReloadOutcome::Rejected { why }) => {
                    tracing::warn!(err = why, "{CERTIFICATE_REJECTED}");
                }
                None => {}
            }
        }
    }

    /// Whether the local address of a connection can matter. Clients send no SNI for IP addresses.
    pub(super) fn know_addresses(&self) -> bool {
        let is_address = |name: &String| name.parse::<IpAddr>().is_ok();
        self.named.iter().any(|named| {
            named.names.iter().any(is_address)
                || (named.names.is_empty()
                    && named.pair.current().info.names.iter().any(is_address))
        })
    }

    /// The certificate for a server name or address. An exact name is preferred to a pattern, a name given in the
    /// flag to one inside a certificate, and an earlier certificate to a later one.
    pub(super) fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let name = name
            .unwrap_or_default()
            .trim_end_matches('.')
            .to_ascii_lowercase();
        let pattern = name
            .split_once('.')
            .map(|(_, domain)| format!("*.{domain}"));
        let candidates = std::iter::once(name).chain(pattern);
        let chosen = candidates.into_iter().find_map(|name| {
            let explicit = self.named.iter().find(|named| named.has_explicitly(&name));
            explicit.or_else(|| self.named.iter().find(|named| named.has_inside(&name)))
        });
        let pair = chosen.map_or(&self.fallback, |named| &named.pair);
        Arc::clone(&pair.current().key)
    }
}

/// Chooses by the server name (SNI) or, if the client sent none, by the local address of the connection.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) certificates: Arc<Certificates>,
    pub(super) local_ip: Option<IpAddr>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let address = self.local_ip.map(|address| address.to_string());
        let name = hello.server_name().or(address.as_deref());
        Some(self.certificates.choose(name))
    }
}
