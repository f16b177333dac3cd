//! Builds the clouds that the configuration names, at the start and whenever their settings change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cloudkeel_api::{
    Clock, CloudProvider, ClusterIdentity, ProviderContext, ProviderInput, Registry, RegistryError,
};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{Backoff, Brief, EventRecorder};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tracing::{debug, info, warn};

use super::invocation::Start;
use super::manager::RunError;
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
/// A cloud that takes longer than this to build is waited for aloud.
const SILENCE: Duration = Duration::from_secs(2);
/// Between two questions for a UID that could not be read at the start. A role that never allows it is the rule
/// under the charts of Go CCMs.
const UID_RETRIES: Backoff = Backoff {
    first: Duration::from_mins(1),
    longest: Duration::from_hours(1),
};

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
    /// What marks this cluster's resources in a cloud. A role, or the namespace, may come later than we do.
    uid: OnceLock<String>,
    named_files: Vec<PathBuf>,
}

impl<'a> CloudBuilder<'a> {
    pub(super) async fn new(registry: &'a Registry, parts: CloudParts<'a>) -> Self {
        let uid = cluster_uid(&parts.client).await.inspect_err(|error| {
            warn!(%error, "the cluster's own UID cannot be read; new cloud resources go without it until it can");
        });
        Self {
            uid: uid.map_or_else(|_| OnceLock::new(), OnceLock::from),
            named_files: files_named_by(&parts.env, &registry.descriptors()),
            registry,
            parts,
        }
    }

    /// Which cluster this is, as far as that is known by now.
    pub(super) fn cluster(&self) -> ClusterIdentity {
        let generic = &self.parts.options.generic;
        ClusterIdentity {
            name: generic.cluster_name.clone(),
            uid: self.uid.get().cloned(),
            pod_cidrs: generic.cluster_cidrs.clone(),
        }
    }

    /// Asks for the cluster's UID until it is known. Clouds are then built anew with it, as after any other
    /// change of their settings.
    async fn learn_uid(&self) {
        for attempt in 1_u32.. {
            if self.uid.get().is_some() {
                return;
            }
            tokio::time::sleep(UID_RETRIES.pause(attempt)).await;
            match cluster_uid(&self.parts.client).await {
                Ok(uid) => {
                    info!(uid, "the cluster's own UID can be read now");
                    self.uid.get_or_init(|| uid);
                }
                Err(error) => debug!(error, "the cluster's own UID still cannot be read"),
            }
        }
    }

    /// Builds every cloud, in every replica, before the election: a replica that could not lead says so
    /// at once.
    pub(super) async fn build_all(&self, setup: &Setup) -> Result<Vec<Reloadable>, RunError> {
        let building = setup.clouds.iter().map(|entry| self.build_audibly(entry));
        let mut failed = Vec::new();
        let mut built = Vec::new();
        for (entry, outcome) in setup.clouds.iter().zip(join_all(building).await) {
            match outcome {
                Ok(done) => built.push((entry, done)),
                Err(error) => failed.push((entry.name.clone(), error)),
            }
        }
        if !failed.is_empty() {
            return Err(RunError::Clouds(failed));
        }
        let mut clouds = Vec::with_capacity(built.len());
        for (entry, built) in built {
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

    /// Builds a cloud, and says so if that takes long: the first answer is waited for.
    async fn build_audibly(&self, entry: &CloudEntry) -> Result<Built, RegistryError> {
        let mut building = self.build(entry);
        if let Ok(built) = tokio::time::timeout(SILENCE, &mut building).await {
            return built;
        }
        let cloud = &entry.name;
        info!(cloud, "the cloud has not answered yet; waiting for it");
        building.await
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
        let (never, ()) = futures::join!(keep_reloading(clouds, parts), self.learn_uid());
        never
    }

    /// The component that a provider's events name: the program that it replaces, because people filter
    /// by it.
    fn event_source(&self, provider: &str) -> &'static str {
        let factory = self.registry.get(provider).ok();
        let replaced = factory.and_then(|factory| factory.descriptor().replaces.first());
        replaced.copied().unwrap_or("cloudkeel")
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
            self.uid.get().is_some() && !self.parts.options.generic.allow_untagged_cloud;
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
            cluster: self.cluster(),
            events: parts.events.sink(self.event_source(&entry.provider)),
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

    fn cluster_uid(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }
}

/// The UID of `kube-system`, which no two clusters share. A role that may not read it costs only the
/// mark on new resources. An API server that is away, or does not know us yet, is waited for: what is made
/// without the mark stays without it, and nothing can be done before it answers anyway.
async fn cluster_uid(client: &Client) -> Result<String, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for look in 0_u64.. {
        let asking = namespaces.get("kube-system");
        let error = match tokio::time::timeout(LOOK_PATIENCE, asking).await {
            Ok(Ok(namespace)) => {
                let nameless = || "namespace kube-system has no UID".to_owned();
                return namespace.metadata.uid.ok_or_else(nameless);
            }
            Ok(Err(error)) if is_refusal(&error) => return Err(Brief(&error).to_string()),
            Ok(Err(error)) => Brief(&error).to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if look.is_multiple_of(LOOKS_PER_WORD) {
            warn!(%error, "the API server does not answer; waiting for it");
        }
        tokio::time::sleep(NEXT_LOOK).await;
    }
    Err("no answer".to_owned())
}

/// Whether the API server has answered that it will not, as opposed to not now. One that does not know who
/// we are would let us do nothing else either.
fn is_refusal(error: &kube::Error) -> bool {
    let is_final = |code: u16| (400..500).contains(&code) && ![401, 408, 429].contains(&code);
    matches!(error, kube::Error::Api(status) if is_final(status.code))
}

#[cfg(test)]
mod tests;
