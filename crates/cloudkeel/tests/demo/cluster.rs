//! The Kubernetes API of a demo, and what goes wrong in it.

use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::process::Demo;

pub(crate) struct Cluster(Client);

impl Cluster {
    pub(crate) async fn of(demo: &Demo) -> Self {
        let kubeconfig = Kubeconfig::read_from(demo.text("kubeconfig")).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Self(Client::try_from(config.expect("settings")).expect("a client"))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    pub(crate) async fn make_service(&self, name: &str, annotations: Value, ports: &[u16]) {
        let ports: Vec<_> = ports
            .iter()
            .map(|port| json!({"name": format!("p{port}"), "port": port}))
            .collect();
        let service = json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": ports},
        });
        let service: Service = serde_json::from_value(service).expect("a Service");
        let services = Api::namespaced(self.0.clone(), "default");
        let made = services.create(&PostParams::default(), &service).await;
        made.expect("the Service is made");
    }

    /// A Node that no machine of the cloud belongs to.
    pub(crate) async fn make_ghost(&self, name: &str) {
        let taint = "node.cloudprovider.kubernetes.io/uninitialized";
        let taints = json!([{"key": taint, "value": "true", "effect": "NoSchedule"}]);
        let node = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
        let node: Node = serde_json::from_value(node).expect("a Node");
        let nodes = Api::all(self.0.clone());
        let made = nodes.create(&PostParams::default(), &node).await;
        made.expect("the Node is made");
    }

    /// A Service with a mistake, one with two ports, and a Node without a machine.
    pub(crate) async fn make_trouble(&self) {
        let mistake = json!({"cloudkeel.dev/lb-drain-seconds": "soon"});
        self.make_service("broken", mistake, &[8083]).await;
        self.make_service("two-ports", json!({}), &[8081, 8082])
            .await;
        self.make_ghost("ghost").await;
    }

    /// Names and addresses that no line holds.
    pub(crate) async fn make_long_names(&self) {
        let long = "a".repeat(60);
        let hostname = json!({"cloudkeel.dev/lb-hostname": format!("{long}.example.com")});
        self.make_service(&long, hostname, &[8084]).await;
        self.make_ghost(&format!("{long}.example.com")).await;
    }
}
