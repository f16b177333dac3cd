//! Everything that runs in the demo.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudkeel_api::SystemClock;
use cloudkeel_embedded::NodeMonitor;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use crate::addresses::Block;
use crate::args::DemoArgs;
use crate::cloud::{self, Cloud};
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::managers::Managers;
use crate::settings::{POLL_INTERVAL, PORT, SILENCE};
use crate::traffic::Traffic;

/// The name of the demo's Service.
pub(crate) const SERVICE: &str = "hello";

/// Everything that runs.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) fleet: Fleet,
    pub(crate) managers: Managers,
    pub(crate) traffic: Traffic,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) started: Instant,
    /// Whether the managers' token belongs to another project.
    is_foreign: AtomicBool,
    _monitor: NodeMonitor,
}

impl World {
    pub(crate) async fn start(args: &DemoArgs, folder: &Path) -> Result<Self, String> {
        let started = Instant::now();
        let block = Block::of_process(std::process::id());
        block.check()?;
        let cluster = Cluster::start(args.control_plane, folder).await?;
        let kubeconfig = write(folder, "kubeconfig", &cluster.kubeconfig)?;
        let cloud = cloud::start(args.cloud, folder, block).await?;
        let clouds = write(folder, "clouds.yaml", &cloud_config(cloud.as_ref()))?;
        let managers = Managers::start(folder, &kubeconfig, &clouds, &cluster.token)?;
        let clock = Arc::new(SystemClock);
        let monitor = NodeMonitor::start_with(&cluster.client, clock, POLL_INTERVAL, SILENCE);
        let fleet = Fleet::new(cluster.client.clone(), Arc::clone(&cloud), block);
        Ok(Self {
            cluster,
            cloud,
            fleet,
            managers,
            traffic: Traffic::default(),
            kubeconfig,
            folder: folder.to_owned(),
            started,
            is_foreign: AtomicBool::new(false),
            _monitor: monitor,
        })
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.client.clone()
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, String> {
        let nodes: Api<Node> = Api::all(self.client());
        let found = nodes.list(&ListParams::default()).await;
        Ok(found.map_err(|error| error.to_string())?.items)
    }

    /// A Node; `None` only if the API returns 404.
    pub(crate) async fn node(&self, name: &str) -> Result<Option<Node>, String> {
        let nodes: Api<Node> = Api::all(self.client());
        let node = nodes.get_opt(name).await;
        node.map_err(|error| error.to_string())
    }

    pub(crate) async fn services(&self) -> Result<Vec<Service>, String> {
        let services: Api<Service> = Api::all(self.client());
        let found = services.list(&ListParams::default()).await;
        Ok(found.map_err(|error| error.to_string())?.items)
    }

    pub(crate) async fn events(&self) -> Result<Vec<Event>, String> {
        let events: Api<Event> = Api::all(self.client());
        let found = events.list(&ListParams::default()).await;
        Ok(found.map_err(|error| error.to_string())?.items)
    }

    /// The Service of the demo, created if missing.
    pub(crate) async fn make_service(&self) -> Result<(), String> {
        let services: Api<Service> = Api::namespaced(self.client(), "default");
        let service = json!({
            "metadata": {"name": SERVICE},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": SERVICE},
                "ports": [{"name": "http", "port": PORT}],
            },
        });
        let service = serde_json::from_value(service).map_err(|error| error.to_string())?;
        match services.create(&PostParams::default(), &service).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            outcome => outcome.map(|_| ()).map_err(|error| error.to_string()),
        }
    }

    /// The address of the demo's Service, once it has one.
    pub(crate) async fn entrance(&self) -> Option<SocketAddr> {
        let services: Api<Service> = Api::namespaced(self.client(), "default");
        let service = services.get(SERVICE).await.ok()?;
        let ingress = service.status?.load_balancer?.ingress?.into_iter().next()?;
        let ip: IpAddr = ingress.ip?.parse().ok()?;
        Some(SocketAddr::new(ip, PORT))
    }

    /// Removes a Node from all load balancers, as before maintenance.
    pub(crate) async fn exclude(&self, node: &str) -> Result<(), String> {
        let label = "node.kubernetes.io/exclude-from-external-load-balancers";
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: ""}}}));
        let nodes: Api<Node> = Api::all(self.client());
        let patched = nodes.patch(node, &PatchParams::default(), &patch).await;
        patched.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Replaces the managers' token with one of another project.
    pub(crate) fn swap_token(&self) {
        self.is_foreign.store(true, Ordering::Relaxed);
        self.cloud.swap_token();
    }

    /// Undoes all failures.
    pub(crate) fn repair_cloud(&self) {
        self.is_foreign.store(false, Ordering::Relaxed);
        self.cloud.repair();
    }

    /// Whether the managers' token belongs to another project.
    pub(crate) fn has_foreign_token(&self) -> bool {
        self.is_foreign.load(Ordering::Relaxed)
    }
}

fn cloud_config(cloud: &dyn Cloud) -> String {
    let config = json!({
        "apiVersion": "cloudkeel.dev/v1",
        "kind": "CloudConfig",
        "clouds": [{"name": cloud.name(), "provider": cloud.provider(), "config": cloud.config()}],
    });
    format!("{config:#}\n")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
