//! Managed clusters.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Clusters, ErrorKind};

use cloudkeel_toolkit::HasId;

use crate::client::{Api, requests};
use crate::wire::Cluster;

/// The managed clusters of the project.
pub(crate) struct LocalClusters(pub(crate) Api);

impl LocalClusters {
    async fn all(&self) -> Result<Vec<Cluster>, CloudError> {
        self.0.list_own(requests::list("/v1/clusters")).await
    }
}

impl HasId for Cluster {
    type Id = String;

    fn id(&self) -> String {
        self.name.clone()
    }
}

#[async_trait]
impl Clusters for LocalClusters {
    async fn list(&self) -> Result<Vec<String>, CloudError> {
        let clusters = self.all().await?;
        Ok(clusters.into_iter().map(|cluster| cluster.name).collect())
    }

    async fn control_plane(&self, cluster: &str) -> Result<String, CloudError> {
        let clusters = self.all().await?;
        let found = clusters.into_iter().find(|known| known.name == cluster);
        found.map(|cluster| cluster.control_plane).ok_or_else(|| {
            let message = format!("there is no cluster {cluster:?}");
            CloudError::new("GET /v1/clusters", ErrorKind::NotFound, message)
        })
    }
}
