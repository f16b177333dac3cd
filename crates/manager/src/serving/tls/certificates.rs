//! Which certificate a client is shown.

use std::net::IpAddr;
use std::sync::Arc;

use cloudkeel_api::Clock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::reload::{News, Reloading};

/// All certificates of a listener.
#[derive(Debug)]
pub(super) struct Certificates {
    fallback: Reloading,
    named: Vec<Named>,
}

/// A certificate for some server names.
#[derive(Debug)]
pub(super) struct Named {
    /// Names and patterns such as `*.example.com`; those in the certificate if empty.
    names: Vec<String>,
    pair: Reloading,
}

impl Named {
    pub(super) fn new(names: &[String], pair: Reloading) -> Self {
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
            |pair: &Reloading| pair.current().about.names.iter().any(|known| known == name);
        self.names.is_empty() && inside(&self.pair)
    }
}

impl Certificates {
    pub(super) fn new(fallback: Reloading, named: Vec<Named>) -> Self {
        Self { fallback, named }
    }

    /// Takes new certificates into use.
    pub(super) async fn refresh(&self, clock: &dyn Clock) {
        let named = self.named.iter().map(|named| &named.pair);
        for pair in std::iter::once(&self.fallback).chain(named) {
            match pair.refresh(clock).await {
                Some(News::Taken { expires }) => {
                    tracing::info!(%expires, "serving a new certificate");
                }
                Some(News::Refused { why }) => {
                    tracing::warn!(why, "a new certificate cannot be used, the old one stays");
                }
                None => {}
            }
        }
    }

    /// Whether the address that a client dialled can matter. Clients do not tell addresses by name.
    pub(super) fn know_addresses(&self) -> bool {
        let is_address = |name: &String| name.parse::<IpAddr>().is_ok();
        self.named.iter().any(|named| {
            named.names.iter().any(is_address)
                || (named.names.is_empty()
                    && named.pair.current().about.names.iter().any(is_address))
        })
    }

    /// The certificate for a server name or address. A whole name wins over a pattern, a name given by
    /// hand over one inside a certificate, and the first certificate over later ones.
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

/// Chooses by the server name, or, for clients that told none, by the address they dialled.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) certificates: Arc<Certificates>,
    pub(super) dialled: Option<IpAddr>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let address = self.dialled.map(|address| address.to_string());
        let name = hello.server_name().or(address.as_deref());
        Some(self.certificates.choose(name))
    }
}
