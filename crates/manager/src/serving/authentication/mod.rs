//! Finding out who sent a request.
//!
//! In this order: a front proxy's word in headers, the client's own certificate, a bearer token. Somebody
//! who showed nothing is anonymous; somebody who showed something that nobody believes is turned away.

mod authority_source;
mod certificate;
mod config_map;
mod files;
mod front_proxy;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use http::HeaderMap;
use kube::Client;
use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

use self::authority_source::{AtStart, Followed, Trust, follow};
pub use self::authority_source::{CaContent, CaSource};
use self::certificate::{Subject, user_of};
use self::config_map::{AuthenticationConfigMap, Part};
use self::files::CaFile;
pub use self::front_proxy::FrontProxy;
pub use self::token::TokenReviewer;
use self::token::Tokens;
use super::ServingError;
use super::review::KubeReviews;
use super::user::User;
use crate::options::AuthenticationOptions;

/// What helps somebody whose `ConfigMap` cannot be read.
const LOOKUP_HINT: &str = "; grant the role kube-system/extension-apiserver-authentication-reader, or set \
                           --authentication-tolerate-lookup-failure or --authentication-skip-lookup";

/// Where proofs of identity come from. Whatever is missing is not believed.
#[derive(Default)]
pub struct Identities {
    /// Authorities of front proxies.
    pub front_proxies: Option<Arc<dyn CaSource>>,
    /// Authorities of users.
    pub clients: Option<Arc<dyn CaSource>>,
    /// Who knows tokens.
    pub tokens: Option<Box<dyn TokenReviewer>>,
}

/// Finds out who sent a request.
pub struct Authenticator {
    front_proxies: Option<Followed>,
    clients: Option<Followed>,
    tokens: Option<Tokens>,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Delegates to the cluster of `client`; without one, only authorities in files are believed.
    /// Follows all authorities until `stop`.
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
        let identities = Identities {
            front_proxies: in_file(&options.proxy_ca_file, front_proxy_flags)
                .or_else(|| looked_up(Part::FrontProxies)),
            clients: in_file(&options.client_ca_file, FrontProxy::default())
                .or_else(|| looked_up(Part::Clients)),
            tokens: client
                .clone()
                .map(|client| Box::new(KubeReviews::new(client)) as Box<dyn TokenReviewer>),
        };
        let rules = StartRules::of(options);
        Self::start(identities, rules, options.token_cache_ttl, clock, stop).await
    }

    /// Believes these and nobody else. Every authority must be readable at once.
    pub async fn new(
        identities: Identities,
        token_cache_ttl: Duration,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<Self, ServingError> {
        let rules = StartRules {
            front_proxies: AtStart::MustBeReadable(""),
            clients: AtStart::MustBeReadable(""),
        };
        Self::start(identities, rules, token_cache_ttl, clock, stop).await
    }

    async fn start(
        identities: Identities,
        rules: StartRules,
        token_cache_ttl: Duration,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<Self, ServingError> {
        let front_proxies =
            follow_some(identities.front_proxies, rules.front_proxies, stop).await?;
        let clients = follow_some(identities.clients, rules.clients, stop).await?;
        let tokens = identities
            .tokens
            .map(|reviewer| Tokens::new(reviewer, token_cache_ttl))
            .transpose()
            .map_err(|reason| ServingError::Authorities {
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

    /// Who sent a request, over a connection on which this chain of certificates was shown. An error, for
    /// the log only, if what was shown is not believed.
    pub(super) async fn authenticate(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Result<User, String> {
        let mut doubts = Vec::new();
        match self.by_front_proxy(chain, headers) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(doubt) => doubts.push(doubt),
        }
        match self.by_certificate(chain) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(doubt) => doubts.push(doubt),
        }
        if let Some(tokens) = &self.tokens {
            match tokens.user(headers).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(doubt) => doubts.push(doubt),
            }
        }
        if doubts.is_empty() {
            Ok(User::anonymous())
        } else {
            Err(doubts.join("; "))
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
            .map_err(|doubt| format!("as a front proxy: {doubt}"))?;
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
            .map_err(|doubt| format!("as a client: {doubt}"))?;
        user_of(leaf)
    }
}

/// The authorities to ask, if there are any and a certificate was shown.
fn trusted<'a, 'c>(
    followed: Option<&Followed>,
    chain: &'a [CertificateDer<'c>],
) -> Option<(Arc<Trust>, &'a CertificateDer<'c>)> {
    let trust = followed?.borrow().clone()?;
    Some((trust, chain.first()?))
}

/// What the readers of strangers' certificates and headers make of these: whom the certificate names, and
/// whom the headers do.
#[cfg(feature = "fuzzing")]
pub fn read_strangers(
    certificate: &[u8],
    proxy: &FrontProxy,
    headers: &HeaderMap,
) -> (Option<User>, Option<User>) {
    let certificate = CertificateDer::from(certificate);
    let shown = user_of(&certificate).ok().flatten();
    (shown, proxy.user(headers))
}

async fn follow_some(
    source: Option<Arc<dyn CaSource>>,
    at_start: AtStart,
    stop: &CancellationToken,
) -> Result<Option<Followed>, ServingError> {
    match source {
        Some(source) => follow(source, at_start, stop.clone()).await.map(Some),
        None => Ok(None),
    }
}

/// Which sources may fail at start.
struct StartRules {
    front_proxies: AtStart,
    clients: AtStart,
}

impl StartRules {
    /// As upstream: files must be readable; of the `ConfigMap`, the part about front proxies must be, unless
    /// failure is tolerated.
    fn of(options: &AuthenticationOptions) -> Self {
        let front_proxies = match (&options.proxy_ca_file, options.tolerate_lookup_failure) {
            (Some(_), _) => AtStart::MustBeReadable(""),
            (None, false) => AtStart::MustBeReadable(LOOKUP_HINT),
            (None, true) => AtStart::MayFail,
        };
        let clients = match &options.client_ca_file {
            Some(_) => AtStart::MustBeReadable(""),
            None => AtStart::MayFail,
        };
        Self {
            front_proxies,
            clients,
        }
    }
}
