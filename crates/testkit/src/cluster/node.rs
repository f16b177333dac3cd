//! A Node as a kubelet with `--cloud-provider=external` registers it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use super::conditions::{Health, conditions};
use super::time::now;
use super::{Kubelet, node_status};

/// The key of the taint that keeps Pods off a Node until its cloud has initialised it.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The annotation that repeats a kubelet's `--node-ip`.
pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Builds a Node as a kubelet with `--cloud-provider=external` registers it: tainted as uninitialised, ready,
/// without a provider ID, and with no address but its host name.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds or creates the Node"]
pub struct NodeBuilder {
    name: String,
    node_ips: Vec<IpAddr>,
    provider_id: Option<String>,
    pod_cidrs: Vec<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: Vec<Taint>,
}

impl NodeBuilder {
    /// A Node of this name, whose machine has a system UUID derived from it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            node_ips: Vec::new(),
            provider_id: None,
            pod_cidrs: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: vec![Taint {
                key: UNINITIALIZED_TAINT.to_owned(),
                value: Some("true".to_owned()),
                effect: "NoSchedule".to_owned(),
                time_added: None,
            }],
        }
    }

    /// A `--node-ip` of the kubelet: an internal address, repeated in an annotation for the cloud.
    pub fn node_ip(mut self, address: IpAddr) -> Self {
        self.node_ips.push(address);
        self
    }

    /// The `--provider-id` of the kubelet.
    pub fn provider_id(mut self, id: impl Into<String>) -> Self {
        self.provider_id = Some(id.into());
        self
    }

    /// A range for the Pods of this Node.
    pub fn pod_cidr(mut self, cidr: impl Into<String>) -> Self {
        self.pod_cidrs.push(cidr.into());
        self
    }

    /// A label besides those of every kubelet.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// An annotation besides those of every kubelet.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// A Node that its cloud has initialised already: without the taint that says otherwise.
    pub fn initialized(mut self) -> Self {
        self.taints.clear();
        self
    }

    /// The object that the kubelet would post at this time.
    pub fn build(&self, now: Timestamp) -> Node {
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.all_labels()),
                annotations: Some(self.all_annotations()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                provider_id: self.provider_id.clone(),
                pod_cidr: self.pod_cidrs.first().cloned(),
                pod_cidrs: Some(self.pod_cidrs.clone()).filter(|cidrs| !cidrs.is_empty()),
                taints: Some(self.taints.clone()).filter(|taints| !taints.is_empty()),
                ..NodeSpec::default()
            }),
            status: Some(self.status(now)),
        }
    }

    /// Registers the Node as a kubelet does: post the object, write its status through the status subresource,
    /// and renew its lease. Returns what the API server has then.
    pub async fn create(&self, client: &Client) -> Result<Node, kube::Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        nodes
            .create(&PostParams::default(), &self.build(now()))
            .await?;
        Kubelet::new(client, &self.name).set_ready().await
    }

    fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<_, _> = [
            ("beta.kubernetes.io/arch", node_status::ARCHITECTURE),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", node_status::ARCHITECTURE),
            ("kubernetes.io/hostname", &self.name),
            ("kubernetes.io/os", "linux"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        labels.extend(self.labels.clone());
        labels
    }

    fn all_annotations(&self) -> BTreeMap<String, String> {
        let attach = "volumes.kubernetes.io/controller-managed-attach-detach";
        let mut annotations = BTreeMap::from([(attach.to_owned(), "true".to_owned())]);
        if !self.node_ips.is_empty() {
            let ips: Vec<_> = self.node_ips.iter().map(IpAddr::to_string).collect();
            annotations.insert(PROVIDED_NODE_IP.to_owned(), ips.join(","));
        }
        annotations.extend(self.annotations.clone());
        annotations
    }

    fn status(&self, now: Timestamp) -> NodeStatus {
        let (capacity, allocatable) = node_status::resources();
        NodeStatus {
            addresses: Some(self.addresses()),
            capacity: Some(capacity),
            allocatable: Some(allocatable),
            conditions: Some(conditions(&[], Health::Ready, now)),
            daemon_endpoints: Some(node_status::daemon_endpoints()),
            images: Some(node_status::images()),
            node_info: Some(node_status::node_info(&self.name)),
            ..NodeStatus::default()
        }
    }

    /// Without a `--node-ip` a kubelet leaves every address but the host name to the cloud.
    fn addresses(&self) -> Vec<NodeAddress> {
        let internal = self
            .node_ips
            .iter()
            .map(|ip| ("InternalIP", ip.to_string()));
        internal
            .chain([("Hostname", self.name.clone())])
            .map(|(kind, address)| NodeAddress {
                type_: kind.to_owned(),
                address,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
