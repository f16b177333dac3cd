//! Builds the configured clouds, at startup and whenever their settings change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cloudkeel_api::{
    Clock, CloudProvider, ClusterIdentity, ProviderContext, ProviderInput, Registry, RegistryError,
};
use cloudkeel_controllers::clouds::{Availability, Cloud};
use cloudkeel_controllers::runtime::{Backoff, ErrorText, EventRecorder};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tracing::{debug, info, warn};

use super::manager::RunError;
use crate::config::{CloudEntry, Setup};
use crate::dry_run::{DryRunProvider, Recorder};
use crate::log_messages::{
    API_SERVER_UNAVAILABLE, CLOUD_BUILT, CLOUD_SLOW, CLUSTER_UID_UNAVAILABLE, NO_CLUSTER_ID,
};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::reload::{
    Build, Built, ClusterSecrets, Failed, KubeReloadReporter, ReloadParts, Reloadable, contained,
    files_named_by, keep_reloading,
};
use crate::unavailable::UnavailableProvider;

/// The pause between two requests while the API server is unavailable.
const API_SERVER_POLL_PERIOD: Duration = Duration::from_secs(1);
/// The first failure is logged, and then about two a minute.
const POLLS_PER_WARNING: u64 = 30;
/// The timeout of one such request.
const API_SERVER_POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// A cloud that takes longer than this to build is logged.
const SLOW_BUILD_NOTICE_AFTER: Duration = Duration::from_secs(2);
/// How long the start waits for a cloud. It is retried later, while the others work.
const FIRST_BUILD_TIMEOUT: Duration = Duration::from_secs(10);
/// Retries of the cluster UID if it could not be read at startup. The roles in the charts of Go CCMs never allow it.
const UID_RETRIES: Backoff = Backoff {
    first: Duration::from_mins(1),
    longest: Duration::from_hours(1),
};

/// What all clouds are built with.
pub(crate) struct CloudParts<'a> {
    pub(crate) options: &'a Options,
    pub(crate) client: Client,
    pub(crate) metrics: &'a Metrics,
    pub(crate) events: &'a EventRecorder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) env: BTreeMap<String, String>,
    /// In a dry run: where changes are recorded instead of made.
    pub(crate) recorder: Option<Arc<Recorder>>,
}

/// Builds providers, at startup and on reload in the same way.
pub(crate) struct CloudBuilder<'a> {
    registry: &'a Registry,
    parts: CloudParts<'a>,
    /// The UID that labels this cluster's cloud resources. The role or the namespace may be created after we start.
    uid: OnceLock<String>,
    named_files: Vec<PathBuf>,
}

impl<'a> CloudBuilder<'a> {
    pub(super) async fn new(registry: &'a Registry, parts: CloudParts<'a>) -> Self {
        let uid = cluster_uid(&parts.client).await.inspect_err(|error| {
            warn!(err = %error, "{CLUSTER_UID_UNAVAILABLE}");
        });
        Self {
            uid: uid.map_or_else(|_| OnceLock::new(), OnceLock::from),
            named_files: files_named_by(&parts.env, &registry.descriptors()),
            registry,
            parts,
        }
    }

    /// For a program that only reads, where the UID was read already or cannot be.
    pub(crate) fn with_uid(
        registry: &'a Registry,
        parts: CloudParts<'a>,
        uid: Option<String>,
    ) -> Self {
        Self {
            uid: uid.map_or_else(OnceLock::new, OnceLock::from),
            named_files: Vec::new(),
            registry,
            parts,
        }
    }

    /// One cloud, which is not reloaded.
    pub(crate) async fn build_cloud(
        &self,
        entry: &CloudEntry,
    ) -> Result<Arc<Cloud>, RegistryError> {
        let built = self.build(entry).await?;
        Ok(self.cloud_of(entry, built.provider, Arc::default()))
    }

    /// The identity of this cluster, as far as it is known.
    pub(super) fn cluster(&self) -> ClusterIdentity {
        let generic = &self.parts.options.generic;
        ClusterIdentity {
            name: generic.cluster_name.clone(),
            uid: self.uid.get().cloned(),
            pod_cidrs: generic.cluster_cidrs.clone(),
        }
    }

    /// Retries reading the cluster UID until it is known. Clouds are then rebuilt with it, as after any other change
    /// of their settings.
    async fn retry_cluster_uid(&self) {
        for attempt in 1_u32.. {
            if self.uid.get().is_some() {
                return;
            }
            tokio::time::sleep(UID_RETRIES.pause(attempt)).await;
            match cluster_uid(&self.parts.client).await {
                Ok(uid) => {
                    info!(uid, "got the cluster UID");
                    self.uid.get_or_init(|| uid);
                }
                Err(error) => debug!(err = error, "failed to get the cluster UID"),
            }
        }
    }

    /// Builds every cloud, in every replica, before the election: a replica whose settings are wrong fails at once. A
    /// cloud that does not answer, or rejects the credential, stops none of the others: it is retried later.
    pub(super) async fn build_all(&self, setup: &Setup) -> Result<Vec<Reloadable>, RunError> {
        let building = setup.clouds.iter().map(|entry| {
            let building = self.build_with_notice(entry);
            contained(building, FIRST_BUILD_TIMEOUT)
        });
        let outcomes = join_all(building).await;
        let outcomes: Vec<_> = setup.clouds.iter().zip(outcomes).collect();
        let wrong = outcomes.iter().filter_map(|(entry, outcome)| {
            let failed = outcome.as_ref().err().filter(|failed| failed.is_final)?;
            Some((entry.name.clone(), failed.why.clone()))
        });
        let wrong: Vec<_> = wrong.collect();
        if !wrong.is_empty() {
            return Err(RunError::Clouds(wrong));
        }
        let mut clouds = Vec::with_capacity(outcomes.len());
        for (entry, outcome) in outcomes {
            clouds.push(match outcome {
                Ok(built) => self.built(entry, &built).await,
                Err(failed) => self.unavailable(entry, failed).await?,
            });
        }
        Ok(clouds)
    }

    fn cloud_of(
        &self,
        entry: &CloudEntry,
        provider: Arc<dyn CloudProvider>,
        availability: Arc<Availability>,
    ) -> Arc<Cloud> {
        let nodes = (entry.nodes.selector.clone(), entry.nodes.matchers.clone());
        let clock = Arc::clone(&self.parts.clock);
        Cloud::configured(&entry.name, provider, nodes, clock, availability)
    }

    async fn built(&self, entry: &CloudEntry, built: &Built) -> Reloadable {
        self.log_built(entry, built.provider.as_ref());
        let cloud = self.cloud_of(entry, Arc::clone(&built.provider), Arc::default());
        Reloadable::new(cloud, entry.clone(), built, self).await
    }

    /// A cloud that could not be built, and what stands in for it.
    async fn unavailable(
        &self,
        entry: &CloudEntry,
        failed: Failed,
    ) -> Result<Reloadable, RunError> {
        let factory = self.registry.get(&entry.provider);
        let factory = factory
            .map_err(|error| RunError::Clouds(vec![(entry.name.clone(), error.to_string())]))?;
        let availability = Arc::new(Availability::default());
        availability.failed(self.parts.clock.now(), failed.kind, failed.why);
        let stand_in = UnavailableProvider::new(Arc::clone(factory), Arc::clone(&availability));
        let cloud = self.cloud_of(entry, Arc::new(stand_in), availability);
        Ok(Reloadable::unavailable(cloud, entry.clone(), self).await)
    }

    /// Builds a cloud, and logs it if that takes long.
    async fn build_with_notice(&self, entry: &CloudEntry) -> Result<Built, Failed> {
        let mut building = self.build(entry);
        if let Ok(built) = tokio::time::timeout(SLOW_BUILD_NOTICE_AFTER, &mut building).await {
            return Ok(built?);
        }
        let cloud = &entry.name;
        info!(cloud, "{CLOUD_SLOW}");
        Ok(building.await?)
    }

    fn input(&self, entry: &CloudEntry) -> ProviderInput {
        ProviderInput {
            config: entry.config.clone(),
            env: self.parts.env.clone(),
            flags: self.parts.options.provider_flags.clone(),
        }
    }

    /// Reloads the clouds' settings for as long as it is polled.
    pub(super) async fn keep_current(
        &self,
        clouds: Vec<Reloadable>,
        options: &Options,
        load: &(dyn Fn() -> Result<Setup, String> + Send + Sync),
    ) -> Infallible {
        let clock = Arc::clone(&self.parts.clock);
        let recent = Arc::clone(self.parts.events.recent());
        let reporter =
            KubeReloadReporter::new(self.parts.client.clone(), &options.election, clock, recent);
        let parts = ReloadParts {
            build: self,
            load,
            report: &reporter,
            metrics: &self.parts.metrics.reloads,
            period: options.generic.cloud_reload_period,
        };
        let (never, ()) = futures::join!(keep_reloading(clouds, parts), self.retry_cluster_uid());
        never
    }

    /// The component that a provider's events name: the program that it replaces, because people filter by it.
    fn event_source(&self, provider: &str) -> &'static str {
        let factory = self.registry.get(provider).ok();
        let replaced = factory.and_then(|factory| factory.descriptor().replaces.first());
        replaced.copied().unwrap_or("cloudkeel")
    }

    fn log_built(&self, entry: &CloudEntry, provider: &dyn CloudProvider) {
        let capabilities: Vec<_> = provider.capabilities().iter().map(|c| c.as_str()).collect();
        info!(
            cloud = entry.name,
            provider = entry.provider,
            ?capabilities,
            "{CLOUD_BUILT}"
        );
        // Without the cluster UID there is no ClusterID, and that was logged already.
        let should_have_mark =
            self.uid.get().is_some() && !self.parts.options.generic.allow_untagged_cloud;
        if should_have_mark && !provider.has_cluster_id() {
            warn!(cloud = entry.name, "{NO_CLUSTER_ID}");
        }
    }
}

#[async_trait::async_trait]
impl Build for CloudBuilder<'_> {
    async fn build(&self, entry: &CloudEntry) -> Result<Built, RegistryError> {
        let parts = &self.parts;
        let secrets = Arc::new(ClusterSecrets::new(parts.client.clone()));
        let input = self.input(entry);
        let observer = parts.metrics.clouds.observer(&entry.name);
        let observer = match &parts.recorder {
            Some(recorder) => recorder.observer(&entry.name, observer),
            None => observer,
        };
        let context = ProviderContext {
            cloud: entry.name.clone(),
            cluster: self.cluster(),
            events: parts.events.sink(self.event_source(&entry.provider)),
            observer,
            clock: Arc::clone(&parts.clock),
            secrets: Arc::<ClusterSecrets>::clone(&secrets),
        };
        let provider = self.registry.build(&entry.provider, input, context).await?;
        let provider = match &parts.recorder {
            Some(recorder) => dry_run(&entry.name, provider, recorder),
            None => provider,
        };
        Ok(Built { provider, secrets })
    }

    fn named_files(&self) -> &[PathBuf] {
        &self.named_files
    }

    fn files_of(&self, entry: &CloudEntry) -> Vec<PathBuf> {
        let factory = self.registry.get(&entry.provider);
        factory.map_or_else(|_| Vec::new(), |factory| factory.files(&self.input(entry)))
    }

    fn secrets(&self) -> Arc<ClusterSecrets> {
        Arc::new(ClusterSecrets::new(self.parts.client.clone()))
    }

    fn cluster_uid(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }
}

fn dry_run(
    cloud: &str,
    provider: Arc<dyn CloudProvider>,
    recorder: &Arc<Recorder>,
) -> Arc<dyn CloudProvider> {
    let recorder = Arc::clone(recorder);
    Arc::new(DryRunProvider::new(cloud.to_owned(), provider, recorder))
}

/// The UID of `kube-system`, which is unique per cluster. If the role does not allow reading it, new resources go
/// without the label. An API server that is down, or does not accept our credentials yet, is waited for: resources
/// created without the label never get it, and nothing else works before it answers.
async fn cluster_uid(client: &Client) -> Result<String, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for poll in 0_u64.. {
        let asking = namespaces.get("kube-system");
        let error = match tokio::time::timeout(API_SERVER_POLL_TIMEOUT, asking).await {
            Ok(Ok(namespace)) => {
                let nameless = || "namespace kube-system has no UID".to_owned();
                return namespace.metadata.uid.ok_or_else(nameless);
            }
            Ok(Err(error)) if is_refusal(&error) => return Err(ErrorText(&error).to_string()),
            Ok(Err(error)) => ErrorText(&error).to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if poll.is_multiple_of(POLLS_PER_WARNING) {
            warn!(err = %error, "{API_SERVER_UNAVAILABLE}");
        }
        tokio::time::sleep(API_SERVER_POLL_PERIOD).await;
    }
    Err("no answer".to_owned())
}

/// Whether the API server has refused for good. Without valid credentials (401) nothing else would work either, so
/// that is waited for.
fn is_refusal(error: &kube::Error) -> bool {
    let is_final = |code: u16| (400..500).contains(&code) && ![401, 408, 429].contains(&code);
    matches!(error, kube::Error::Api(status) if is_final(status.code))
}

#[cfg(test)]
mod tests;
