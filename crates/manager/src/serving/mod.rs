//! The secure port: probes, scrapes, people, and webhooks on a port of their own.
//!
//! ```text
//! SecureServer ── TLS ── connection ── Gate ── Endpoints
//!                                       │ who are you?  Authenticator: front proxy, certificate, token
//!                                       └ may you?      Authorizer: administrators, open paths, the API server
//! ```
//!
//! Whatever needs the API server stands behind a small trait: [`TokenReviewer`], [`AccessReviewer`] and
//! [`CaSource`].

mod activity;
mod authentication;
mod authorization;
mod complaint;
mod connection;
mod early;
mod endpoints;
mod error;
mod expiring;
mod gate;
mod listener;
mod review;
mod room;
mod server;
mod status;
#[cfg(test)]
mod testing;
mod tls;
mod user;
mod webhook;

#[cfg(feature = "fuzzing")]
pub use authentication::read_strangers;
pub use authentication::{
    Authenticator, CaContent, CaSource, FrontProxy, Identities, TokenReviewer,
};
pub use authorization::{AccessReviewer, Answer, Authorizer, Question};
pub(crate) use early::open_first;
pub use endpoints::{Endpoints, LogLevel};
pub use error::ServingError;
pub use gate::Gate;
pub use review::{KubeReviews, ReviewError};
pub(crate) use server::DRAIN_TIMEOUT;
pub use server::SecureServer;
pub use tls::{ClientCertificates, ServerNames};
pub use user::User;
pub use webhook::webhook_router;
pub(crate) use webhook::webhooks_of;
