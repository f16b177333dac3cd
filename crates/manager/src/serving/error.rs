//! Why a port cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a port cannot be served. All of these are found at start.
#[derive(Debug, Error)]
pub enum ServingError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A cipher suite that does not exist.
    #[error("cipher suite {name:?} is unknown; possible are {possible}")]
    UnknownCipherSuite {
        /// Its name.
        name: String,
        /// All that there are.
        possible: String,
    },
    /// All given cipher suites were too weak to be used.
    #[error("none of the cipher suites {given} is safe; possible are {possible}")]
    NoCipherSuite {
        /// What was given.
        given: String,
        /// All that there are.
        possible: String,
    },
    /// A TLS version that does not exist.
    #[error("TLS version {name:?} is unknown; possible are VersionTLS12 and VersionTLS13")]
    UnknownTlsVersion {
        /// Its name.
        name: String,
    },
    /// A certificate or key cannot be used.
    #[error("the certificate {certificate:?} with the key {key:?} cannot be served: {reason}")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("no certificate could be made: {reason}")]
    SelfMade {
        /// What is wrong.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The authorities that sign client certificates cannot be read.
    #[error("{origin} cannot be read: {reason}{hint}")]
    Authorities {
        /// Where they are.
        origin: String,
        /// What is wrong.
        reason: String,
        /// What a person can do.
        hint: &'static str,
    },
    /// A path pattern is wrong.
    #[error("the always-allowed path {path:?} is wrong: `*` may only stand at the end")]
    AllowedPath {
        /// The pattern.
        path: String,
    },
    /// Two webhooks at one path.
    #[error(
        "the webhooks {first:?} and {second:?} are both at {path:?}; each needs a path of its own"
    )]
    WebhookPath {
        /// The path.
        path: &'static str,
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}
