//! A cluster on moto: a real API server, Nodes and Services, and managers under the role of the Go chart.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cloudkeel_testkit::cluster::{Kubelet, NodeBuilder, eventually};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::account::Account;
use crate::aws_services::Scenario;
use crate::charts::account;
use crate::cluster::is_initialized;
use crate::harness::Manager;
use crate::moto::{Call, Moto, action, is_mutating};
use crate::pod;

/// The arguments of the Go chart, and those that people add for routes.
const ARGUMENTS: [&str; 6] = [
    "--v=2",
    "--cloud-provider=aws",
    "--cluster-name=kubernetes",
    "--configure-cloud-routes=true",
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.244.0.0/16",
];

/// Dozens of balancers, one call after the other, on a machine that does other things too.
pub(crate) const LONG: Duration = Duration::from_mins(5);

/// Name, type, whether its kubelet knows the provider ID, and its role.
pub(crate) const NODES: [(&str, &str, bool, &str); 4] = [
    ("node-1", "m5.large", true, "web"),
    ("node-2", "m5.large", false, "web"),
    ("node-3", "m5.large", true, "db"),
    ("node-4", "p4d.24xlarge", false, "db"),
];

/// Mutating calls by action.
pub(crate) type Changes = BTreeMap<String, usize>;

pub(crate) struct AwsCluster {
    plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) moto: Moto,
    pub(crate) account: Account,
    folder: TempDir,
    pub(crate) scenario: &'static Scenario,
    /// Flags besides those of the chart.
    pub(crate) flags: &'static [&'static str],
}

impl AwsCluster {
    /// An empty one, with machines that are no Nodes yet.
    pub(crate) async fn new(scenario: &'static Scenario) -> Self {
        let plane = ControlPlane::start_audited().await;
        let plane = plane.expect("a control plane");
        let client = plane.client();
        Self {
            account: account(&client, "aws").await,
            folder: TempDir::new().expect("a temporary folder"),
            moto: machines().await,
            plane,
            client,
            scenario,
            flags: &[],
        }
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// The UIDs of all Services: their balancers are named after them.
    pub(crate) async fn uids(&self) -> Value {
        let all = self.services().list(&ListParams::default()).await;
        let all = all.expect("services can be listed");
        let uids = all.iter().filter(|service| is_balanced(service));
        let uids = uids.map(|it| (format!("default/{}", it.name_any()), json!(it.uid())));
        Value::Object(uids.collect())
    }

    /// IDs in place of names.
    pub(crate) async fn resolved(&self, value: Value) -> Value {
        let arguments = json!([self.uids().await, value]);
        self.moto.record("resolve", arguments).await
    }

    /// What is in the cloud, and by which calls it came about.
    pub(crate) async fn left(&self) -> Value {
        self.moto.record("left", json!([self.uids().await])).await
    }

    /// Registers all machines as their kubelets do.
    pub(crate) async fn register_nodes(&self) {
        for (number, (name, _, has_id, role)) in NODES.iter().enumerate() {
            let mut node = NodeBuilder::new(*name)
                .label("role", *role)
                .pod_cidr(format!("10.244.{number}.0/24"));
            if *has_id {
                let id = format!("{{instance {name}}}");
                let zone = ["us-east-1a", "us-east-1b"][number % 2];
                let id = self.resolved(json!(id)).await;
                node = node.provider_id(format!("aws:///{zone}/{}", id.as_str().expect("an ID")));
            }
            node.create(&self.client).await.expect("the node is made");
        }
    }

    pub(crate) async fn wait_for_nodes(&self, count: usize) {
        eventually("initialized Nodes with a network", LONG, || async {
            let all = self.nodes().list(&ListParams::default()).await;
            let ready = all.expect("nodes can be listed");
            let ready = ready
                .iter()
                .filter(|node| is_initialized(node) && has_network(node));
            ready.count() == count
        })
        .await;
    }

    /// Posts the Services and waits until all of them are published.
    pub(crate) async fn create_services(&self) {
        for object in self.scenario.objects() {
            let object = self.resolved(object).await;
            let service: Service = serde_json::from_value(object).expect("a Service");
            let made = self
                .services()
                .create(&PostParams::default(), &service)
                .await;
            made.expect("the service is made");
        }
        eventually("published Services", LONG, || async {
            let all = self.services().list(&ListParams::default()).await;
            let all = all.expect("services can be listed");
            let missing: Vec<_> = all
                .iter()
                .filter(|it| is_balanced(it) && !is_published(it))
                .map(kube::ResourceExt::name_any)
                .collect();
            if missing.is_empty() {
                Ok(true)
            } else {
                Err(format!("{missing:?}"))
            }
        })
        .await;
    }

    /// Moves to an empty account: IDs in annotations are others there, and nothing is published yet.
    pub(crate) async fn move_to(&mut self, moto: Moto) {
        self.moto = moto;
        let by = PatchParams::default();
        for object in self.scenario.objects() {
            let object = self.resolved(object).await;
            let name = object["metadata"]["name"].as_str().expect("a name");
            let annotations = &object["metadata"]["annotations"];
            let annotated = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
            let written = self.services().patch(name, &by, &annotated).await;
            written.expect("the annotations are written");
            let unpublished = Patch::Merge(json!({"status": {"loadBalancer": null}}));
            let written = self.services().patch_status(name, &by, &unpublished).await;
            written.expect("the status is written");
        }
    }

    /// Nodes and Services as they are now, with the names of things in place of their IDs.
    pub(crate) async fn objects(&self) -> Value {
        let nodes = self.nodes().list(&ListParams::default()).await;
        let services = self.services().list(&ListParams::default()).await;
        let nodes = nodes.expect("nodes can be listed");
        let services = services.expect("services can be listed");
        let nodes: Vec<_> = nodes.iter().map(|it| portable(json!(it))).collect();
        let services = services.iter().filter(|it| is_balanced(it));
        let services: Vec<_> = services.map(|it| portable(json!(it))).collect();
        let objects = json!({"nodes": nodes, "services": services});
        let arguments = json!([self.uids().await, objects]);
        self.moto.record("name", arguments).await
    }

    /// Makes the cluster and the cloud of a record.
    pub(crate) async fn restore(&self, record: &Value) {
        for service in each(&record["services"]) {
            let service = self.resolved(service.clone()).await;
            let service: Service = serde_json::from_value(service).expect("a Service");
            let made = self
                .services()
                .create(&PostParams::default(), &service)
                .await;
            made.expect("the service is made");
        }
        let calls = json!([self.uids().await, record["calls"]]);
        self.moto.record("replay", calls).await;
        let (by, force) = (PostParams::default(), PatchParams::default());
        for node in each(&record["nodes"]) {
            let node = self.resolved(node.clone()).await;
            let status = Patch::Merge(json!({"status": node["status"]}));
            let node: Node = serde_json::from_value(node).expect("a Node");
            self.nodes()
                .create(&by, &node)
                .await
                .expect("the node is made");
            let written = self
                .nodes()
                .patch_status(&node.name_any(), &force, &status)
                .await;
            written.expect("the status is written");
            let ready = Kubelet::new(&self.client, node.name_any())
                .set_ready()
                .await;
            ready.expect("it is ready");
        }
        for service in each(&record["services"]) {
            let service = self.resolved(service.clone()).await;
            let name = service["metadata"]["name"].as_str().expect("a name");
            let status = Patch::Merge(json!({"status": service["status"]}));
            let written = self.services().patch_status(name, &force, &status).await;
            written.expect("the status is written");
        }
    }

    /// cloudkeel under the name of the Go program, as its chart starts it.
    pub(crate) async fn start(&self) -> Manager {
        self.start_on(&self.moto).await
    }

    pub(crate) async fn start_on(&self, moto: &Moto) -> Manager {
        let program: PathBuf = self.folder.path().join("aws-cloud-controller-manager");
        if !program.exists() {
            symlink(env!("CARGO_BIN_EXE_cloudkeel"), &program).expect("a link");
        }
        self.run(&program, moto).await
    }

    /// A program as a container of the chart, but for what Pods of one machine do not share and processes do.
    pub(crate) async fn run(&self, program: &Path, moto: &Moto) -> Manager {
        let settings = self.resolved(json!(self.scenario.settings)).await;
        let file = self.folder.path().join("cloud.conf");
        let config = moto.cloud_config(settings.as_str().expect("text"));
        std::fs::write(&file, config).expect("the file is written");
        let mut container =
            pod::container(&self.plane, &self.account, self.folder.path(), program).await;
        container
            .args(ARGUMENTS)
            .args(self.flags)
            .arg(format!("--cloud-config={}", file.display()))
            .arg("--secure-port=0")
            .env("AWS_ACCESS_KEY_ID", moto.account())
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_ENDPOINT_URL", &moto.url);
        Manager::spawn(container, self.folder.path().join("log"))
    }

    /// Waits until every balancer, the routes and the Nodes have been read. Returns all calls until then.
    pub(crate) async fn first_pass(&self) -> Vec<Call> {
        let uids = self.uids().await;
        let uids = uids.as_object().expect("UIDs").values();
        let names: Vec<_> = uids.map(balancer_name).collect();
        let calls = Mutex::new(Vec::new());
        eventually("a look at everything", LONG, || async {
            let new = self.moto.calls().await;
            let mut calls = calls.lock().expect("no panic");
            calls.extend(new);
            let is_read = |name: &&String| calls.iter().any(|call| reads(call, name));
            let unread: Vec<_> = names.iter().filter(|name| !is_read(name)).collect();
            let has = |name: &str| calls.iter().any(|call| action(call) == name);
            if unread.is_empty() && has("DescribeRouteTables") && has("DescribeInstances") {
                return Ok(true);
            }
            Err(format!("unread: {unread:?}"))
        })
        .await;
        calls.into_inner().expect("no panic")
    }

    /// What managers wrote besides Events and leases, in words.
    pub(crate) fn written(&self) -> BTreeSet<String> {
        let writes = self.plane.writes_of(&self.account.user());
        let writes = writes.expect("a record").into_iter();
        let writes = writes.filter(|it| it.resource != "events" && it.resource != "leases");
        let writes = writes.filter(|it| !it.resource.ends_with("reviews"));
        writes
            .map(|it| format!("{} {}", it.resource, it.name))
            .collect()
    }
}

/// A new account with the machines.
pub(crate) async fn machines() -> Moto {
    let moto = Moto::new().await;
    for (name, kind, ..) in NODES {
        moto.change("add_instance", json!([name, kind])).await;
    }
    for _ in 0..2 {
        moto.change("add_address", json!([])).await;
    }
    moto
}

pub(crate) async fn stop(mut manager: Manager) {
    manager.signal("TERM");
    let ended = manager.ended().await;
    assert_eq!(ended.code(), Some(0), "{}", manager.log());
}

pub(crate) fn changes(calls: &[Call]) -> Changes {
    let mut changes = Changes::new();
    for call in calls.iter().filter(|call| is_mutating(call)) {
        *changes.entry(action(call).to_owned()).or_default() += 1;
    }
    changes
}

pub(crate) fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

/// Whether this is the last of the calls that read a balancer.
fn reads(call: &Call, balancer: &str) -> bool {
    let of = match action(call) {
        "DescribeLoadBalancerAttributes" => call
            .get("LoadBalancerName")
            .or_else(|| call.get("LoadBalancerArn")),
        _ => None,
    };
    let of = of.and_then(Value::as_str);
    of.is_some_and(|name| name.contains(balancer))
}

fn balancer_name(uid: &Value) -> String {
    let uid = uid.as_str().expect("a UID").replace('-', "");
    let mut name = format!("a{uid}");
    name.truncate(32);
    name
}

fn is_balanced(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

fn is_published(service: &Service) -> bool {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    balancer.is_some_and(|it| it.ingress.as_ref().is_some_and(|list| !list.is_empty()))
}

fn has_network(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut conditions = conditions;
    conditions.any(|it| it.type_ == "NetworkUnavailable" && it.status == "False")
}

/// An object without what only its own API server can give it.
fn portable(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for key in [
        "creationTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    ] {
        metadata.remove(key);
    }
    let spec = object["spec"].as_object_mut().expect("a spec");
    for key in ["clusterIP", "clusterIPs"] {
        spec.remove(key);
    }
    if let Some(status) = object["status"].as_object_mut() {
        // The kubelet's own part is made anew.
        status.retain(|key, _| ["addresses", "conditions", "loadBalancer"].contains(&key.as_str()));
    }
    let conditions = object.pointer_mut("/status/conditions");
    if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
        conditions.retain(|it| it["type"] == "NetworkUnavailable");
        for condition in conditions {
            let condition = condition.as_object_mut().expect("a condition");
            condition.retain(|key, _| !key.ends_with("Time"));
        }
    }
    object
}
