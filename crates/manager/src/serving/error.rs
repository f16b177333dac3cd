//! Why a port cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a port cannot be served. All of these are detected at startup.
#[derive(Debug, Error)]
pub enum ServingError {
    /// The address is in use or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A cipher suite that does not exist.
    #[error("cipher suite {name:?} is unknown: expected one of {possible}")]
    UnknownCipherSuite {
        /// Its name.
        name: String,
        /// All valid names.
        possible: String,
    },
    /// All given cipher suites are insecure.
    #[error("none of the cipher suites {given} is secure: expected one of {possible}")]
    NoCipherSuite {
        /// What was given.
        given: String,
        /// All valid names.
        possible: String,
    },
    /// A TLS version that does not exist.
    #[error("TLS version {name:?} is unknown: expected VersionTLS12 or VersionTLS13")]
    UnknownTlsVersion {
        /// Its name.
        name: String,
    },
    /// A certificate or key cannot be used.
    #[error("the certificate {certificate:?} with the key {key:?} cannot be served: {reason}")]
    KeyPair {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A self-signed certificate could not be created.
    #[error("cannot create a self-signed certificate: {reason}")]
    SelfSigned {
        /// What is wrong.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The CA of client certificates cannot be read.
    #[error("{origin} cannot be read: {reason}{hint}")]
    ClientCa {
        /// Where it is.
        origin: String,
        /// What is wrong.
        reason: String,
        /// What an operator can do.
        hint: &'static str,
    },
    /// A path pattern is wrong.
    #[error("--authorization-always-allow-paths: {path:?}: expected `*` only at the end")]
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
        /// One of them.
        first: &'static str,
        /// The other one.
        second: &'static str,
    },
}
