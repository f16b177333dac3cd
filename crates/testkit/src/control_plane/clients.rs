//! Clients of the control plane, one identity each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube::{Client, Config};
use serde_json::{Value, json};

use super::pki::{Authority, IdentityFiles};
use super::{ControlPlane, ControlPlaneError};

/// What clients are made from. It holds no client: one belongs to the runtime of the test that made it.
#[derive(Debug)]
pub(super) struct Clients {
    url: String,
    authority: Authority,
    ca_pem: String,
    ca_file: PathBuf,
    /// Where the files of identities are written.
    dir: PathBuf,
    issued: AtomicU32,
    admin: IdentityFiles,
}

impl Clients {
    pub(super) fn new(
        url: String,
        authority: Authority,
        ca_file: &Path,
        dir: PathBuf,
    ) -> Result<Self, ControlPlaneError> {
        let admin = authority
            .client("cloudkeel-test-admin", &["system:masters"])?
            .write(&dir, "admin")
            .map_err(ControlPlaneError::io("write the key of the administrator"))?;
        Ok(Self {
            url,
            ca_pem: authority.pem(),
            ca_file: ca_file.to_owned(),
            authority,
            dir,
            issued: AtomicU32::new(0),
            admin,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// An administrator's client that gives up soon, for a server that may not answer yet.
    pub(super) fn impatient(&self) -> Result<Client, ControlPlaneError> {
        let mut config = self.config_of(&self.admin)?;
        config.connect_timeout = Some(Duration::from_secs(1));
        config.read_timeout = Some(Duration::from_secs(5));
        config.default_retry = false;
        self.client(config)
    }

    fn config(&self) -> Result<Config, ControlPlaneError> {
        let url = self.url.parse().map_err(|error: http::uri::InvalidUri| {
            self.failed(kube::Error::HttpError(error.into()))
        })?;
        let mut config = Config::new(url);
        config.root_cert = Some(vec![self.authority.der()]);
        Ok(config)
    }

    fn config_of(&self, identity: &IdentityFiles) -> Result<Config, ControlPlaneError> {
        let mut config = self.config()?;
        config.auth_info.client_certificate = Some(identity.certificate.display().to_string());
        config.auth_info.client_key = Some(identity.key.display().to_string());
        Ok(config)
    }

    fn client(&self, config: Config) -> Result<Client, ControlPlaneError> {
        Client::try_from(config).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: kube::Error) -> ControlPlaneError {
        ControlPlaneError::Client {
            url: self.url.clone(),
            source: Box::new(source),
        }
    }

    /// Signs a certificate for a user and writes it under a name of its own.
    fn identity(&self, user: &str, groups: &[&str]) -> Result<IdentityFiles, ControlPlaneError> {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        self.authority
            .client(user, groups)?
            .write(&self.dir, &format!("user-{number}"))
            .map_err(ControlPlaneError::io("write the key of a user"))
    }

    fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf, ControlPlaneError> {
        let identity = self.identity(user, groups)?;
        let path = identity.certificate.with_extension("kubeconfig");
        let credential =
            json!({"client-certificate": identity.certificate, "client-key": identity.key});
        self.write_kubeconfig(&path, &credential)?;
        Ok(path)
    }

    /// A kubeconfig with a bearer token, under a name of its own.
    pub(super) fn kubeconfig_with_token(&self, token: &str) -> Result<PathBuf, ControlPlaneError> {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("token-{number}.kubeconfig"));
        self.write_kubeconfig(&path, &json!({"token": token}))?;
        Ok(path)
    }

    fn write_kubeconfig(&self, path: &Path, credential: &Value) -> Result<(), ControlPlaneError> {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{
                "name": "test",
                "cluster": {"server": self.url, "certificate-authority": self.ca_file},
            }],
            "users": [{"name": "test", "user": credential}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        std::fs::write(path, format!("{kubeconfig:#}"))
            .map_err(ControlPlaneError::io("write a kubeconfig"))
    }
}

/// Every client is new and belongs to the runtime it is made in, so these are to be called in a test's own.
impl ControlPlane {
    /// The address of the API server.
    pub fn url(&self) -> &str {
        &self.clients.url
    }

    /// The authority that signed the server's certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.clients.ca_pem
    }

    /// An administrator's client.
    ///
    /// # Panics
    /// If it cannot be made, which fails the test.
    pub fn client(&self) -> Client {
        let clients = &self.clients;
        usable(
            clients
                .config_of(&clients.admin)
                .and_then(|config| clients.client(config)),
        )
    }

    /// A client that is known by its certificate as this user in these groups (at most two).
    ///
    /// # Panics
    /// If it cannot be made, which fails the test.
    pub fn client_for(&self, user: &str, groups: &[&str]) -> Client {
        let clients = &self.clients;
        let identity = clients.identity(user, groups);
        usable(
            identity
                .and_then(|identity| clients.config_of(&identity))
                .and_then(|config| clients.client(config)),
        )
    }

    /// A client that shows a bearer token.
    ///
    /// # Panics
    /// If it cannot be made, which fails the test.
    pub fn client_with_token(&self, token: &str) -> Client {
        let clients = &self.clients;
        usable(clients.config().and_then(|mut config| {
            config.auth_info.token = Some(token.to_owned().into());
            clients.client(config)
        }))
    }

    /// A kubeconfig file for a program that is to act as this user in these groups (at most two).
    ///
    /// It names certificate files beside it, so it is good for as long as the control plane runs.
    ///
    /// # Panics
    /// If it cannot be written, which fails the test.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> PathBuf {
        usable(self.clients.kubeconfig(user, groups))
    }
}

#[expect(clippy::panic, reason = "a test without its client fails")]
pub(super) fn usable<T>(outcome: Result<T, ControlPlaneError>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error}"))
}
