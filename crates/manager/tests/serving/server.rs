//! A running server for a test, and certificates for it and for its callers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cloudkeel_api::SystemClock;
use cloudkeel_manager::health::Health;
use cloudkeel_manager::metrics::{BuildInfo, Metrics};
use cloudkeel_manager::options::{AuthenticationOptions, AuthorizationOptions, ListenerOptions};
use cloudkeel_manager::serving::{
    AccessControl, Authenticator, Authorizer, ClientCertificates, Endpoints, SecureServer,
    ServerNames, ServingError,
};
use jiff::Timestamp;
use kube::Client;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;

pub(crate) fn listener_options() -> ListenerOptions {
    ListenerOptions {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        http2: true,
        http2_streams: 100,
        cert_dir: None,
        cert_and_key: None,
        cipher_suites: Vec::new(),
        min_version: "VersionTLS12".to_owned(),
        sni: Vec::new(),
        share_port: false,
    }
}

/// As the flags say by default.
pub(crate) fn authentication_options() -> AuthenticationOptions {
    let list = |name: &str| vec![name.to_owned()];
    AuthenticationOptions {
        kubeconfig: None,
        skip_lookup: false,
        tolerate_lookup_failure: false,
        token_cache_ttl: Duration::from_secs(10),
        client_ca_file: None,
        proxy_ca_file: None,
        proxy_allowed_names: Vec::new(),
        username_headers: list("x-remote-user"),
        uid_headers: Vec::new(),
        group_headers: list("x-remote-group"),
        extra_header_prefixes: list("x-remote-extra-"),
    }
}

/// As the flags say by default.
pub(crate) fn authorization_options() -> AuthorizationOptions {
    AuthorizationOptions {
        kubeconfig: None,
        always_allow_paths: ["/healthz", "/readyz", "/livez"].map(str::to_owned).into(),
        authorized_ttl: Duration::from_secs(10),
        unauthorized_ttl: Duration::from_secs(10),
    }
}

/// What the manager would serve.
pub(crate) fn endpoints() -> Router {
    let build = BuildInfo::of_version("1.2.3");
    Endpoints {
        health: Arc::new(Health::new(Timestamp::UNIX_EPOCH)),
        metrics: Metrics::new(&build, Timestamp::UNIX_EPOCH),
        configz: json!({}),
        build,
        debug: None,
        page: None,
    }
    .router()
}

/// A server that stops with this value.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) ended: JoinHandle<()>,
}

impl Running {
    /// Serves a router as it is.
    pub(crate) async fn start(
        options: &ListenerOptions,
        router: Router,
    ) -> Result<Self, ServingError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let names = ServerNames {
            provided: None,
            pair_name: "cloud-controller-manager".to_owned(),
            names: vec!["node-1".to_owned()],
        };
        let clients = ClientCertificates::Requested;
        let clock = Arc::new(SystemClock);
        let server = SecureServer::on(listener, options, &names, clients, clock).await?;
        let address = server.local_addr().unwrap();
        let stop = CancellationToken::new();
        Ok(Self {
            address,
            ended: tokio::spawn(server.run(router, stop.clone())),
            stop,
        })
    }

    /// Serves the manager's endpoints behind a gate that asks these clusters.
    pub(crate) async fn delegating(
        authentication: (&AuthenticationOptions, Option<Client>),
        authorization: (&AuthorizationOptions, Option<Client>),
    ) -> Result<Self, ServingError> {
        let following = CancellationToken::new();
        let (options, client) = authentication;
        let clock = Arc::new(SystemClock);
        let authenticator = Authenticator::delegated(options, client, clock, &following).await?;
        let (options, client) = authorization;
        let authorizer = Authorizer::delegated(options, client)?;
        let router = AccessControl::new(authenticator, authorizer).protect(endpoints());
        let running = Self::start(&listener_options(), router).await?;
        let stopped = running.stop.clone();
        tokio::spawn(async move {
            stopped.cancelled().await;
            following.cancel();
        });
        Ok(running)
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub(crate) struct Issued {
    pub(crate) der: Vec<u8>,
    pub(crate) pem: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn client(&self, user: &str) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    pub(crate) fn server(&self, name: &str) -> Issued {
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Issued {
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Issued {
    /// Writes `NAME.crt` and `NAME.key`.
    pub(crate) fn write(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let certificate = directory.join(format!("{name}.crt"));
        let key = directory.join(format!("{name}.key"));
        std::fs::write(&certificate, &self.pem).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        (certificate, key)
    }
}
