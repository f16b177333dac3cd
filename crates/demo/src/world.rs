//! Everything of the demo that runs.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudkeel_api::SystemClock;
use cloudkeel_embedded::NodeMonitor;
use cloudkeel_local_cloud::simulated_cloud::{
    Fault, FaultMatch, MachineSpec, Permission, SimulatedCloud,
};
use cloudkeel_local_cloud::{Addresses, LocalCloud, Options, PlaneSettings, RouteMode};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use crate::addresses::Block;
use crate::args::DemoArgs;
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::managers::Managers;
use crate::settings::{DRAIN, LOOK, PORT, SILENCE};
use crate::traffic::Traffic;

/// The name of the demo's Service.
pub(crate) const SERVICE: &str = "hello";

/// A project with machines of somebody else.
const OTHER_PROJECT: &str = "somebody-elses";

/// Everything that runs.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) local: LocalCloud,
    pub(crate) fleet: Fleet,
    pub(crate) managers: Managers,
    pub(crate) traffic: Traffic,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) started: Instant,
    /// The credential of the managers.
    token: String,
    /// It belongs to somebody else's project for now.
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
        let local = local_cloud(folder, block).await?;
        let cloud = local.cloud();
        cloud.add_project(OTHER_PROJECT);
        let stranger = MachineSpec::named("stranger").in_project(OTHER_PROJECT);
        cloud.add_machine(stranger).map_err(|why| why.to_string())?;
        let contact = local.contact();
        let token = std::fs::read_to_string(&contact.token_file)
            .map_err(|error| format!("{}: {error}", contact.token_file.display()))?;
        let clouds = write(folder, "clouds.yaml", &cloud_config(&local))?;
        let managers = Managers::start(folder, &kubeconfig, &clouds, &cluster.token)?;
        let clock = Arc::new(SystemClock);
        let monitor = NodeMonitor::start_with(&cluster.client, clock, LOOK, SILENCE);
        let fleet = Fleet::new(cluster.client.clone(), local.cloud().clone(), block);
        Ok(Self {
            cluster,
            local,
            fleet,
            managers,
            traffic: Traffic::default(),
            kubeconfig,
            folder: folder.to_owned(),
            started,
            token: token.trim().to_owned(),
            is_foreign: AtomicBool::new(false),
            _monitor: monitor,
        })
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.client.clone()
    }

    pub(crate) fn cloud(&self) -> &SimulatedCloud {
        self.local.cloud()
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, String> {
        let nodes: Api<Node> = Api::all(self.client());
        let found = nodes.list(&ListParams::default()).await;
        Ok(found.map_err(|error| error.to_string())?.items)
    }

    /// A Node; `None` only if the API says that it is not there.
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

    /// The Service of the demo, made if it is not there.
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

    /// Where the Service of the demo is reached, once it has an address.
    pub(crate) async fn entrance(&self) -> Option<SocketAddr> {
        let services: Api<Service> = Api::namespaced(self.client(), "default");
        let service = services.get(SERVICE).await.ok()?;
        let ingress = service.status?.load_balancer?.ingress?.into_iter().next()?;
        let ip: IpAddr = ingress.ip?.parse().ok()?;
        Some(SocketAddr::new(ip, PORT))
    }

    /// Takes a Node out of all balancers, as before work on its machine.
    pub(crate) async fn exclude(&self, node: &str) -> Result<(), String> {
        let label = "node.kubernetes.io/exclude-from-external-load-balancers";
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: ""}}}));
        let nodes: Api<Node> = Api::all(self.client());
        let patched = nodes.patch(node, &PatchParams::default(), &patch).await;
        patched.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Makes the cloud answer every call with 503.
    pub(crate) fn break_cloud(&self) {
        let faults = self.cloud().faults();
        faults.clear();
        faults.always(FaultMatch::any(), Fault::status(503));
    }

    /// Makes the managers' token one of somebody else's project.
    pub(crate) fn swap_token(&self) {
        self.is_foreign.store(true, Ordering::Relaxed);
        self.cloud()
            .grant(&self.token, OTHER_PROJECT, Permission::ReadWrite);
    }

    /// What was made in somebody else's project. Nothing should be.
    pub(crate) fn made_elsewhere(&self) -> usize {
        self.cloud().balancers_of(OTHER_PROJECT).len() + self.cloud().routes_of(OTHER_PROJECT).len()
    }

    /// Mends whatever was broken.
    pub(crate) fn mend_cloud(&self) {
        self.cloud().faults().clear();
        self.is_foreign.store(false, Ordering::Relaxed);
        let project = SimulatedCloud::PROJECT;
        self.cloud()
            .grant(&self.token, project, Permission::ReadWrite);
    }

    /// Whether the managers' token belongs to somebody else's project.
    pub(crate) fn has_foreign_token(&self) -> bool {
        self.is_foreign.load(Ordering::Relaxed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        !self.cloud().faults().rules().is_empty()
    }
}

async fn local_cloud(folder: &Path, block: Block) -> Result<LocalCloud, String> {
    let mut options = Options::of(folder.join("cloud.json"));
    options.addresses = Addresses {
        public_v4: block.balancers(),
        ..Addresses::default()
    };
    options.plane = PlaneSettings {
        drain: DRAIN,
        ..PlaneSettings::default()
    };
    // Nothing of this machine is changed.
    options.routes = RouteMode::Table;
    let local = LocalCloud::start(&options).await;
    local.map_err(|error| error.to_string())
}

fn cloud_config(local: &LocalCloud) -> String {
    let contact = local.contact();
    let config = json!({
        "apiVersion": "cloudkeel.dev/v1",
        "kind": "CloudConfig",
        "clouds": [{"name": "local", "provider": "local", "config": {
            "endpoint": contact.url, "tokenFile": contact.token_file,
        }}],
    });
    format!("{config:#}\n")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
