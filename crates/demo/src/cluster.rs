//! The Kubernetes API of the demo, embedded or real.

use std::path::Path;

use cloudkeel_embedded::{EmbeddedApi, Identity, Served};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::ControlPlane;
use crate::control_plane::{self, ControlPlaneServers};

/// A running Kubernetes API.
pub(crate) struct Cluster {
    /// The demo's own client.
    pub(crate) client: Client,
    /// Such as `https://127.0.0.1:40123`.
    pub(crate) url: String,
    /// For the managers and for users.
    pub(crate) kubeconfig: String,
    /// The token of an administrator.
    pub(crate) token: String,
    _runs: Runs,
}

#[expect(dead_code, reason = "they run for as long as they are held")]
enum Runs {
    Embedded(Served),
    Real(Box<ControlPlaneServers>),
}

impl Cluster {
    pub(crate) async fn start(kind: ControlPlane, folder: &Path) -> Result<Self, String> {
        match kind {
            ControlPlane::Embedded => Self::embedded().await,
            ControlPlane::Real => Self::real(folder).await,
        }
    }

    async fn embedded() -> Result<Self, String> {
        let api = EmbeddedApi::new();
        let served = api.serve(0).await.map_err(|error| error.to_string())?;
        Ok(Self {
            client: api.client("demo"),
            url: served.url(),
            kubeconfig: served.kubeconfig(Identity::admin("demo")),
            token: api.issue_token(Identity::admin("demo-page")),
            _runs: Runs::Embedded(served),
        })
    }

    async fn real(folder: &Path) -> Result<Self, String> {
        let servers = control_plane::start(folder).await?;
        let kubeconfig = servers.kubeconfig.clone();
        Ok(Self {
            client: client(&kubeconfig).await?,
            url: servers.url.clone(),
            token: servers.token.clone(),
            kubeconfig,
            _runs: Runs::Real(Box::new(servers)),
        })
    }
}

/// A client by a kubeconfig.
pub(crate) async fn client(kubeconfig: &str) -> Result<Client, String> {
    let read = Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| error.to_string())?;
    // Everything is on this host, so the proxies of the environment are not used.
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| error.to_string())
}
