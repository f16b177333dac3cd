//! The cluster itself, and clouds that know of clusters.

use async_trait::async_trait;
use ipnet::IpNet;
use serde::Serialize;

use crate::CloudError;

/// Which cluster this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// `--cluster-name`. Often left at its default, so it tells nothing apart.
    pub name: String,
    /// The UID of the `kube-system` namespace: unique, and written on what is created. `None` if
    /// it may not be read.
    pub uid: Option<String>,
    /// `--cluster-cidr`: the Pod networks, at most one per family.
    pub pod_cidrs: Vec<IpNet>,
}

/// Clouds that have managed clusters of their own. No controller uses it; it is kept so that
/// nothing of the upstream interface is lost.
#[async_trait]
pub trait Clusters: Send + Sync {
    /// The names of all clusters. Only reads.
    async fn list(&self) -> Result<Vec<String>, CloudError>;

    /// The address of a cluster's control plane. `NotFound` if there is no such cluster.
    async fn control_plane(&self, cluster: &str) -> Result<String, CloudError>;
}
