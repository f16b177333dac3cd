//! Managed clusters.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Clusters, ErrorKind};

use crate::client::Api;

/// The managed clusters of the project.
pub(crate) struct LocalClusters {
    api: Api,
}

impl LocalClusters {
    pub(crate) const fn new(api: Api) -> Self {
        Self { api }
    }
}

#[async_trait]
impl Clusters for LocalClusters {
    async fn list(&self) -> Result<Vec<String>, CloudError> {
        let clusters = self.api.clusters().await?;
        Ok(clusters.into_iter().map(|cluster| cluster.name).collect())
    }

    async fn control_plane(&self, cluster: &str) -> Result<String, CloudError> {
        let clusters = self.api.clusters().await?;
        let found = clusters.into_iter().find(|known| known.name == cluster);
        found.map(|cluster| cluster.control_plane).ok_or_else(|| {
            let message = format!("there is no cluster {cluster:?}");
            CloudError::new("GET /v1/clusters", ErrorKind::NotFound, message)
        })
    }
}
