//! A cluster whose Nodes are machines of four clouds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cloudkeel_emulator_digitalocean::DigitalOceanCloud;
use cloudkeel_emulator_hetzner::{HetznerCloud, ServerSpec};
use cloudkeel_emulator_openstack::OpenStackCloud;
use cloudkeel_testkit::cluster::{Kubelet, NodeBuilder, NotReady, ServiceBuilder};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, SimulatedCloud};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::DeleteParams;
use kube::{Api, Client};
use tempfile::TempDir;

use crate::account::Account;
use crate::gate::Gate;
use crate::harness::Manager;

/// The clouds, called as their providers.
pub(crate) const CLOUDS: [&str; 4] = ["hcloud", "openstack", "digitalocean", "local"];

/// The credential of each.
const SECRETS: [&str; 4] = [
    HetznerCloud::TOKEN,
    OpenStackCloud::PASSWORD,
    DigitalOceanCloud::TOKEN,
    SimulatedCloud::TOKEN,
];

/// Those whose Nodes the balancers of the local cloud send traffic to, by address.
pub(crate) const TARGETS_OF_LOCAL: [&str; 3] = ["local", "openstack", "digitalocean"];

const NAMESPACE: &str = "default";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The flags of every manager. Deletions are decided faster than by default, and credentials are followed faster.
const FLAGS: [&str; 9] = [
    "--cloud-reload-period=1s",
    "--node-monitor-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirmation-period=2s",
    "--node-deletion-proofs=2",
    "--configure-cloud-routes=false",
    "--allow-untagged-cloud",
    "--bind-address=127.0.0.1",
    "-v=2",
];

/// The emulated clouds.
pub(crate) struct Emulated {
    hcloud: HetznerCloud,
    pub(crate) openstack: OpenStackCloud,
    digitalocean: DigitalOceanCloud,
    pub(crate) local: SimulatedCloud,
}

/// The cluster.
pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) clouds: Emulated,
    gates: BTreeMap<&'static str, Gate>,
    folder: TempDir,
    config: PathBuf,
    /// What serves the clouds, for as long as it is kept.
    _served: Vec<Box<dyn std::any::Any + Send>>,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        let plane = ControlPlane::start().await.expect("a control plane");
        let clouds = Emulated {
            hcloud: HetznerCloud::new(cloudkeel_emulator_hetzner::Settings::default()),
            openstack: OpenStackCloud::new(cloudkeel_emulator_openstack::Settings::default()),
            digitalocean: DigitalOceanCloud::new(
                cloudkeel_emulator_digitalocean::Settings::default(),
            ),
            local: SimulatedCloud::new(cloudkeel_testkit::simulated_cloud::Settings::default()),
        };
        let hcloud = clouds.hcloud.serve_on_loopback().await.expect("a port");
        let openstack = clouds.openstack.serve_on_loopback().await.expect("a port");
        let digitalocean = clouds.digitalocean.serve_on_loopback().await;
        let digitalocean = digitalocean.expect("a port");
        let local = clouds.local.serve_on_loopback().await.expect("a port");
        let urls = [
            hcloud.api_url(),
            openstack.url(),
            digitalocean.api_url(),
            local.url(),
        ];
        let mut gates = BTreeMap::new();
        let mut through = Vec::new();
        for (cloud, url) in CLOUDS.into_iter().zip(&urls) {
            let gate = Gate::to(url).await;
            through.push(gate.through(url));
            gates.insert(cloud, gate);
        }
        let folder = TempDir::new().expect("a temporary folder");
        let config = folder.path().join("clouds.yaml");
        for (cloud, secret) in CLOUDS.into_iter().zip(SECRETS) {
            std::fs::write(folder.path().join(cloud), secret).expect("the secret is written");
        }
        let text = config_of(&through, folder.path());
        std::fs::write(&config, text).expect("the configuration is written");
        Self {
            client: plane.client(),
            plane,
            clouds,
            gates,
            folder,
            config,
            _served: vec![
                Box::new(hcloud),
                Box::new(openstack),
                Box::new(digitalocean),
                Box::new(local),
            ],
        }
    }

    /// Opens or closes the way to a cloud. Its credential is written again when it is open: so is it tried at once.
    pub(crate) fn set_open(&self, cloud: &str, open: bool) {
        self.gates[cloud].set_open(open);
        if open {
            let file = self.folder.path().join(cloud);
            let mut secret = std::fs::read_to_string(&file).expect("the secret is there");
            secret.push('\n');
            std::fs::write(file, secret).expect("the secret is written");
        }
    }

    /// A manager of all four clouds, which serves health on this port.
    pub(crate) fn start(&self, port: u16, more: &[&str]) -> Manager {
        let access = self.plane.kubeconfig_for("clouds", &["system:masters"]);
        self.start_as(&access, port, more)
    }

    /// The kubeconfig of this account.
    pub(crate) async fn kubeconfig_of(&self, account: &Account) -> PathBuf {
        let name = account.user();
        let name = name.rsplit(':').next().expect("a name");
        let written = self.plane.service_account_kubeconfig("kube-system", name);
        written.await.expect("the account is there")
    }

    /// A manager that reaches the API server in this way.
    pub(crate) fn start_as(&self, access: &Path, port: u16, more: &[&str]) -> Manager {
        let access = access.display();
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program
            .args(
                ["", "authentication-", "authorization-"]
                    .map(|which| format!("--{which}kubeconfig={access}")),
            )
            .arg(format!("--cloud-config={}", self.config.display()))
            .arg(format!("--secure-port={port}"))
            .args(FLAGS)
            .args(more);
        Manager::spawn(program, self.folder.path().join(format!("log-{port}")))
    }

    /// A machine of this cloud, by name. Returns its ID.
    pub(crate) fn machine(&self, cloud: &str, name: &str) -> String {
        match cloud {
            "hcloud" => {
                let server = self.clouds.hcloud.add_server(ServerSpec::named(name));
                server.expect("a server").id.to_string()
            }
            "openstack" => self.clouds.openstack.add_server(name),
            "digitalocean" => self.clouds.digitalocean.add_droplet(name).to_string(),
            _ => {
                let machine = self.clouds.local.add_machine(MachineSpec::named(name));
                machine.expect("a machine").id.to_string()
            }
        }
    }

    /// Deletes a machine of this cloud.
    pub(crate) fn destroy(&self, cloud: &str, id: &str) {
        let number = || id.parse().expect("a number");
        match cloud {
            "hcloud" => self
                .clouds
                .hcloud
                .destroy_server(number())
                .expect("a server"),
            "openstack" => self.clouds.openstack.destroy_server(id),
            "digitalocean" => self.clouds.digitalocean.destroy_droplet(number()),
            _ => self.clouds.local.destroy(number()).expect("a machine"),
        }
    }

    /// A new Node, of which only the label says to which cloud it belongs.
    pub(crate) async fn join(&self, cloud: &str, name: &str) {
        let node = NodeBuilder::new(name).label("cloudkeel.dev/cloud", cloud);
        node.create(&self.client).await.expect("the Node is made");
        let kubelet = Kubelet::new(&self.client, name);
        kubelet.set_ready().await.expect("the status is written");
    }

    /// Its machine is gone, and its kubelet is not heard.
    pub(crate) async fn lose(&self, cloud: &str, name: &str, machine: &str) {
        self.destroy(cloud, machine);
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let _ = leases.delete(name, &DeleteParams::default()).await;
        let kubelet = Kubelet::new(&self.client, name);
        let written = kubelet.set_not_ready(NotReady::Unknown).await;
        written.expect("the status is written");
    }

    /// A new Service of this cloud.
    pub(crate) async fn expose(&self, cloud: &str, name: &str) {
        let service = ServiceBuilder::new(NAMESPACE, name).class(cloud);
        let service = service.port("http", 80);
        let made = service.create(&self.client).await;
        made.expect("the Service is made");
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn node(&self, name: &str) -> Option<Node> {
        self.nodes().get_opt(name).await.expect("Nodes can be read")
    }

    pub(crate) async fn service(&self, name: &str) -> Option<Service> {
        let found = self.services().get_opt(name).await;
        found.expect("Services can be read")
    }

    /// Whether a Node has been initialized.
    pub(crate) async fn is_initialized(&self, name: &str) -> bool {
        let spec = self.node(name).await.and_then(|node| node.spec);
        spec.is_some_and(|spec| {
            let taints = spec.taints.unwrap_or_default();
            spec.provider_id.is_some() && !taints.iter().any(|it| it.key == UNINITIALIZED)
        })
    }

    /// Whether a Service has an address.
    pub(crate) async fn is_served(&self, name: &str) -> bool {
        let service = self.service(name).await;
        let ingress = service.and_then(|it| it.status?.load_balancer?.ingress);
        ingress.is_some_and(|ingress| !ingress.is_empty())
    }
}

/// Every cloud serves the class of its own name. The balancers of the local cloud target Nodes of others by address.
fn config_of(urls: &[String], secrets: &Path) -> String {
    let [hcloud, openstack, digitalocean, local] = urls else {
        panic!("four clouds");
    };
    let secrets = secrets.display();
    let targets = TARGETS_OF_LOCAL.join(", ");
    format!(
        "apiVersion: cloudkeel.dev/v1
kind: CloudConfig
clouds:
- name: hcloud
  provider: hcloud
  loadBalancers: {{default: false, class: hcloud}}
  config:
    endpoint: {hcloud}
    tokenFile: {secrets}/hcloud
    loadBalancers: {{location: fsn1}}
- name: openstack
  provider: openstack
  loadBalancers: {{default: false, class: openstack}}
  config:
    auth: {{url: {openstack}/identity/v3, username: {}, passwordFile: {secrets}/openstack, projectId: {}, domainName: Default}}
    region: {}
    loadBalancers: {{subnetId: {}, floatingNetworkId: {}}}
- name: digitalocean
  provider: digitalocean
  loadBalancers: {{default: false, class: digitalocean}}
  config: {{endpoint: {digitalocean}, tokenFile: {secrets}/digitalocean, region: nyc3}}
- name: local
  provider: local
  loadBalancers: {{default: true, class: local, targets: {{clouds: [{targets}], by: address}}}}
  config: {{endpoint: {local}, tokenFile: {secrets}/local}}
",
        OpenStackCloud::USER,
        OpenStackCloud::PROJECT,
        OpenStackCloud::REGION,
        OpenStackCloud::SUBNET,
        OpenStackCloud::EXTERNAL,
    )
}
