//! The secure port: probes, metrics, status; and webhooks on a port of their own.
//!
//! ```text
//! SecureServer ── TLS ── connection ── AccessControl ── Endpoints
//!                                       │ Authenticator: front proxy, client certificate, bearer token
//!                                       └ Authorizer: system:masters, always-allowed paths, SubjectAccessReview
//! ```
//!
//! Everything that needs the API server is behind a small trait: [`TokenReviewer`], [`AccessReviewer`] and
//! [`CaSource`].

mod access_control;
mod authentication;
mod authorization;
mod connection;
mod connection_limit;
mod endpoints;
mod error;
mod idle_timeout;
mod listener;
mod responses;
mod review_client;
mod server;
mod startup_router;
#[cfg(test)]
mod testing;
mod tls;
mod ttl_cache;
mod user;
mod warning_limiter;
mod webhook;

pub use access_control::AccessControl;
#[cfg(feature = "fuzzing")]
pub use authentication::read_untrusted_identity;
pub use authentication::{
    Authenticator, CaContent, CaSource, CredentialSources, FrontProxy, TokenReviewer,
};
pub use authorization::{AccessDecision, AccessRequest, AccessReviewer, Authorizer};
pub use endpoints::{Endpoints, LogLevel};
pub use error::ServingError;
pub use review_client::{ReviewClient, ReviewError};
pub(crate) use server::DRAIN_TIMEOUT;
pub use server::SecureServer;
pub(crate) use startup_router::startup_router;
pub use tls::{ClientCertificates, ServerNames, SharedKeyPair};
pub(crate) use tls::{KeyPairPem, is_usable, make_key_pair};
pub use user::User;
pub use webhook::webhook_router;
pub(crate) use webhook::webhooks_of;
