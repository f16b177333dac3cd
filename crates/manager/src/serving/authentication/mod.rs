//! Authentication: who sent a request.
//!
//! Tried in this order: the headers of a front proxy, the client certificate, a bearer token. A request without
//! credentials is anonymous; one whose credentials are all invalid gets 401.

mod bearer_token;
mod ca_config_map;
mod ca_file;
mod ca_source;
mod client_certificate;
mod front_proxy;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use http::HeaderMap;
use kube::Client;
use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

pub use self::bearer_token::TokenReviewer;
use self::bearer_token::Tokens;
use self::ca_config_map::{AuthenticationConfigMap, CaKind};
use self::ca_file::CaFile;
use self::ca_source::{AtStartup, CaReceiver, TrustedCas, watch_ca};
pub use self::ca_source::{CaContent, CaSource};
use self::client_certificate::{Subject, user_of};
pub use self::front_proxy::FrontProxy;
use super::ServingError;
use super::review_client::ReviewClient;
use super::user::User;
use crate::options::AuthenticationOptions;

/// What an operator can do when the `ConfigMap` cannot be read.
const LOOKUP_HINT: &str = "; grant the role kube-system/extension-apiserver-authentication-reader, or set \
                           --authentication-tolerate-lookup-failure or --authentication-skip-lookup";

/// Where credentials are checked. What is missing here is not accepted.
#[derive(Default)]
pub struct CredentialSources {
    /// The CA of front proxies.
    pub front_proxies: Option<Arc<dyn CaSource>>,
    /// The CA of client certificates.
    pub clients: Option<Arc<dyn CaSource>>,
    /// Checks bearer tokens.
    pub tokens: Option<Box<dyn TokenReviewer>>,
}

/// Authenticates requests.
pub struct Authenticator {
    front_proxies: Option<CaReceiver>,
    clients: Option<CaReceiver>,
    tokens: Option<Tokens>,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Delegates to the cluster of `client`; without one, only CAs from files are trusted. Watches all CAs until
    /// `stop`.
    pub async fn delegated(
        options: &AuthenticationOptions,
        client: Option<Client>,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<Self, ServingError> {
        let looked_up = |part| -> Option<Arc<dyn CaSource>> {
            let client = client.clone().filter(|_| !options.skip_lookup)?;
            Some(Arc::new(AuthenticationConfigMap::new(client, part)))
        };
        let in_file = |path: &Option<_>, front_proxy| -> Option<Arc<dyn CaSource>> {
            Some(Arc::new(CaFile::new(path.clone()?, front_proxy)))
        };
        let front_proxy_flags = FrontProxy {
            allowed_names: options.proxy_allowed_names.clone(),
            username_headers: options.username_headers.clone(),
            uid_headers: options.uid_headers.clone(),
            group_headers: options.group_headers.clone(),
            extra_prefixes: options.extra_header_prefixes.clone(),
        };
        let identities = CredentialSources {
            front_proxies: in_file(&options.proxy_ca_file, front_proxy_flags)
                .or_else(|| looked_up(CaKind::FrontProxies)),
            clients: in_file(&options.client_ca_file, FrontProxy::default())
                .or_else(|| looked_up(CaKind::Clients)),
            tokens: client
                .clone()
                .map(|client| Box::new(ReviewClient::new(client)) as Box<dyn TokenReviewer>),
        };
        let rules = StartupRules::of(options);
        Self::start(identities, rules, options.token_cache_ttl, clock, stop).await
    }

    /// Accepts only these credentials. Every CA must be readable at once.
    pub async fn new(
        identities: CredentialSources,
        token_cache_ttl: Duration,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<Self, ServingError> {
        let rules = StartupRules {
            front_proxies: AtStartup::Required(""),
            clients: AtStartup::Required(""),
        };
        Self::start(identities, rules, token_cache_ttl, clock, stop).await
    }

    async fn start(
        identities: CredentialSources,
        rules: StartupRules,
        token_cache_ttl: Duration,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<Self, ServingError> {
        let front_proxies =
            watch_some_ca(identities.front_proxies, rules.front_proxies, stop).await?;
        let clients = watch_some_ca(identities.clients, rules.clients, stop).await?;
        let tokens = identities
            .tokens
            .map(|reviewer| Tokens::new(reviewer, token_cache_ttl))
            .transpose()
            .map_err(|reason| ServingError::ClientCa {
                origin: "the token cache".to_owned(),
                reason,
                hint: "",
            })?;
        Ok(Self {
            front_proxies,
            clients,
            tokens,
            clock,
        })
    }

    /// The user of a request that came over a connection with this certificate chain. An error, for the log only, if
    /// credentials were given and none is valid.
    pub(super) async fn authenticate(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Result<User, String> {
        let mut errors = Vec::new();
        match self.by_front_proxy(chain, headers) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        match self.by_certificate(chain) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        if let Some(tokens) = &self.tokens {
            match tokens.user(headers).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(User::anonymous())
        } else {
            Err(errors.join("; "))
        }
    }

    fn by_front_proxy(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Result<Option<User>, String> {
        let Some((trust, leaf)) = trusted(self.front_proxies.as_ref(), chain) else {
            return Ok(None);
        };
        trust
            .authorities
            .verify(chain, self.clock.now())
            .map_err(|error| format!("as a front proxy: {error}"))?;
        trust.front_proxy.allows(&Subject::of(leaf)?.common_name)?;
        Ok(trust.front_proxy.user(headers))
    }

    fn by_certificate(&self, chain: &[CertificateDer<'_>]) -> Result<Option<User>, String> {
        let Some((trust, leaf)) = trusted(self.clients.as_ref(), chain) else {
            return Ok(None);
        };
        trust
            .authorities
            .verify(chain, self.clock.now())
            .map_err(|error| format!("as a client: {error}"))?;
        user_of(leaf)
    }
}

/// The CAs to check against, if there are any and the client sent a certificate.
fn trusted<'a, 'c>(
    followed: Option<&CaReceiver>,
    chain: &'a [CertificateDer<'c>],
) -> Option<(Arc<TrustedCas>, &'a CertificateDer<'c>)> {
    let trust = followed?.borrow().clone()?;
    Some((trust, chain.first()?))
}

/// What the parsers make of an untrusted certificate and untrusted headers: the user that each names.
#[cfg(feature = "fuzzing")]
pub fn read_untrusted_identity(
    certificate: &[u8],
    proxy: &FrontProxy,
    headers: &HeaderMap,
) -> (Option<User>, Option<User>) {
    let certificate = CertificateDer::from(certificate);
    let shown = user_of(&certificate).ok().flatten();
    (shown, proxy.user(headers))
}

async fn watch_some_ca(
    source: Option<Arc<dyn CaSource>>,
    at_start: AtStartup,
    stop: &CancellationToken,
) -> Result<Option<CaReceiver>, ServingError> {
    match source {
        Some(source) => watch_ca(source, at_start, stop.clone()).await.map(Some),
        None => Ok(None),
    }
}

/// Which sources may fail at startup.
struct StartupRules {
    front_proxies: AtStartup,
    clients: AtStartup,
}

impl StartupRules {
    /// As upstream: files must be readable; of the `ConfigMap`, the part about front proxies must be, unless
    /// failures are tolerated.
    fn of(options: &AuthenticationOptions) -> Self {
        let front_proxies = match (&options.proxy_ca_file, options.tolerate_lookup_failure) {
            (Some(_), _) => AtStartup::Required(""),
            (None, false) => AtStartup::Required(LOOKUP_HINT),
            (None, true) => AtStartup::Optional,
        };
        let clients = match &options.client_ca_file {
            Some(_) => AtStartup::Required(""),
            None => AtStartup::Optional,
        };
        Self {
            front_proxies,
            clients,
        }
    }
}
