//! Settings and credentials that change while the program runs.
//!
//! Files and Secrets are looked at again and again. When something in them has changed, a new provider is
//! built beside the old one and has to prove itself with one cheap read. Only then it takes over. Whatever
//! fails, the old one goes on.

mod attempt;
mod contents;
mod secrets;
mod tell;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, RegistryError};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::Backoff;
use tokio::time::Instant;
use tracing::info;

use crate::config::{CloudEntry, Setup};
use crate::metrics::ReloadMetrics;
use attempt::{attempt, retire, tell_scope};
pub(crate) use contents::files_named_by;
use contents::{Contents, places};
pub(crate) use secrets::ClusterSecrets;
pub(crate) use tell::{KubeTell, News, Tell};

/// Pauses between attempts with settings that were refused: what is missing may be on the cloud's side.
const AGAIN: Backoff = Backoff {
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

    /// The cluster's UID that providers are built with.
    fn cluster_uid(&self) -> Option<&str>;
}

/// A cloud, and what it was built from.
pub(crate) struct Reloadable {
    pub(crate) cloud: Arc<Cloud>,
    secrets: Arc<ClusterSecrets>,
    in_use: Settings,
    refused: Option<Refused>,
}

/// What a provider is built from.
#[derive(Clone, PartialEq)]
struct Settings {
    entry: CloudEntry,
    contents: Contents,
    cluster_uid: Option<String>,
}

/// Settings that were of no use.
struct Refused {
    settings: Option<Settings>,
    why: String,
    times: u32,
    again: Instant,
}

impl Reloadable {
    /// A cloud that was just built.
    pub(crate) async fn new(
        cloud: Arc<Cloud>,
        entry: CloudEntry,
        built: &Built,
        build: &dyn Build,
    ) -> Self {
        let places = places(built.provider.as_ref(), &built.secrets, build.named_files());
        let contents = Contents::read(&places, &built.secrets, &Contents::default()).await;
        Self {
            cloud,
            secrets: Arc::clone(&built.secrets),
            in_use: Settings {
                entry,
                contents,
                cluster_uid: build.cluster_uid().map(str::to_owned),
            },
            refused: None,
        }
    }
}

/// What the settings of clouds are reloaded with.
pub(crate) struct ReloadParts<'a> {
    pub(crate) build: &'a dyn Build,
    /// Reads the file of `--cloud-config` again.
    pub(crate) load: &'a (dyn Fn() -> Result<Setup, String> + Send + Sync),
    pub(crate) tell: &'a dyn Tell,
    pub(crate) metrics: &'a ReloadMetrics,
    /// How often to look; zero for never.
    pub(crate) period: Duration,
}

/// Looks for new settings for as long as it is polled.
pub(crate) async fn keep_reloading(
    mut clouds: Vec<Reloadable>,
    parts: ReloadParts<'_>,
) -> Infallible {
    for cloud in &clouds {
        parts.metrics.current(&cloud.cloud.name);
    }
    loop {
        if parts.period.is_zero() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(parts.period).await;
        parts.look(&mut clouds).await;
    }
}

impl ReloadParts<'_> {
    /// Looks once, and reloads what has changed.
    async fn look(&self, clouds: &mut [Reloadable]) {
        let loaded = (self.load)().and_then(|setup| {
            let entries = clouds.iter().map(|cloud| &cloud.in_use.entry);
            check_same_clouds(entries, &setup.clouds)?;
            Ok(setup.clouds)
        });
        match loaded {
            Ok(entries) => {
                for (cloud, entry) in clouds.iter_mut().zip(entries) {
                    self.look_at(cloud, entry).await;
                }
            }
            Err(why) => {
                for cloud in clouds {
                    self.refuse(cloud, None, why.clone()).await;
                }
            }
        }
    }

    async fn look_at(&self, cloud: &mut Reloadable, entry: CloudEntry) {
        let places = places(
            cloud.cloud.provider().as_ref(),
            &cloud.secrets,
            self.build.named_files(),
        );
        let before = &cloud.in_use.contents;
        let contents = Contents::read(&places, &cloud.secrets, before).await;
        let settings = Settings {
            entry,
            contents,
            cluster_uid: self.build.cluster_uid().map(str::to_owned),
        };
        if settings == cloud.in_use {
            if cloud.refused.take().is_some() {
                info!(
                    cloud = cloud.cloud.name,
                    "the settings are again those in use"
                );
                self.metrics.current(&cloud.cloud.name);
            }
            return;
        }
        let known = cloud.refused.as_ref();
        let is_known = known.is_some_and(|known| known.settings.as_ref() == Some(&settings));
        if is_known && known.is_some_and(|known| Instant::now() < known.again) {
            return;
        }
        match attempt(self.build, &settings.entry).await {
            Ok((built, scope)) => {
                tell_scope(&cloud.cloud, &scope);
                self.take(cloud, settings, built).await;
            }
            Err(why) => self.refuse(cloud, Some(settings), why).await,
        }
    }

    async fn take(&self, cloud: &mut Reloadable, settings: Settings, built: Built) {
        let Settings {
            entry,
            contents,
            cluster_uid,
        } = settings;
        let places = places(
            built.provider.as_ref(),
            &built.secrets,
            self.build.named_files(),
        );
        // What was looked at before the build counts: a change since then is found by the next look.
        let now = Contents::read(&places, &built.secrets, &contents).await;
        let contents = contents.or(now).only(&places);
        cloud.in_use = Settings {
            entry,
            contents,
            cluster_uid,
        };
        cloud.refused = None;
        cloud.secrets = built.secrets;
        retire(cloud.cloud.cell.replace(built.provider));
        self.metrics.taken(&cloud.cloud.name);
        self.tell.tell(&cloud.cloud.name, &News::Taken).await;
    }

    /// Keeps the old settings, and says so once per cause.
    async fn refuse(&self, cloud: &mut Reloadable, settings: Option<Settings>, why: String) {
        let before = cloud.refused.take();
        let is_new = before.as_ref().is_none_or(|before| before.why != why);
        let same = before.filter(|before| before.settings == settings);
        let times = same.map_or(0, |same| same.times).saturating_add(1);
        cloud.refused = Some(Refused {
            settings,
            why: why.clone(),
            times,
            again: Instant::now() + AGAIN.pause(times),
        });
        if is_new {
            self.metrics.refused(&cloud.cloud.name);
            let news = News::Refused { why };
            self.tell.tell(&cloud.cloud.name, &news).await;
        }
    }
}

/// Only the settings of a cloud can change while it is in use; which clouds there are, and what is theirs,
/// cannot.
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
