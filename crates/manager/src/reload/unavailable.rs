//! Clouds that could not be built when the program started: they are tried again until they can.
//!
//! A failure that may pass is retried soon. A credential that the cloud rejects is retried seldom, because some clouds
//! lock an account after a few of them; but at once when its file or the configuration changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Retry};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::Backoff;
use tokio::time::Instant;

use super::sources::{SettingsSource, SourceHashes};
use super::trial::attempt;
use super::{Build, Failed, RETRY_BACKOFF, ReloadOutcome, ReloadParts, Reloadable, Settings};
use crate::config::CloudEntry;

/// The backoff for a cloud that does not answer.
const UNAVAILABLE_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(1),
};

impl Failed {
    /// How long to wait after so many failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        match CloudError::new("connect", self.kind, self.why.clone()).retry() {
            Retry::After(delay) => delay,
            Retry::UserAction => RETRY_BACKOFF.pause(failures),
            Retry::Backoff | Retry::Never => UNAVAILABLE_BACKOFF.pause(failures),
        }
    }
}

impl Reloadable {
    /// A cloud that could not be built.
    pub(crate) async fn unavailable(
        cloud: Arc<Cloud>,
        entry: CloudEntry,
        build: &dyn Build,
    ) -> Self {
        Self {
            cloud,
            secrets: build.secrets(),
            in_use: Settings::unbuilt(entry, build).await,
            rejected: None,
        }
    }
}

impl Settings {
    /// Those of a cloud that is not built, whose Secrets are not known.
    async fn unbuilt(entry: CloudEntry, build: &dyn Build) -> Self {
        let files = build.named_files().iter().cloned();
        let files = files.chain(build.files_of(&entry));
        let sources: BTreeSet<_> = files.map(SettingsSource::File).collect();
        let secrets = build.secrets();
        Self {
            hashes: SourceHashes::read(&sources, &secrets, &SourceHashes::default()).await,
            cluster_uid: build.cluster_uid().map(str::to_owned),
            entry,
        }
    }
}

impl ReloadParts<'_> {
    /// Tries to build a cloud until it succeeds. Returns at once if it is available.
    pub(super) async fn recover(&self, cloud: &mut Reloadable, place: usize, known: &[CloudEntry]) {
        let Some(unavailable) = cloud.cloud.availability.unavailable() else {
            self.metrics.available(&cloud.cloud.name, true);
            return;
        };
        self.metrics.available(&cloud.cloud.name, false);
        let mut failed = Failed {
            kind: unavailable.kind,
            why: unavailable.why,
            is_final: false,
        };
        self.report_unavailable(cloud, &failed).await;
        for failures in 1_u32.. {
            self.wait(cloud, place, known, failed.pause(failures)).await;
            match attempt(self.build, &cloud.in_use.entry).await {
                Ok((built, _)) => {
                    let settings = cloud.in_use.clone();
                    self.replace(cloud, settings, built).await;
                    cloud.cloud.availability.recovered();
                    self.metrics.available(&cloud.cloud.name, true);
                    let outcome = ReloadOutcome::Available;
                    return self.report.report(&cloud.cloud.name, &outcome).await;
                }
                Err(new) => {
                    let now = cloud.cloud.inventory.clock().now();
                    let availability = &cloud.cloud.availability;
                    availability.failed(now, new.kind, new.why.clone());
                    let is_news = new != failed;
                    failed = new;
                    if is_news {
                        self.report_unavailable(cloud, &failed).await;
                    }
                }
            }
        }
    }

    /// Waits for the pause to end, or for the settings to change.
    async fn wait(
        &self,
        cloud: &mut Reloadable,
        place: usize,
        known: &[CloudEntry],
        pause: Duration,
    ) {
        let end = Instant::now() + pause;
        while !self.period.is_zero() && Instant::now() + self.period < end {
            tokio::time::sleep(self.period).await;
            let entry = self.entry(place, known);
            // A file that cannot be read says nothing about this cloud.
            let entry = entry.unwrap_or_else(|_| cloud.in_use.entry.clone());
            let settings = Settings::unbuilt(entry, self.build).await;
            if settings != cloud.in_use {
                cloud.in_use = settings;
                return;
            }
        }
        tokio::time::sleep_until(end).await;
    }

    async fn report_unavailable(&self, cloud: &Reloadable, failed: &Failed) {
        let why = failed.why.clone();
        let outcome = ReloadOutcome::Unavailable { why };
        self.report.report(&cloud.cloud.name, &outcome).await;
    }
}
