//! In the place of hcloud-cloud-controller-manager: its name, its arguments, its environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use cloudkeel_emulator_hetzner::{
    Destination, Fault, HetznerCloud, LoadBalancer, Operation, Served, ServerSpec, Settings,
};
use cloudkeel_testkit::cluster::{
    NodeBuilder, ServiceBuilder, eventually, wait_for_node, wait_for_service, wait_for_service_gone,
};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::DEADLINE;

/// The arguments of the Go chart with one replica.
const CHART: [&str; 6] = [
    "--allow-untagged-cloud",
    "--cloud-provider=hcloud",
    "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
    "--leader-elect=false",
    "--route-reconciliation-period=30s",
    "--webhook-secure-port=0",
];

/// A cluster of its own: in the Go CCM's place, every Node belongs to this cloud.
struct Swap {
    control_plane: ControlPlane,
    cloud: HetznerCloud,
    served: Served,
    folder: TempDir,
}

/// A process that ends with the test.
struct Ccm(Child);

impl Drop for Ccm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ccm {
    /// Asks it to finish what it does, and waits until it has.
    async fn finish(mut self) {
        let sent = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(sent.expect("kill runs").success());
        let child = &mut self.0;
        eventually("the end of the process", DEADLINE, || {
            let ended = child.try_wait().expect("the process can be asked");
            async move { ended.is_some() }
        })
        .await;
    }
}

impl Swap {
    async fn new() -> Self {
        let control_plane = ControlPlane::start().await.expect("a control plane");
        let cloud = HetznerCloud::new(Settings::default());
        let range = "10.0.0.0/16".parse().expect("a network");
        let network = cloud.add_network("kube", range).expect("a network");
        for name in ["node-1", "node-2"] {
            let spec = ServerSpec::named(name).in_network(network.id);
            cloud.add_server(spec).expect("a server");
        }
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        Self {
            control_plane,
            cloud,
            served,
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// Starts the program under the name of the Go binary.
    fn start(&self) -> Ccm {
        self.start_with(&[])
    }

    /// The same with more arguments.
    fn start_with(&self, more: &[&str]) -> Ccm {
        let program = self.folder.path().join("hcloud-cloud-controller-manager");
        if !program.exists() {
            symlink(env!("CARGO_BIN_EXE_cloudkeel"), &program).expect("a link");
        }
        let kubeconfig = self
            .control_plane
            .kubeconfig_for("hccm", &["system:masters"]);
        let log = File::create(self.folder.path().join("log")).expect("a log");
        let flags = ["", "authentication-", "authorization-"]
            .map(|what| format!("--{what}kubeconfig={}", kubeconfig.display()));
        let child = Command::new(program)
            .args(CHART)
            .args(flags)
            .args(more)
            .arg("--secure-port=0")
            .env("HCLOUD_TOKEN", HetznerCloud::TOKEN)
            .env("HCLOUD_ENDPOINT", self.served.api_url())
            .env("HCLOUD_NETWORK", "kube")
            .env("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK", "true")
            .env("HCLOUD_METRICS_ENABLED", "false")
            .env("HCLOUD_LOAD_BALANCERS_LOCATION", "fsn1")
            .env("HCLOUD_LOAD_BALANCERS_TYPE", "lb11")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        Ccm(child.expect("the program starts"))
    }

    async fn versions(&self) -> BTreeMap<String, String> {
        let nodes: Api<Node> = Api::all(self.control_plane.client());
        let nodes = nodes.list(&ListParams::default()).await;
        let nodes = nodes.expect("nodes can be listed").into_iter();
        nodes
            .map(|node| {
                let meta = node.metadata;
                (
                    meta.name.unwrap_or_default(),
                    meta.resource_version.unwrap_or_default(),
                )
            })
            .collect()
    }
}

impl Swap {
    /// All servers are Nodes that were initialised before.
    async fn join_all(&self) {
        for server in self.cloud.servers() {
            let id = format!("hcloud://{}", server.id);
            let node = NodeBuilder::new(&server.name).provider_id(id).initialized();
            let made = node.create(&self.control_plane.client()).await;
            made.expect("the node is made");
        }
    }

    fn balancer(&self) -> Option<LoadBalancer> {
        self.cloud.load_balancers().into_iter().next()
    }

    async fn annotate(&self, key: &str, value: Option<&str>) {
        let services: Api<Service> = Api::namespaced(self.control_plane.client(), "default");
        let body: Value = json!({"metadata": {"annotations": {key: value}}});
        let patch = Patch::Merge(&body);
        let patched = services.patch("web", &PatchParams::default(), &patch).await;
        patched.expect("the service is annotated");
    }

    /// The Events of the Service: component, reason and message.
    async fn events(&self) -> Vec<(String, String, String)> {
        let events: Api<Event> = Api::namespaced(self.control_plane.client(), "default");
        let events = events.list(&ListParams::default()).await;
        let events = events.expect("events can be listed").into_iter();
        events
            .filter(|event| event.involved_object.name.as_deref() == Some("web"))
            .map(|event| {
                let source = event.source.and_then(|source| source.component);
                (
                    source.unwrap_or_default(),
                    event.reason.unwrap_or_default(),
                    event.message.unwrap_or_default(),
                )
            })
            .collect()
    }

    /// Waits for an Event, and returns its component.
    async fn wait_for_event(&self, reason: &str, words: &str) -> String {
        let find = || async {
            let events = self.events().await.into_iter();
            let mut events = events.filter(|(_, r, text)| r == reason && text.contains(words));
            events.next().map(|(component, ..)| component)
        };
        eventually(reason, DEADLINE, || async { find().await.is_some() }).await;
        find().await.unwrap_or_default()
    }
}

fn has_address(service: &Service) -> bool {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    balancer.is_some_and(|b| b.ingress.as_ref().is_some_and(|list| !list.is_empty()))
}

#[tokio::test]
async fn a_balancer_gets_all_that_can_be_had_and_goes_back_to_the_usual() {
    let swap = Swap::new().await;
    let lonely = ServerSpec::named("lonely").without_ipv4();
    let lonely = swap.cloud.add_server(lonely).expect("a server").id;
    swap.join_all().await;
    let client = swap.control_plane.client();
    let _running = swap.start();
    let service = ServiceBuilder::new("default", "web")
        .port("http", 80)
        .annotation("load-balancer.hetzner.cloud/use-private-ip", "false");
    service.create(&client).await.expect("the service is made");
    wait_for_service(&client, "default", "web", DEADLINE, has_address).await;
    let balancer = swap.balancer().expect("a balancer");
    assert_eq!(balancer.targets.len(), 2, "all but the one that is refused");

    // The Event has the component of the Go CCM, and the Service is tried again soon.
    let name = format!("server {lonely}");
    let component = swap.wait_for_event("TargetRefused", &name).await;
    assert_eq!(component, "hcloud-cloud-controller-manager");
    swap.wait_for_event("SyncLoadBalancerFailed", &name).await;
    swap.cloud.destroy_server(lonely).expect("it goes");
    let nodes: Api<Node> = Api::all(client.clone());
    let gone = nodes.delete("lonely", &DeleteParams::default()).await;
    gone.expect("its node goes");

    let public = |on| {
        let seen = swap.balancer();
        async move { seen.is_some_and(|b| b.public_interface == on) }
    };
    let private = "load-balancer.hetzner.cloud/use-private-ip";
    swap.annotate(private, Some("true")).await;
    swap.annotate("cloudkeel.dev/lb-internal", Some("true"))
        .await;
    eventually("an internal balancer", DEADLINE, || public(false)).await;
    swap.annotate("cloudkeel.dev/lb-internal", None).await;
    eventually("a public balancer", DEADLINE, || public(true)).await;
}

#[tokio::test]
async fn a_service_goes_at_once_although_its_balancer_is_protected() {
    let swap = Swap::new().await;
    swap.join_all().await;
    let client = swap.control_plane.client();
    let _running = swap.start();
    let service = ServiceBuilder::new("default", "web").port("http", 80);
    service.create(&client).await.expect("the service is made");
    wait_for_service(&client, "default", "web", DEADLINE, has_address).await;
    let id = swap.balancer().expect("a balancer").id;
    let protect = |balancer: &mut LoadBalancer| balancer.protected = true;
    let protected = swap.cloud.change_load_balancer(id, protect);
    protected.expect("it is protected");
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let deleted = services.delete("web", &DeleteParams::default()).await;
    deleted.expect("the service is deleted");
    wait_for_service_gone(&client, "default", "web", DEADLINE).await;
    swap.wait_for_event("LoadBalancerProtected", "protection")
        .await;
    let events = swap.events().await;
    let is_false = |text: &str| text.contains("not found") || text == "Deleted load balancer";
    assert!(
        !events.iter().any(|(_, _, text)| is_false(text)),
        "{events:?}"
    );
    assert_eq!(swap.balancer().map(|b| b.id), Some(id));
}

impl Swap {
    /// A Node for every server, initialised by the program that runs.
    async fn join(&self) {
        let client = self.control_plane.client();
        for server in self.cloud.servers() {
            let private = server.private_net.first().expect("a private address");
            let node = NodeBuilder::new(&server.name).node_ip(private.ip.into());
            node.create(&client).await.expect("the node is made");
        }
        for server in self.cloud.servers() {
            wait_for_node(&client, &server.name, DEADLINE, is_initialized).await;
        }
    }

    async fn label(&self, node: &str, label: Value) {
        let nodes: Api<Node> = Api::all(self.control_plane.client());
        let patch = Patch::Merge(json!({"metadata": {"labels": label}}));
        let patched = nodes.patch(node, &PatchParams::default(), &patch).await;
        patched.expect("the node is labelled");
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.control_plane.client(), "default")
    }

    async fn create(&self, service: ServiceBuilder) {
        let made = service.create(&self.control_plane.client()).await;
        made.expect("the service is made");
    }

    /// Makes a Service, and waits until the cloud has refused its balancer.
    async fn is_refused(&self, service: ServiceBuilder) {
        self.cloud.reset_calls();
        self.create(service).await;
        eventually("a refusal", DEADLINE, || {
            let asked = self.cloud.calls().of(Operation::CreateLoadBalancer);
            async move { asked > 0 }
        })
        .await;
    }

    async fn delete(&self, service: &str) {
        let services = self.services();
        let deleted = services.delete(service, &DeleteParams::default()).await;
        deleted.expect("the service is deleted");
    }

    /// Waits until a Service is gone, for less than its balancer would be missed.
    async fn is_gone(&self, service: &str) {
        let services = self.services();
        let what = format!("{service} is gone");
        eventually(&what, DEADLINE, || async {
            services.get_opt(service).await.is_ok_and(|it| it.is_none())
        })
        .await;
    }

    /// Deletes a Service, and waits until it is gone.
    async fn deletes(&self, service: &str) {
        self.delete(service).await;
        self.is_gone(service).await;
    }

    /// Waits until the only balancer sends traffic to these servers.
    async fn serves(&self, servers: &[&str]) {
        let wanted = self.cloud.servers().into_iter();
        let wanted = wanted.filter(|server| servers.contains(&server.name.as_str()));
        let wanted: BTreeSet<u64> = wanted.map(|server| server.id).collect();
        let what = format!("targets {servers:?}");
        eventually(&what, DEADLINE, || async {
            let balancers = self.cloud.load_balancers();
            let targets = balancers.first().map(|balancer| {
                let servers = balancer
                    .targets
                    .iter()
                    .filter_map(|target| match target.to {
                        Destination::Server(id) => Some(id),
                        _ => None,
                    });
                servers.collect::<BTreeSet<u64>>()
            });
            targets.is_some_and(|targets| targets == wanted)
        })
        .await;
    }
}

/// A Service with one port.
fn service(name: &str) -> ServiceBuilder {
    ServiceBuilder::new("default", name)
        .annotation("load-balancer.hetzner.cloud/location", "fsn1")
        .port("main", 80)
}

#[tokio::test]
async fn services_go_without_their_servers_and_without_ever_having_had_a_balancer() {
    let swap = Swap::new().await;
    let first = swap.start();
    swap.join().await;
    swap.create(service("served")).await;
    swap.serves(&["node-1", "node-2"]).await;
    let quota = Fault::code("resource_limit_exceeded");
    let faults = swap.cloud.faults();
    faults.always(Operation::CreateLoadBalancer, quota);
    swap.is_refused(service("refused")).await;
    swap.deletes("refused").await;
    first.finish().await;
    for server in swap.cloud.servers() {
        swap.cloud.destroy_server(server.id).expect("it is there");
    }
    let _second = swap.start();
    swap.deletes("served").await;
    assert_eq!(swap.cloud.load_balancers(), []);
}

#[tokio::test]
async fn a_service_that_another_process_could_not_serve_goes_at_once() {
    let swap = Swap::new().await;
    let first = swap.start();
    swap.join().await;
    let faults = swap.cloud.faults();
    faults.always(Operation::CreateLoadBalancer, Fault::code("forbidden"));
    swap.is_refused(service("web")).await;
    first.finish().await;
    swap.delete("web").await;
    let _second = swap.start();
    swap.is_gone("web").await;
}

#[tokio::test]
async fn hetzners_own_node_selector_follows_the_labels_of_nodes_without_drift_checks() {
    let swap = Swap::new().await;
    let _ccm = swap.start_with(&["--load-balancer-drift=off"]);
    swap.join().await;
    swap.label("node-1", json!({"pool": "web"})).await;
    let selector = "load-balancer.hetzner.cloud/node-selector";
    let service = service("web").annotation(selector, "pool=web");
    swap.create(service).await;
    swap.serves(&["node-1"]).await;
    swap.label("node-2", json!({"pool": "web"})).await;
    swap.serves(&["node-1", "node-2"]).await;
    swap.label("node-1", json!({"pool": null})).await;
    swap.serves(&["node-2"]).await;
}

#[tokio::test]
async fn a_retained_balancer_is_adopted_by_a_successor() {
    let swap = Swap::new().await;
    let _ccm = swap.start();
    swap.join().await;
    let retained = service("old").annotation("cloudkeel.dev/lb-retain", "true");
    swap.create(retained).await;
    swap.serves(&["node-1", "node-2"]).await;
    let client = swap.control_plane.client();
    wait_for_service(&client, "default", "old", DEADLINE, has_address).await;
    let before = swap.balancer().expect("a balancer");
    swap.deletes("old").await;
    let left = swap.balancer().expect("it stays");
    assert_eq!((left.id, &left.targets), (before.id, &before.targets));
    let owner = "hcloud-ccm/service-uid";
    assert!(!left.labels.contains_key(owner), "{:?}", left.labels);
    let id = left.id.to_string();
    let successor = service("web").annotation("cloudkeel.dev/adopt", &id);
    swap.create(successor).await;
    wait_for_service(&client, "default", "web", DEADLINE, has_address).await;
    let [adopted] = swap
        .cloud
        .load_balancers()
        .try_into()
        .expect("one balancer");
    assert_eq!((adopted.id, &adopted.public), (before.id, &before.public));

    // A pause stops everything, and a Node that leaves stays for its time where the cloud cannot drain.
    swap.annotate("cloudkeel.dev/paused", Some("true")).await;
    swap.wait_for_event("Paused", "cloudkeel.dev/paused").await;
    swap.cloud.reset_calls();
    swap.label(
        "node-1",
        json!({"node.kubernetes.io/exclude-from-external-load-balancers": ""}),
    )
    .await;
    swap.delete("web").await;
    swap.annotate("cloudkeel.dev/paused", None).await;
    swap.is_gone("web").await;
    assert_eq!(swap.cloud.load_balancers(), []);
}

fn is_initialized(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let taints = taints.into_iter().flatten();
    !taints
        .into_iter()
        .any(|taint| taint.key.ends_with("/uninitialized"))
}

#[tokio::test]
async fn nodes_become_what_the_go_ccm_makes_of_them_and_the_next_start_writes_nothing() {
    let swap = Swap::new().await;
    let client = swap.control_plane.client();
    for server in swap.cloud.servers() {
        let private = server.private_net.first().expect("a private address");
        let node = NodeBuilder::new(&server.name).node_ip(private.ip.into());
        node.create(&client).await.expect("the node is made");
    }
    let first = swap.start();
    for server in swap.cloud.servers() {
        let node = wait_for_node(&client, &server.name, DEADLINE, is_initialized).await;
        let id = node.spec.and_then(|spec| spec.provider_id);
        assert_eq!(id, Some(format!("hcloud://{}", server.id)));
        let labels = node.metadata.labels.unwrap_or_default();
        for (key, value) in [
            ("node.kubernetes.io/instance-type", "cx22"),
            ("topology.kubernetes.io/region", "fsn1"),
            ("topology.kubernetes.io/zone", "fsn1-dc14"),
            ("instance.hetzner.cloud/provided-by", "cloud"),
        ] {
            assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
        }
        let addresses = node.status.and_then(|status| status.addresses);
        let addresses: BTreeMap<_, _> = addresses
            .unwrap_or_default()
            .into_iter()
            .map(|address| (address.type_, address.address))
            .collect();
        let public = server.ipv4.map(|ip| ip.to_string());
        assert_eq!(addresses.get("ExternalIP").cloned(), public);
        assert_eq!(addresses.get("Hostname"), Some(&server.name));
    }
    first.finish().await;

    let before = swap.versions().await;
    swap.cloud.reset_calls();
    let second = swap.start();
    eventually("a look at all servers", DEADLINE, || {
        let seen = swap.cloud.calls().of(Operation::ListServers);
        async move { seen > 0 }
    })
    .await;
    second.finish().await;
    assert_eq!(swap.versions().await, before, "no Node is written");
    assert_eq!(swap.cloud.calls().mutations(), 0);
}
