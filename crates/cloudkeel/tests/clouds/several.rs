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
use serde_json::json;
use tempfile::TempDir;

use crate::account::Account;
use crate::gate::Gate;
use crate::harness::Manager;
use crate::moto::Moto;

/// Clouds of a cluster, called as their providers.
pub(crate) type Clouds = [&'static str; 4];

const EMULATED: Clouds = ["hcloud", "openstack", "digitalocean", "local"];
const WITH_AWS: Clouds = ["hcloud", "openstack", "aws", "local"];

/// The credential of each.
fn secret_of(cloud: &str) -> &'static str {
    match cloud {
        "hcloud" => HetznerCloud::TOKEN,
        "openstack" => OpenStackCloud::PASSWORD,
        "digitalocean" => DigitalOceanCloud::TOKEN,
        "aws" => "secret",
        _ => SimulatedCloud::TOKEN,
    }
}

pub(crate) const NAMESPACE: &str = "default";
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
    /// An account of moto.
    aws: Option<Moto>,
}

/// The cluster.
pub(crate) struct Cluster {
    /// Which clouds it has.
    pub(crate) names: Clouds,
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
        Self::of(EMULATED, None).await
    }

    /// With AWS in place of DigitalOcean.
    pub(crate) async fn with_aws() -> Self {
        Self::of(WITH_AWS, Some(Moto::new().await)).await
    }

    async fn of(names: Clouds, aws: Option<Moto>) -> Self {
        let plane = ControlPlane::start().await.expect("a control plane");
        let clouds = Emulated {
            hcloud: HetznerCloud::new(cloudkeel_emulator_hetzner::Settings::default()),
            openstack: OpenStackCloud::new(cloudkeel_emulator_openstack::Settings::default()),
            digitalocean: DigitalOceanCloud::new(
                cloudkeel_emulator_digitalocean::Settings::default(),
            ),
            local: SimulatedCloud::new(cloudkeel_testkit::simulated_cloud::Settings::default()),
            aws,
        };
        let hcloud = clouds.hcloud.serve_on_loopback().await.expect("a port");
        let openstack = clouds.openstack.serve_on_loopback().await.expect("a port");
        let digitalocean = clouds.digitalocean.serve_on_loopback().await;
        let digitalocean = digitalocean.expect("a port");
        let local = clouds.local.serve_on_loopback().await.expect("a port");
        let mut gates = BTreeMap::new();
        let folder = TempDir::new().expect("a temporary folder");
        let config = folder.path().join("clouds.yaml");
        let mut text = "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n".to_owned();
        for cloud in names {
            let url = match cloud {
                "hcloud" => hcloud.api_url(),
                "openstack" => openstack.url(),
                "digitalocean" => digitalocean.api_url(),
                "aws" => clouds.aws().url.clone(),
                _ => local.url(),
            };
            let gate = Gate::to(&url).await;
            let secret = folder.path().join(cloud);
            let others = targets_of_local(names).join(", ");
            text += &clouds.config_of(cloud, &gate.through(&url), &secret, &others);
            std::fs::write(secret, secret_of(cloud)).expect("the secret is written");
            gates.insert(cloud, gate);
        }
        std::fs::write(&config, text).expect("the configuration is written");
        Self {
            names,
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
    pub(crate) async fn machine(&self, cloud: &str, name: &str) -> String {
        match cloud {
            "hcloud" => {
                let server = self.clouds.hcloud.add_server(ServerSpec::named(name));
                server.expect("a server").id.to_string()
            }
            "openstack" => self.clouds.openstack.add_server(name),
            "digitalocean" => self.clouds.digitalocean.add_droplet(name).to_string(),
            "aws" => {
                let aws = self.clouds.aws();
                aws.change("add_instance", json!([name])).await;
                name.to_owned()
            }
            _ => {
                let machine = self.clouds.local.add_machine(MachineSpec::named(name));
                machine.expect("a machine").id.to_string()
            }
        }
    }

    /// Deletes a machine of this cloud.
    pub(crate) async fn destroy(&self, cloud: &str, id: &str) {
        let number = || id.parse().expect("a number");
        match cloud {
            "hcloud" => self
                .clouds
                .hcloud
                .destroy_server(number())
                .expect("a server"),
            "openstack" => self.clouds.openstack.destroy_server(id),
            "digitalocean" => self.clouds.digitalocean.destroy_droplet(number()),
            "aws" => {
                let aws = self.clouds.aws();
                aws.change("destroy", json!([id])).await;
            }
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
        self.destroy(cloud, machine).await;
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

/// Those whose Nodes the balancers of the local cloud send traffic to, by address.
pub(crate) fn targets_of_local(names: Clouds) -> Vec<&'static str> {
    let others = names.into_iter();
    others.filter(|cloud| *cloud != "hcloud").collect()
}

impl Emulated {
    pub(crate) fn aws(&self) -> &Moto {
        self.aws.as_ref().expect("AWS is one of the clouds")
    }

    /// Every cloud serves the class of its own name. The balancers of the local cloud target Nodes of others by address,
    /// and those of AWS the Nodes of OpenStack.
    fn config_of(&self, cloud: &str, url: &str, secret: &Path, others: &str) -> String {
        let secret = secret.display();
        let (targets, config) = match cloud {
            "hcloud" => (
                String::new(),
                format!(
                    "{{endpoint: {url}, tokenFile: {secret}, loadBalancers: {{location: fsn1}}}}"
                ),
            ),
            "openstack" => (String::new(), config_of_openstack(url, &secret.to_string())),
            "digitalocean" => (
                String::new(),
                format!("{{endpoint: {url}, tokenFile: {secret}, region: nyc3}}"),
            ),
            "aws" => (
                ", targets: {clouds: [aws, openstack], by: address}".to_owned(),
                config_of_aws(self.aws(), url, &secret.to_string()),
            ),
            _ => (
                format!(", targets: {{clouds: [{others}], by: address}}"),
                format!("{{endpoint: {url}, tokenFile: {secret}}}"),
            ),
        };
        let default = cloud == "local";
        format!(
            "- name: {cloud}\n  provider: {cloud}\n  loadBalancers: {{default: {default}, class: {cloud}{targets}}}\n  \
             config: {config}\n"
        )
    }
}

fn config_of_openstack(url: &str, secret: &str) -> String {
    format!(
        "{{auth: {{url: {url}/identity/v3, username: {}, passwordFile: {secret}, projectId: {}, domainName: Default}}, \
         region: {}, loadBalancers: {{subnetId: {}, floatingNetworkId: {}}}}}",
        OpenStackCloud::USER,
        OpenStackCloud::PROJECT,
        OpenStackCloud::REGION,
        OpenStackCloud::SUBNET,
        OpenStackCloud::EXTERNAL,
    )
}

fn config_of_aws(moto: &Moto, url: &str, secret: &str) -> String {
    let facts = &moto.facts;
    let subnet = &facts["subnets"]["private"][0];
    format!(
        "{{zone: us-east-1a, vpc: {}, subnetId: {subnet}, clusterId: {}, accessKeyId: \"{}\", \
         secretAccessKeyFile: {secret}, endpoint: {url}}}",
        facts["vpc"],
        facts["cluster"],
        moto.account(),
    )
}
