//! The cluster's identity, and clouds that have managed clusters.

use async_trait::async_trait;
use ipnet::IpNet;
use serde::Serialize;

use crate::CloudError;

/// The identity of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// `--cluster-name`. Often left at its default, so it does not distinguish clusters.
    pub name: String,
    /// The UID of the `kube-system` namespace: unique, and recorded on created resources. `None` if it may not be
    /// read.
    pub uid: Option<String>,
    /// `--cluster-cidr`: the Pod networks, at most one per family.
    pub pod_cidrs: Vec<IpNet>,
}

/// Clouds that have managed clusters. No controller uses it; it is kept so that nothing of the upstream interface is
/// lost.
#[async_trait]
pub trait Clusters: Send + Sync {
    /// The names of all clusters. Only reads.
    async fn list(&self) -> Result<Vec<String>, CloudError>;

    /// The address of a cluster's control plane. `NotFound` if there is no such cluster.
    async fn control_plane(&self, cluster: &str) -> Result<String, CloudError>;
}
