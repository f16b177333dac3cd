//! Reloads settings and credentials while the program runs.
//!
//! The reloader checks files and Secrets periodically. When they have changed, it builds a new provider beside the
//! current one and tests it with one cheap read. Only then does it replace the current one. If anything fails, the
//! current one stays in use.

mod report;
mod secrets;
mod sources;
#[cfg(test)]
mod tests;
mod trial;
mod unavailable;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, RegistryError};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{Backoff, restart_after_panics};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::info;

use crate::config::{CloudEntry, Setup};
use crate::metrics::ReloadMetrics;
pub(crate) use report::{KubeReloadReporter, ReloadOutcome, ReloadReporter};
pub(crate) use secrets::ClusterSecrets;
pub(crate) use sources::files_named_by;
use sources::{SourceHashes, sources};
pub(crate) use trial::{Failed, contained};
use trial::{attempt, close_when_idle, warn_if_scope_changed};

/// The backoff for settings that were rejected: the cause may be on the cloud's side.
const RETRY_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(30),
    longest: Duration::from_mins(5),
};

/// A new provider, and the Secrets that it was built from.
pub(crate) struct Built {
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) secrets: Arc<ClusterSecrets>,
}

/// Builds providers.
#[async_trait]
pub(crate) trait Build: Send + Sync {
    async fn build(&self, entry: &CloudEntry) -> Result<Built, RegistryError>;

    /// The files that the environment names.
    fn named_files(&self) -> &[PathBuf];

    /// The files that the settings of a cloud name, as far as that is known before it is built.
    fn files_of(&self, entry: &CloudEntry) -> Vec<PathBuf>;

    /// Reads Secrets.
    fn secrets(&self) -> Arc<ClusterSecrets>;

    /// The cluster UID that providers are built with.
    fn cluster_uid(&self) -> Option<&str>;
}

/// A cloud, and what it was built from; or what it could not be built from yet.
pub(crate) struct Reloadable {
    pub(crate) cloud: Arc<Cloud>,
    secrets: Arc<ClusterSecrets>,
    in_use: Settings,
    rejected: Option<Rejected>,
}

/// What a provider is built from.
#[derive(Clone, PartialEq)]
struct Settings {
    entry: CloudEntry,
    hashes: SourceHashes,
    cluster_uid: Option<String>,
}

/// Settings that do not work.
struct Rejected {
    settings: Option<Settings>,
    why: String,
    times: u32,
    retry_at: Instant,
}

impl Reloadable {
    /// A cloud that was just built.
    pub(crate) async fn new(
        cloud: Arc<Cloud>,
        entry: CloudEntry,
        built: &Built,
        build: &dyn Build,
    ) -> Self {
        let sources = sources(built.provider.as_ref(), &built.secrets, build.named_files());
        let hashes = SourceHashes::read(&sources, &built.secrets, &SourceHashes::default()).await;
        Self {
            cloud,
            secrets: Arc::clone(&built.secrets),
            in_use: Settings {
                entry,
                hashes,
                cluster_uid: build.cluster_uid().map(str::to_owned),
            },
            rejected: None,
        }
    }
}

/// What the settings of clouds are reloaded with.
pub(crate) struct ReloadParts<'a> {
    pub(crate) build: &'a dyn Build,
    /// Reads the file of `--cloud-config` again.
    pub(crate) load: &'a (dyn Fn() -> Result<Setup, String> + Send + Sync),
    pub(crate) report: &'a dyn ReloadReporter,
    pub(crate) metrics: &'a ReloadMetrics,
    /// How often to check; zero disables it.
    pub(crate) period: Duration,
}

/// Checks for new settings for as long as it is polled.
pub(crate) async fn keep_reloading(
    mut clouds: Vec<Reloadable>,
    parts: ReloadParts<'_>,
) -> Infallible {
    let known: Vec<_> = clouds.iter().map(|it| it.in_use.entry.clone()).collect();
    let clouds = clouds.iter_mut().enumerate();
    // Side by side: a cloud that does not answer keeps none of the others from its new credential.
    let kept = clouds.map(|(place, cloud)| {
        let (cloud, parts, known) = (Mutex::new(cloud), &parts, &known);
        async move {
            // A panic keeps the provider in use, and no other cloud from its new credential.
            let keep = || async { parts.keep(&mut **cloud.lock().await, place, known).await };
            restart_after_panics("reload", |_| (), keep).await;
        }
    });
    futures::future::join_all(kept).await;
    std::future::pending().await
}

impl ReloadParts<'_> {
    /// Waits until a cloud is available, and then checks it periodically.
    async fn keep(&self, cloud: &mut Reloadable, place: usize, known: &[CloudEntry]) {
        self.recover(cloud, place, known).await;
        self.metrics.current(&cloud.cloud.name);
        while !self.period.is_zero() {
            tokio::time::sleep(self.period).await;
            self.check(cloud, place, known).await;
        }
    }

    /// Checks once, and reloads what has changed.
    async fn check(&self, cloud: &mut Reloadable, place: usize, known: &[CloudEntry]) {
        match self.entry(place, known) {
            Ok(entry) => self.check_cloud(cloud, entry).await,
            Err(why) => self.reject(cloud, None, why).await,
        }
    }

    /// What the configuration says about a cloud now.
    fn entry(&self, place: usize, known: &[CloudEntry]) -> Result<CloudEntry, String> {
        let setup = (self.load)()?;
        check_same_clouds(known.iter(), &setup.clouds)?;
        let entry = setup.clouds.into_iter().nth(place);
        entry.ok_or_else(|| "the cloud is not in the configuration any more".to_owned())
    }

    async fn check_cloud(&self, cloud: &mut Reloadable, entry: CloudEntry) {
        let sources = sources(
            cloud.cloud.provider().as_ref(),
            &cloud.secrets,
            self.build.named_files(),
        );
        let before = &cloud.in_use.hashes;
        let hashes = SourceHashes::read(&sources, &cloud.secrets, before).await;
        let settings = Settings {
            entry,
            hashes,
            cluster_uid: self.build.cluster_uid().map(str::to_owned),
        };
        if settings == cloud.in_use {
            if cloud.rejected.take().is_some() {
                info!(
                    cloud = cloud.cloud.name,
                    "cloud settings are back to those in use"
                );
                self.metrics.current(&cloud.cloud.name);
            }
            return;
        }
        let known = cloud.rejected.as_ref();
        let is_known = known.is_some_and(|known| known.settings.as_ref() == Some(&settings));
        if is_known && known.is_some_and(|known| Instant::now() < known.retry_at) {
            return;
        }
        match attempt(self.build, &settings.entry).await {
            Ok((built, scope)) => {
                warn_if_scope_changed(&cloud.cloud, &scope);
                self.take(cloud, settings, built).await;
            }
            Err(failed) => self.reject(cloud, Some(settings), failed.why).await,
        }
    }

    async fn take(&self, cloud: &mut Reloadable, settings: Settings, built: Built) {
        self.replace(cloud, settings, built).await;
        self.metrics.applied(&cloud.cloud.name);
        self.report
            .report(&cloud.cloud.name, &ReloadOutcome::Applied)
            .await;
    }

    /// Uses the new provider from now on.
    async fn replace(&self, cloud: &mut Reloadable, settings: Settings, built: Built) {
        let Settings {
            entry,
            hashes,
            cluster_uid,
        } = settings;
        let sources = sources(
            built.provider.as_ref(),
            &built.secrets,
            self.build.named_files(),
        );
        // The content read before the build counts: a later change is found by the next check.
        let now = SourceHashes::read(&sources, &built.secrets, &hashes).await;
        let hashes = hashes.or(now).only(&sources);
        cloud.in_use = Settings {
            entry,
            hashes,
            cluster_uid,
        };
        cloud.rejected = None;
        cloud.secrets = built.secrets;
        close_when_idle(cloud.cloud.cell.replace(built.provider));
    }

    /// Keeps the current settings, and reports each cause once.
    async fn reject(&self, cloud: &mut Reloadable, settings: Option<Settings>, why: String) {
        let before = cloud.rejected.take();
        let is_new = before.as_ref().is_none_or(|before| before.why != why);
        let same = before.filter(|before| before.settings == settings);
        let times = same.map_or(0, |same| same.times).saturating_add(1);
        cloud.rejected = Some(Rejected {
            settings,
            why: why.clone(),
            times,
            retry_at: Instant::now() + RETRY_BACKOFF.pause(times),
        });
        if is_new {
            self.metrics.rejected(&cloud.cloud.name);
            let outcome = ReloadOutcome::Rejected { why };
            self.report.report(&cloud.cloud.name, &outcome).await;
        }
    }
}

/// Only the settings of a cloud can change while it is in use; the list of clouds, and which Nodes and Services
/// belong to them, cannot.
fn check_same_clouds<'a>(
    before: impl Iterator<Item = &'a CloudEntry>,
    now: &[CloudEntry],
) -> Result<(), String> {
    let fixed = |entry: &CloudEntry| CloudEntry {
        config: cloudkeel_api::ConfigSource::None,
        ..entry.clone()
    };
    let before: Vec<_> = before.map(fixed).collect();
    let now: Vec<_> = now.iter().map(fixed).collect();
    if before == now {
        return Ok(());
    }
    Err("which clouds there are, their providers, `nodes` and `loadBalancers` can only change with a \
         restart"
        .to_owned())
}
