//! A cluster of its own with work of every kind, an account that may only read, and `cloudkeel plan` as a process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;

use cloudkeel_testkit::cluster::{Kubelet, NotReady, ServiceBuilder, wait_for_service};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::simulated_cloud::{Permission, wire};
use http::Request;
use kube::Client;
use serde_json::Value;

use crate::harness::{DEADLINE, Manager, World, package};
use crate::nodes::builder;

/// The account of `deploy/manifests/extras/plan-reader.yaml`.
const READER: &str = "system:serviceaccount:kube-system:cloudkeel-plan";
/// A credential that can only read.
pub(crate) const READ_TOKEN: &str = "read-only-token";
pub(crate) const CLUSTER_CIDR: &str = "--cluster-cidr=10.244.0.0/16";

/// A world in which a plan has something to show.
pub(crate) struct PlanWorld {
    pub(crate) world: World,
    kubeconfig: PathBuf,
}

/// All that could be written, by path and version.
pub(crate) type Versions = BTreeMap<String, String>;

impl PlanWorld {
    pub(crate) async fn new() -> Self {
        let api = EitherApi::Real.run_alone().await;
        let reader = api.kubeconfig_for(READER, &[]);
        let world = World::with(api).await;
        let kubeconfig = world.write_file("reader.kubeconfig", &reader);
        world
            .cloud
            .grant(READ_TOKEN, &world.id, Permission::ReadOnly);
        world.write_config(READ_TOKEN);
        apply_reader_role(&world.client).await;
        // The API server makes it a moment after its start.
        wait_for_service(&world.client, "default", "kubernetes", DEADLINE, |_| true).await;
        Self { world, kubeconfig }
    }

    /// A machine with a Node that is initialised, Ready and has a Pod network.
    pub(crate) async fn joined(&self, name: &str, network: &str) -> u64 {
        let machine = self.world.machine(name);
        let node = builder(&self.world, name)
            .provider_id(format!("local://{}/{machine}", self.world.id))
            .pod_cidr(network)
            .initialized();
        let made = node.create(&self.world.client).await;
        made.expect("the node is made");
        machine
    }

    /// Its kubelet stops, as of a machine that is gone.
    pub(crate) async fn silence(&self, name: &str) {
        let kubelet = Kubelet::new(&self.world.client, name);
        let written = kubelet.set_not_ready(NotReady::Unknown).await;
        written.expect("the status is written");
    }

    /// A Service of type LoadBalancer.
    pub(crate) fn service(&self, name: &str) -> ServiceBuilder {
        ServiceBuilder::new("default", name)
            .class(self.world.class())
            .port("http", 80)
    }

    /// Work of every kind: a new Node, a new Service, a machine that is gone, routes that are missing.
    pub(crate) async fn with_work(&self) {
        self.joined("stays", "10.244.1.0/24").await;
        let gone = self.joined("gone", "10.244.2.0/24").await;
        self.world.machine("new");
        let made = builder(&self.world, "new").create(&self.world.client).await;
        made.expect("the node is made");
        let made = self.service("web").create(&self.world.client).await;
        made.expect("the service is made");
        self.silence("gone").await;
        self.world
            .cloud
            .destroy(gone)
            .expect("the machine is there");
    }

    /// The flags of a manager in this world, with the account that can only read.
    pub(crate) fn flags(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig.display();
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--cloud-config={}", self.world.config().display()),
            "--secure-port=0".to_owned(),
            CLUSTER_CIDR.to_owned(),
        ]
    }

    /// A manager with `--dry-run`, and with short periods so that a test need not wait for minutes.
    pub(crate) fn dry_run(&self, more: &[&str]) -> Manager {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program
            .arg("--dry-run")
            .args(self.flags())
            .args(more)
            .args([
                "--bind-address=127.0.0.1",
                "--node-monitor-period=1s",
                "--node-deletion-confirmation-period=2s",
                "--node-deletion-proofs=2",
            ]);
        Manager::spawn(program, self.world.log_file())
    }

    /// Runs `cloudkeel plan` with these arguments besides the manager's flags.
    pub(crate) async fn plan(&self, more: &[&str]) -> Output {
        let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program.arg("plan").args(more).args(self.flags());
        program.kill_on_drop(true).output().await.expect("it runs")
    }

    /// The plan as JSON, which has to succeed with this code.
    pub(crate) async fn planned(&self, more: &[&str], code: i32) -> Value {
        let arguments = [&["--output=json"], more].concat();
        let output = self.plan(&arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The versions of all objects that a manager could write.
    pub(crate) async fn versions(&self) -> Versions {
        let mut versions = Versions::new();
        for path in [
            "/api/v1/nodes",
            "/api/v1/services",
            "/api/v1/events",
            "/apis/coordination.k8s.io/v1/leases",
        ] {
            let request = Request::get(path).body(Vec::new()).expect("a request");
            let list = self.world.client.request::<Value>(request).await;
            let list = list.expect("it can be listed");
            for object in list["items"].as_array().expect("a list") {
                let meta = &object["metadata"];
                // The API server renews its own.
                if meta["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("apiserver-"))
                {
                    continue;
                }
                let key = format!("{path} {}/{}", meta["namespace"], meta["name"]);
                versions.insert(key, meta["resourceVersion"].to_string());
            }
        }
        versions
    }

    /// The routes of this world.
    pub(crate) fn routes(&self) -> Vec<wire::Route> {
        self.world.cloud.routes_of(&self.world.id)
    }
}

/// Steps as `sign object: text`, in order.
pub(crate) fn steps(plan: &Value) -> Vec<String> {
    let steps = plan["steps"].as_array().into_iter().flatten();
    let steps = steps.map(|step| {
        let sign = match step["action"].as_str() {
            Some("create") => '+',
            Some("change") => '~',
            _ => '-',
        };
        let text = |field: &str| step[field].as_str().unwrap_or_default();
        format!("{sign} {}: {}", text("object"), text("text"))
    });
    steps.collect()
}

async fn apply_reader_role(client: &Client) {
    let file = package().join("../../deploy/manifests/extras/plan-reader.yaml");
    let text = std::fs::read_to_string(file).expect("the role is there");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    for document in documents {
        let (group, resource) = match document["kind"].as_str().expect("a kind") {
            "ServiceAccount" => ("/api/v1", "serviceaccounts"),
            "ClusterRole" => ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
            "ClusterRoleBinding" => ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
            "Role" => ("/apis/rbac.authorization.k8s.io/v1", "roles"),
            "RoleBinding" => ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
            other => panic!("{other} is unexpected"),
        };
        let path = match document["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}"),
            None => format!("{group}/{resource}"),
        };
        let body = serde_json::to_vec(&document).expect("JSON");
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body).expect("a request");
        let made = client.request::<Value>(request).await;
        made.unwrap_or_else(|error| panic!("{document}: {error}"));
    }
}
