//! The program itself in the place of digitalocean-cloud-controller-manager, in a cluster that this made: every call and
//! every write of the Go CCM is made here, in its order and with its values.

use std::collections::BTreeMap;

use cloudkeel_api::Secret;
use cloudkeel_emulator_digitalocean::{
    DigitalOceanCloud, Droplet, LoadBalancer, Operation, Served, Settings,
};
use cloudkeel_http::{Client as Http, HeaderAuth, Request};
use cloudkeel_testkit::cluster::{NodeBuilder, ServiceBuilder, eventually, wait_for_service_gone};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::account::Account;
use crate::charts::account;
use crate::go_hetzner::FINALIZER;
use crate::harness::{DEADLINE, Manager};
use crate::pod;

const NAMESPACE: &str = "default";
pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/do-loadbalancer-";
const ID: &str = "kubernetes.digitalocean.com/load-balancer-id";

/// The manifest's command, and the environment that people give it. The Secret `digitalocean` is `DO_ACCESS_TOKEN`.
pub(crate) const COMMAND: [&str; 2] = [
    "/bin/digitalocean-cloud-controller-manager",
    "--leader-elect=false",
];
pub(crate) const ENV: [(&str, &str); 5] = [
    ("DO_ACCESS_TOKEN", DigitalOceanCloud::TOKEN),
    ("REGION", "nyc3"),
    ("DO_CLUSTER_ID", "prod"),
    ("PUBLIC_ACCESS_FIREWALL_NAME", "prod-public-access"),
    ("PUBLIC_ACCESS_FIREWALL_TAGS", "prod-workers"),
];

type Annotations = &'static [(&'static str, &'static str)];

/// A Service, its annotations, and the type of its load balancer.
const SERVICES: [(&str, Annotations, &str); 2] = [
    ("plain", &[], "REGIONAL_NETWORK"),
    (
        "shop",
        &[("type", "REGIONAL"), ("protocol", "http")],
        "REGIONAL",
    ),
];

/// A cluster that runs digitalocean-cloud-controller-manager today.
struct GoCluster {
    plane: ControlPlane,
    client: Client,
    cloud: DigitalOceanCloud,
    served: Served,
    http: Http,
    account: Account,
    folder: TempDir,
}

impl GoCluster {
    async fn new() -> Self {
        let plane = ControlPlane::start_audited().await;
        let plane = plane.expect("a control plane");
        let client = plane.client();
        let cloud = DigitalOceanCloud::new(Settings::default());
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        let http = Http::builder(served.api_url().trim_end_matches('/'))
            .authorizer(HeaderAuth::bearer(Secret::new(DigitalOceanCloud::TOKEN)))
            .build();
        let cluster = Self {
            account: account(&client, "digitalocean").await,
            folder: TempDir::new().expect("a temporary folder"),
            http: http.expect("a client"),
            plane,
            client,
            cloud,
            served,
        };
        for name in ["node-1", "node-2"] {
            cluster.node(name).await;
        }
        for (name, annotations, kind) in SERVICES {
            cluster.service(name, annotations, kind).await;
        }
        cluster.firewall().await;
        cluster
    }

    fn droplet(&self, name: &str) -> Droplet {
        let id = self.cloud.add_droplet(name);
        let mut all = self.cloud.droplets().into_iter();
        all.find(|droplet| droplet.id == id).expect("it was added")
    }

    /// A Node that was initialized.
    async fn node(&self, name: &str) {
        let droplet = self.droplet(name);
        let node = NodeBuilder::new(name)
            .initialized()
            .provider_id(format!("digitalocean://{}", droplet.id))
            .label("beta.kubernetes.io/instance-type", "s-1vcpu-2gb")
            .label("node.kubernetes.io/instance-type", "s-1vcpu-2gb")
            .label("failure-domain.beta.kubernetes.io/region", "nyc3")
            .label("topology.kubernetes.io/region", "nyc3");
        node.create(&self.client).await.expect("the node is made");
        let address = |kind: &str, address: String| json!({"type": kind, "address": address});
        let ip = |ip: Option<std::net::Ipv4Addr>| ip.expect("an address").to_string();
        let public_v6 = droplet.public_ipv6.expect("an address").to_string();
        let addresses = [
            address("Hostname", name.to_owned()),
            address("InternalIP", ip(droplet.private_ipv4)),
            address("ExternalIP", ip(droplet.public_ipv4)),
            address("ExternalIP", public_v6),
        ];
        let nodes: Api<Node> = Api::all(self.client.clone());
        let addresses = Patch::Merge(json!({"status": {"addresses": addresses}}));
        let by = PatchParams::default();
        let written = nodes.patch_status(name, &by, &addresses).await;
        written.expect("the addresses are written");
    }

    /// A Service with the finalizer, its load balancer, both annotations, and its status.
    async fn service(&self, name: &str, annotations: &[(&str, &str)], kind: &str) {
        let mut service = ServiceBuilder::new(NAMESPACE, name)
            .finalizer(FINALIZER)
            .port("http", 80);
        for (key, value) in annotations {
            service = service.annotation(format!("{PREFIX}{key}"), *value);
        }
        let service = service.create(&self.client).await;
        let service = service.expect("the service is made");
        let balancer = self.create_balancer(&service, kind).await;
        let services = self.services();
        let by = PatchParams::default();
        let id = balancer["id"].as_str().expect("an ID");
        let mut written = serde_json::Map::new();
        written.insert(ID.to_owned(), json!(id));
        written.insert(format!("{PREFIX}type"), json!(kind));
        let annotated = json!({"metadata": {"annotations": written}});
        let annotated = services.patch(name, &by, &Patch::Merge(annotated)).await;
        annotated.expect("the annotations are written");
        let ingress = [&balancer["ip"], &balancer["ipv6"]];
        let ingress = ingress.map(|ip| json!({"ip": ip, "ipMode": "VIP"}));
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        let status = Patch::Merge(status);
        let written = services.patch_status(name, &by, &status).await;
        written.expect("the status is written");
    }

    async fn create_balancer(&self, service: &Service, kind: &str) -> Value {
        let uid = service.uid().expect("a UID");
        let mut name = format!("a{}", uid.replace('-', ""));
        name.truncate(32);
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
        let node_port = ports.expect("a port")[0].node_port.expect("a node port");
        let rule = match kind {
            "REGIONAL" => ("http", node_port),
            _ => ("tcp", 80),
        };
        let ids: Vec<u64> = self.cloud.droplets().iter().map(|it| it.id).collect();
        let body = json!({
            "name": name, "algorithm": "round_robin", "region": "nyc3", "type": kind,
            "network": "EXTERNAL", "network_stack": "DUALSTACK",
            "forwarding_rules": [{
                "entry_protocol": rule.0, "entry_port": 80,
                "target_protocol": rule.0, "target_port": rule.1,
            }],
            "health_check": {
                "protocol": "http", "port": 10256, "path": "/healthz",
                "check_interval_seconds": 3, "response_timeout_seconds": 5,
                "healthy_threshold": 5, "unhealthy_threshold": 3, "proxy_protocol": false,
            },
            "sticky_sessions": {"type": "none"}, "droplet_ids": ids, "tags": ["k8s:prod"],
            "firewall": {}, "disable_lets_encrypt_dns_records": false,
        });
        let made = self.post("/v2/load_balancers", body).await;
        made["load_balancer"].clone()
    }

    /// The public access firewall, as the Go CCM's controller leaves it.
    async fn firewall(&self) {
        let anywhere = json!({"addresses": ["0.0.0.0/0", "::/0"]});
        let plain = self.balancer_of("plain").await.id;
        let body = json!({
            "name": "prod-public-access", "tags": ["prod-workers"], "droplet_ids": null,
            "inbound_rules": [
                {"protocol": "tcp", "ports": "10256", "sources": {"load_balancer_uids": [plain]}},
                {"protocol": "tcp", "ports": "80", "sources": anywhere},
            ],
            "outbound_rules": [
                {"protocol": "tcp", "ports": "all", "destinations": anywhere},
                {"protocol": "udp", "ports": "all", "destinations": anywhere},
                {"protocol": "icmp", "destinations": anywhere},
            ],
        });
        self.post("/v2/firewalls", body).await;
    }

    async fn post(&self, path: &'static str, body: Value) -> Value {
        let answer = self.http.fetch(Request::post(path).json(body)).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn balancer_of(&self, service: &str) -> LoadBalancer {
        let service = self.services().get(service).await;
        let id = service.expect("the service is there").annotations()[ID].clone();
        let mut all = self.cloud.load_balancers().into_iter();
        all.find(|it| it.id == id).expect("it has a load balancer")
    }

    /// Every Node and every Service, with the version of its last write.
    async fn versions(&self) -> BTreeMap<String, Option<String>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let services: Api<Service> = Api::all(self.client.clone());
        let all = ListParams::default();
        let nodes = nodes.list(&all).await.expect("nodes can be listed");
        let services = services.list(&all).await.expect("services can be listed");
        let nodes = nodes.iter().map(|node| ("Node", node.meta()));
        let services = services.iter().map(|service| ("Service", service.meta()));
        let name = |kind: &str, meta: &ObjectMeta| format!("{kind} {:?}", meta.name);
        nodes
            .chain(services)
            .map(|(kind, meta)| (name(kind, meta), meta.resource_version.clone()))
            .collect()
    }

    /// As the manifest starts it, but for what Pods of one machine do not share and processes do.
    async fn start(&self) -> Manager {
        let program = env!("CARGO_BIN_EXE_cloudkeel");
        let folder = self.folder.path();
        let mut container = pod::container(&self.plane, &self.account, folder, program).await;
        container
            .args(COMMAND)
            .arg("--secure-port=0")
            .envs(ENV)
            .env("DO_OVERRIDE_URL", self.served.api_url());
        Manager::spawn(container, folder.join("log"))
    }

    /// Waits until droplets, load balancers, the firewall and the tags have been looked at.
    async fn first_pass(&self) {
        eventually("a look at everything", DEADLINE, || async {
            let calls = self.cloud.calls();
            let looks = [Operation::ListDroplets, Operation::ListFirewalls];
            let missing = looks.iter().find(|look| calls.of(**look) == 0);
            // One by the service controller, one by the tag sync.
            let balancers = calls.of(Operation::ListLoadBalancers) >= 2;
            match missing {
                Some(look) => Err(format!("no {look} yet")),
                None if !balancers => Err("load balancers were not listed twice yet".to_owned()),
                None => Ok(true),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_cluster_of_the_go_ccm_is_taken_over_without_a_write_and_then_followed() {
    let cluster = GoCluster::new().await;
    let (balancers, firewalls) = (cluster.cloud.load_balancers(), cluster.cloud.firewalls());
    assert_eq!(balancers.len(), SERVICES.len());
    let before = cluster.versions().await;
    cluster.cloud.reset_calls();
    let mut manager = cluster.start().await;
    cluster.first_pass().await;
    let calls = cluster.cloud.calls();
    assert_eq!(calls.mutations(), 0, "{:#?}", cluster.cloud.call_log());
    assert_eq!(cluster.versions().await, before, "{}", manager.log());
    assert_eq!(cluster.cloud.load_balancers(), balancers);
    assert_eq!(cluster.cloud.firewalls(), firewalls);

    let droplet = cluster.droplet("node-3").id;
    let node = NodeBuilder::new("node-3");
    node.create(&cluster.client)
        .await
        .expect("the node is made");
    for (name, ..) in SERVICES {
        eventually(&format!("the new target of {name}"), DEADLINE, || async {
            let balancer = cluster.balancer_of(name).await;
            balancer.droplet_ids.contains(&droplet)
        })
        .await;
    }
    let services = cluster.services();
    let deleted = services.delete("plain", &DeleteParams::default()).await;
    deleted.expect("the service can be deleted");
    wait_for_service_gone(&cluster.client, NAMESPACE, "plain", DEADLINE).await;
    let left = cluster.cloud.load_balancers();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].id, cluster.balancer_of("shop").await.id);
    eventually("the firewall follows", DEADLINE, || async {
        cluster.cloud.firewalls()[0].inbound_rules.is_empty()
    })
    .await;
    let changes = cluster.cloud.calls();
    let changes = changes
        .iter()
        .filter(|(operation, _)| operation.is_mutating());
    let expected = [
        (Operation::UpdateLoadBalancer, SERVICES.len() as u64),
        (Operation::DeleteLoadBalancer, 1),
        (Operation::UpdateFirewall, 1),
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
    let errors = pod::lines(&manager, &["ERROR"]);
    assert!(errors.is_empty(), "{errors:#?}");
}
