//! A cluster of its own with two clouds, and doctor in this process.

use std::path::PathBuf;
use std::sync::Arc;

use cloudkeel_api::{Clock, Registry, SystemClock};
use cloudkeel_diagnose::{
    Diagnosis, Explanation, Snapshot, diagnose, explain_node, explain_service,
};
use cloudkeel_manager::diagnose::{Request, Scope, collect};
use cloudkeel_manager::run::Environment;
use cloudkeel_provider_local::LocalFactory;
use cloudkeel_testkit::cluster::{NodeBuilder, ServiceBuilder, eventually};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::harness::{DEADLINE, Manager, TOKEN, World};

/// The token of the second cloud.
const SECOND_TOKEN: &str = "second-token";
/// The network of Pods.
pub(crate) const CLUSTER_CIDR: &str = "10.77.0.0/16";

/// The wall clock, some time ahead: what has just been made is old then.
struct Ahead(SignedDuration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_add(self.0).expect("a time")
    }
}

/// A world with the clouds `one`, the default, and `two`.
pub(crate) struct Lab {
    pub(crate) world: World,
    /// How far ahead doctor's clock is.
    pub(crate) ahead: SignedDuration,
}

impl Lab {
    pub(crate) async fn open() -> Self {
        let world = World::with(EitherApi::Real.run_alone().await).await;
        world.cloud.add_project("second");
        world
            .cloud
            .grant(SECOND_TOKEN, "second", Permission::ReadWrite);
        let lab = Self {
            world,
            ahead: SignedDuration::ZERO,
        };
        lab.write_config(TOKEN);
        lab
    }

    /// Both clouds, with this token for the first.
    pub(crate) fn write_config(&self, token: &str) {
        let url = self.world.url();
        let text = format!(
            "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n\
             - name: one\n  provider: local\n  nodes: {{selector: in-one}}\n  \
               loadBalancers: {{default: true}}\n  config: {{endpoint: \"{url}\", token: \"{token}\"}}\n\
             - name: two\n  provider: local\n  nodes: {{selector: in-two}}\n  \
               loadBalancers: {{class: two}}\n  config: {{endpoint: \"{url}\", token: \"{SECOND_TOKEN}\"}}\n"
        );
        self.world.write_file("clouds.yaml", &text);
    }

    pub(crate) fn client(&self) -> Client {
        self.world.client.clone()
    }

    /// A kubeconfig for a user of a group.
    pub(crate) fn kubeconfig_for(&self, user: &str, group: &str) -> PathBuf {
        let text = self.world.kubeconfig_of(user, &[group]);
        self.world.write_file(&format!("{user}.kubeconfig"), &text)
    }

    /// The flags of the manager, which doctor takes too.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = self.world.flags();
        flags.push(format!("--cluster-cidr={CLUSTER_CIDR}"));
        flags
    }

    pub(crate) fn start_manager(&self) -> Manager {
        let cidr = format!("--cluster-cidr={CLUSTER_CIDR}");
        self.world
            .start(&[&cidr, "--node-status-update-frequency=2s"])
    }

    pub(crate) async fn collect(&self, flags: &[String], scope: Scope) -> Snapshot {
        let registry = Registry::new().with(LocalFactory::default());
        let registry = registry.expect("a registry");
        let request = Request {
            flags,
            program: "cloudkeel",
            registry: &registry,
            environment: Environment::default(),
            clock: Arc::new(Ahead(self.ahead)),
            scope,
            progress: &|_| {},
        };
        Box::pin(collect(&request))
            .await
            .expect("the flags are understood")
    }

    pub(crate) async fn doctor(&self) -> Diagnosis {
        self.doctor_with(&self.flags()).await
    }

    pub(crate) async fn doctor_with(&self, flags: &[String]) -> Diagnosis {
        let before = self.world.cloud.calls().mutations();
        let diagnosis = diagnose(&self.collect(flags, Scope::All).await);
        let after = self.world.cloud.calls().mutations();
        assert_eq!(before, after, "doctor changes nothing in a cloud");
        diagnosis
    }

    pub(crate) async fn explain_node(&self, name: &str) -> Explanation {
        let snapshot = self
            .collect(&self.flags(), Scope::Node(name.to_owned()))
            .await;
        explain_node(&snapshot, name).expect("the Node is there")
    }

    pub(crate) async fn explain_service(&self, name: &str) -> Explanation {
        let key = format!("default/{name}");
        let snapshot = self
            .collect(&self.flags(), Scope::Service(key.clone()))
            .await;
        explain_service(&snapshot, &key).expect("the Service is there")
    }

    /// A Node of cloud `one`, as its kubelet registers it.
    #[expect(clippy::unused_self, reason = "reads as what the lab makes")]
    pub(crate) fn node(&self, name: &str) -> NodeBuilder {
        NodeBuilder::new(name).label("in-one", "")
    }

    pub(crate) async fn create(&self, node: NodeBuilder) {
        node.create(&self.world.client)
            .await
            .expect("the node is made");
    }

    /// A machine in the first project. Its ID as Nodes have it.
    pub(crate) fn machine(&self, name: &str) -> (u64, String) {
        let id = self.world.machine(name);
        (id, self.id(id))
    }

    pub(crate) fn machine_of(&self, spec: MachineSpec) -> u64 {
        let spec = spec.in_project(&self.world.id);
        self.world.cloud.add_machine(spec).expect("a machine").id
    }

    pub(crate) fn id(&self, machine: u64) -> String {
        format!("local://{}/{machine}", self.world.id)
    }

    /// A Node that was initialised, and its machine.
    pub(crate) async fn initialised(&self, name: &str) -> u64 {
        self.initialised_as(name, |node| node).await
    }

    pub(crate) async fn initialised_as(
        &self,
        name: &str,
        with: impl FnOnce(NodeBuilder) -> NodeBuilder,
    ) -> u64 {
        let (machine, id) = self.machine(name);
        let node = self.node(name).provider_id(id).initialized();
        self.create(with(node)).await;
        machine
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        let nodes: Api<Node> = Api::all(self.client());
        let patched = nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.expect("the node is changed");
    }

    pub(crate) async fn patch_node_status(&self, name: &str, patch: Value) {
        let nodes: Api<Node> = Api::all(self.client());
        let patch = Patch::Strategic(json!({"status": patch}));
        let patched = nodes
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.expect("the status is written");
    }

    /// A Service in `default` with one ready endpoint on this Node.
    pub(crate) async fn serve(&self, service: ServiceBuilder, name: &str, on: &str) {
        let made = service.port("main", 80).create(&self.world.client).await;
        made.expect("the service is made");
        self.endpoint(name, on).await;
    }

    #[expect(clippy::unused_self, reason = "reads as what the lab makes")]
    pub(crate) fn service(&self, name: &str) -> ServiceBuilder {
        ServiceBuilder::new("default", name)
    }

    pub(crate) async fn endpoint(&self, service: &str, on: &str) {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client(), "default");
        let slice = json!({
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.77.9.9"], "nodeName": on, "conditions": {"ready": true}},
            ],
        });
        let slice = serde_json::from_value(slice).expect("a slice");
        let made = slices.create(&PostParams::default(), &slice).await;
        made.expect("the endpoints are made");
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.client(), "default")
    }

    pub(crate) async fn patch_service(&self, name: &str, patch: Value) {
        let (services, params) = (self.services(), PatchParams::default());
        let patched = services.patch(name, &params, &Patch::Merge(patch)).await;
        patched.expect("the service is changed");
    }

    /// Waits until a Service has its address.
    pub(crate) async fn until_served(&self, name: &str) {
        eventually(&format!("the address of {name}"), DEADLINE, || async {
            let service = self.services().get(name).await.ok()?;
            let ingress = service.status?.load_balancer?.ingress?;
            (!ingress.is_empty()).then_some(())
        })
        .await;
    }

    /// A Pod in kube-system with this spec and status.
    pub(crate) async fn pod(&self, name: &str, spec: Value, status: Value) {
        let pods: Api<Pod> = Api::namespaced(self.client(), "kube-system");
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).expect("a pod");
        let made = pods.create(&PostParams::default(), &pod).await;
        made.expect("the pod is made");
        let status = Patch::Merge(json!({"status": status}));
        let patched = pods
            .patch_status(name, &PatchParams::default(), &status)
            .await;
        patched.expect("the status is written");
    }

    pub(crate) async fn service_account(&self, name: &str) {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), "kube-system");
        let account = json!({"metadata": {"name": name}});
        let account = serde_json::from_value(account).expect("an account");
        let made = accounts.create(&PostParams::default(), &account).await;
        made.expect("the account is made");
    }
}

/// Whether a finding of this kind is about this object.
pub(crate) fn has(diagnosis: &Diagnosis, id: &str, object: &str) -> bool {
    let mut findings = diagnosis.findings.iter();
    findings.any(|finding| finding.id() == id && finding.object == object)
}

/// Fails unless every one of these was found.
#[track_caller]
pub(crate) fn assert_found(diagnosis: &Diagnosis, expected: &[(&str, &str)]) {
    let missing: Vec<_> = expected
        .iter()
        .filter(|(id, object)| !has(diagnosis, id, object))
        .collect();
    let found: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|it| format!("{} {}: {}", it.id(), it.object, it.what))
        .collect();
    assert!(
        missing.is_empty(),
        "not found: {missing:#?}\nfound: {found:#?}"
    );
}
