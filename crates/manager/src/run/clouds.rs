//! Builds the clouds that the configuration names, at the start and whenever their settings change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Clock, CloudProvider, ClusterIdentity, ProviderContext, ProviderInput, Registry, RegistryError,
};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{Brief, EventRecorder};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tracing::{info, warn};

use super::invocation::Start;
use crate::config::{CloudEntry, Setup};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::reload::{
    Build, Built, ClusterSecrets, KubeTell, ReloadParts, Reloadable, files_named_by, keep_reloading,
};

/// Between two looks whether the API server is back.
const NEXT_LOOK: Duration = Duration::from_secs(1);
/// It is told at the first look, and then about twice a minute.
const LOOKS_PER_WORD: u64 = 30;
/// A look that takes longer than this brings nothing.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// What all clouds are built with.
pub(super) struct CloudParts<'a> {
    pub(super) options: &'a Options,
    pub(super) client: Client,
    pub(super) metrics: &'a Metrics,
    pub(super) events: &'a EventRecorder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) env: BTreeMap<String, String>,
}

/// Builds providers, again and again in the same way.
pub(super) struct CloudBuilder<'a> {
    registry: &'a Registry,
    parts: CloudParts<'a>,
    /// What marks this cluster's resources in a cloud.
    pub(super) cluster: ClusterIdentity,
    named_files: Vec<PathBuf>,
}

impl<'a> CloudBuilder<'a> {
    pub(super) async fn new(registry: &'a Registry, parts: CloudParts<'a>) -> Self {
        let cluster = ClusterIdentity {
            name: parts.options.generic.cluster_name.clone(),
            uid: cluster_uid(&parts.client).await,
            pod_cidrs: parts.options.generic.cluster_cidrs.clone(),
        };
        Self {
            named_files: files_named_by(&parts.env, &registry.descriptors()),
            registry,
            parts,
            cluster,
        }
    }

    /// Builds every cloud, in every replica, before the election: a replica that could not lead says so
    /// at once.
    pub(super) async fn build_all(&self, setup: &Setup) -> Result<Vec<Reloadable>, RegistryError> {
        let mut clouds = Vec::with_capacity(setup.clouds.len());
        for entry in &setup.clouds {
            let built = self.build(entry).await?;
            self.tell_built(entry, built.provider.as_ref());
            let cloud = Cloud::new(
                &entry.name,
                Arc::clone(&built.provider),
                entry.nodes.selector.clone(),
                Arc::clone(&self.parts.clock),
            );
            clouds.push(Reloadable::new(cloud, entry.clone(), &built, self).await);
        }
        Ok(clouds)
    }

    /// Follows the settings of the clouds for as long as it is polled.
    pub(super) async fn keep_current(&self, clouds: Vec<Reloadable>, start: &Start) -> Infallible {
        let options = &start.options;
        let clock = Arc::clone(&self.parts.clock);
        let recent = Arc::clone(self.parts.events.recent());
        let tell = KubeTell::new(self.parts.client.clone(), &options.election, clock, recent);
        let load = || start.load(self.registry);
        let parts = ReloadParts {
            build: self,
            load: &load,
            tell: &tell,
            metrics: &self.parts.metrics.reloads,
            period: options.generic.cloud_reload_period,
        };
        keep_reloading(clouds, parts).await
    }

    fn tell_built(&self, entry: &CloudEntry, provider: &dyn CloudProvider) {
        let can: Vec<_> = provider.capabilities().iter().map(|c| c.as_str()).collect();
        info!(
            cloud = entry.name,
            provider = entry.provider,
            ?can,
            "cloud built"
        );
        // Without the cluster's UID there can be no mark, and that was told already.
        let should_have_mark =
            self.cluster.uid.is_some() && !self.parts.options.generic.allow_untagged_cloud;
        if should_have_mark && !provider.has_cluster_id() {
            warn!(
                cloud = entry.name,
                "the cloud's resources carry no mark of this cluster"
            );
        }
    }
}

#[async_trait::async_trait]
impl Build for CloudBuilder<'_> {
    async fn build(&self, entry: &CloudEntry) -> Result<Built, RegistryError> {
        let parts = &self.parts;
        let secrets = Arc::new(ClusterSecrets::new(parts.client.clone()));
        let input = ProviderInput {
            config: entry.config.clone(),
            env: parts.env.clone(),
            flags: parts.options.provider_flags.clone(),
        };
        let context = ProviderContext {
            cloud: entry.name.clone(),
            cluster: self.cluster.clone(),
            events: parts.events.sink("cloudkeel"),
            observer: parts.metrics.clouds.observer(&entry.name),
            clock: Arc::clone(&parts.clock),
            secrets: Arc::<ClusterSecrets>::clone(&secrets),
        };
        let provider = self.registry.build(&entry.provider, input, context).await?;
        Ok(Built { provider, secrets })
    }

    fn named_files(&self) -> &[PathBuf] {
        &self.named_files
    }
}

/// The UID of `kube-system`, which no two clusters share. A role that may not read it costs only the
/// mark on new resources. An API server that is away is waited for: what is made without the mark stays
/// without it, and nothing can be done before it is back anyway.
async fn cluster_uid(client: &Client) -> Option<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for look in 0_u64.. {
        let asking = namespaces.get_opt("kube-system");
        let error = match tokio::time::timeout(LOOK_PATIENCE, asking).await {
            Ok(Ok(namespace)) => return namespace.and_then(|namespace| namespace.metadata.uid),
            Ok(Err(error)) if is_refusal(&error) => {
                let error = Brief(&error);
                warn!(%error, "the cluster's own UID cannot be read; new cloud resources go without it");
                return None;
            }
            Ok(Err(error)) => Brief(&error).to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if look.is_multiple_of(LOOKS_PER_WORD) {
            warn!(%error, "the API server does not answer; waiting for it");
        }
        tokio::time::sleep(NEXT_LOOK).await;
    }
    None
}

/// Whether the API server has answered that it will not, as opposed to not now.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

#[cfg(test)]
mod tests;
