//! The heartbeat of a Node.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::conditions::{Health, conditions, taints};
use super::namespace;
use super::time::now;

const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The default lease duration of a kubelet.
const LEASE_SECONDS: i32 = 40;

/// How often a write is repeated when another writer was faster.
const CONFLICTS: u32 = 10;

/// In which way a Node is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// Its kubelet runs, renews its lease, and says that the Node is not ready.
    False,
    /// Its kubelet is silent: the lease ages, and kube-controller-manager sets all conditions to unknown.
    Unknown,
}

/// Plays the kubelet of one Node, and kube-controller-manager's part in its health, which does not run in a test.
#[derive(Clone)]
pub struct Kubelet {
    client: Client,
    node: String,
}

/// A kubelet that is heard for as long as this is kept.
pub struct LiveKubelet(tokio::task::JoinHandle<()>);

impl Drop for LiveKubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kubelet {
    /// The kubelet of the Node of this name.
    pub fn new(client: &Client, node: impl Into<String>) -> Self {
        Self {
            client: client.clone(),
            node: node.into(),
        }
    }

    /// One heartbeat of a ready Node: conditions, lease, and no taint of an unhealthy one.
    pub async fn set_ready(&self) -> Result<Node, kube::Error> {
        self.beat(Health::Ready).await
    }

    /// Makes the Node not ready in the given way, with the taints that come with it.
    pub async fn set_not_ready(&self, way: NotReady) -> Result<Node, kube::Error> {
        match way {
            NotReady::False => self.beat(Health::NotReady).await,
            NotReady::Unknown => self.beat(Health::Silent).await,
        }
    }

    /// Renews the Node's lease, or takes it for the first time.
    pub async fn renew_lease(&self) -> Result<Lease, kube::Error> {
        let owner = self.nodes().get(&self.node).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASE_NAMESPACE);
        if leases.get_opt(&self.node).await?.is_some() {
            let renewal = json!({"spec": {"renewTime": MicroTime(now())}});
            let patch = Patch::Merge(renewal);
            return leases
                .patch(&self.node, &PatchParams::default(), &patch)
                .await;
        }
        let lease = self.first_lease(&owner);
        match leases.create(&PostParams::default(), &lease).await {
            // The API server has not come to creating its own namespaces yet.
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                namespace::ensure(&self.client, LEASE_NAMESPACE).await?;
                leases.create(&PostParams::default(), &lease).await
            }
            outcome => outcome,
        }
    }

    /// Renews the lease again and again, until what is returned is dropped.
    pub fn live(&self, every: Duration) -> LiveKubelet {
        let kubelet = self.clone();
        LiveKubelet(tokio::spawn(async move {
            loop {
                // One that comes too late for its Node has nothing to renew.
                let _ = kubelet.renew_lease().await;
                tokio::time::sleep(every).await;
            }
        }))
    }

    async fn beat(&self, health: Health) -> Result<Node, kube::Error> {
        self.write_conditions(health).await?;
        if health != Health::Silent {
            self.renew_lease().await?;
        }
        self.write_taints(health).await
    }

    /// A kubelet patches its status strategically, so conditions and addresses of others survive.
    async fn write_conditions(&self, health: Health) -> Result<(), kube::Error> {
        let status = self
            .nodes()
            .get(&self.node)
            .await?
            .status
            .unwrap_or_default();
        let before = status.conditions.unwrap_or_default();
        let patch = json!({"status": {"conditions": conditions(&before, health, now())}});
        self.nodes()
            .patch_status(
                &self.node,
                &PatchParams::default(),
                &Patch::Strategic(patch),
            )
            .await?;
        Ok(())
    }

    /// Taints are one list with several writers, so the write holds only for the version it was made from.
    async fn write_taints(&self, health: Health) -> Result<Node, kube::Error> {
        let mut conflicts = 0;
        loop {
            let node = self.nodes().get(&self.node).await?;
            let before = node
                .spec
                .as_ref()
                .and_then(|spec| spec.taints.clone())
                .unwrap_or_default();
            let wanted = taints(&before, health);
            if wanted == before {
                return Ok(node);
            }
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": wanted},
            }));
            match self
                .nodes()
                .patch(&self.node, &PatchParams::default(), &patch)
                .await
            {
                Err(kube::Error::Api(status)) if status.is_conflict() && conflicts < CONFLICTS => {
                    conflicts += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn first_lease(&self, owner: &Node) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.node.clone()),
                namespace: Some(LEASE_NAMESPACE.to_owned()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: self.node.clone(),
                    uid: owner.metadata.uid.clone().unwrap_or_default(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.node.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(MicroTime(now())),
                ..LeaseSpec::default()
            }),
        }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }
}
