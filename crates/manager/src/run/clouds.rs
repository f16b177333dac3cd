//! Builds the clouds that the configuration names.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Clock, CloudError, ClusterIdentity, ErrorKind, ProviderContext, ProviderInput, Registry,
    RegistryError, Secret, SecretStore,
};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::EventRecorder;
use k8s_openapi::api::core::v1::{Namespace, Secret as KubeSecret};
use kube::{Api, Client};
use tracing::{info, warn};

use crate::config::{CloudEntry, Setup};
use crate::metrics::Metrics;
use crate::options::Options;

/// What all clouds are built with.
pub(super) struct CloudParts<'a> {
    pub(super) options: &'a Options,
    pub(super) client: Client,
    pub(super) metrics: &'a Metrics,
    pub(super) events: &'a EventRecorder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) env: BTreeMap<String, String>,
}

/// Builds every cloud, in every replica, before the election: a replica that could not lead says so
/// at once.
pub(super) async fn build_clouds(
    setup: &Setup,
    registry: &Registry,
    parts: &CloudParts<'_>,
    cluster: &ClusterIdentity,
) -> Result<Vec<Arc<Cloud>>, RegistryError> {
    let mut clouds = Vec::with_capacity(setup.clouds.len());
    for entry in &setup.clouds {
        clouds.push(build_cloud(entry, registry, parts, cluster).await?);
    }
    Ok(clouds)
}

/// What marks this cluster's resources in a cloud.
pub(super) async fn cluster_identity(parts: &CloudParts<'_>) -> ClusterIdentity {
    ClusterIdentity {
        name: parts.options.generic.cluster_name.clone(),
        uid: cluster_uid(&parts.client).await,
        pod_cidrs: parts.options.generic.cluster_cidrs.clone(),
    }
}

async fn build_cloud(
    entry: &CloudEntry,
    registry: &Registry,
    parts: &CloudParts<'_>,
    cluster: &ClusterIdentity,
) -> Result<Arc<Cloud>, RegistryError> {
    let input = ProviderInput {
        config: entry.config.clone(),
        env: parts.env.clone(),
        flags: parts.options.provider_flags.clone(),
    };
    let context = ProviderContext {
        cloud: entry.name.clone(),
        cluster: cluster.clone(),
        events: parts.events.sink("cloudkeel"),
        observer: parts.metrics.clouds.observer(&entry.name),
        clock: Arc::clone(&parts.clock),
        secrets: Arc::new(ClusterSecrets(parts.client.clone())),
    };
    let provider = registry.build(&entry.provider, input, context).await?;
    let can: Vec<_> = provider.capabilities().iter().map(|c| c.as_str()).collect();
    info!(
        cloud = entry.name,
        provider = entry.provider,
        ?can,
        "cloud built"
    );
    // Without the cluster's UID there can be no mark, and that was told already.
    let should_have_mark = cluster.uid.is_some() && !parts.options.generic.allow_untagged_cloud;
    if should_have_mark && !provider.has_cluster_id() {
        warn!(
            cloud = entry.name,
            "the cloud's resources carry no mark of this cluster"
        );
    }
    let selector = entry.nodes.selector.clone();
    Ok(Cloud::new(
        &entry.name,
        provider,
        selector,
        Arc::clone(&parts.clock),
    ))
}

/// The UID of `kube-system`, which no two clusters share. A role that may not read it costs only the
/// mark on new resources.
async fn cluster_uid(client: &Client) -> Option<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_opt("kube-system").await {
        Ok(namespace) => namespace.and_then(|namespace| namespace.metadata.uid),
        Err(error) => {
            warn!(%error, "the cluster's own UID cannot be read; new cloud resources go without it");
            None
        }
    }
}

struct ClusterSecrets(Client);

#[async_trait]
impl SecretStore for ClusterSecrets {
    async fn read(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, CloudError> {
        let secrets: Api<KubeSecret> = Api::namespaced(self.0.clone(), namespace);
        let secret = secrets.get(name).await.map_err(|error| {
            let kind = match &error {
                kube::Error::Api(status) if status.code == 404 => ErrorKind::NotFound,
                kube::Error::Api(status) if status.code == 403 => ErrorKind::Denied,
                _ => ErrorKind::Unavailable,
            };
            CloudError::new("read secret", kind, format!("{namespace}/{name}")).with_source(error)
        })?;
        let data = secret.data.unwrap_or_default();
        Ok(data
            .into_iter()
            .map(|(key, value)| (key, Secret::new(String::from_utf8_lossy(&value.0))))
            .collect())
    }
}
