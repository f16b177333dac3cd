//! Reports the outcome of a reload in the log, and as an Event on the Lease.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, Severity};
use cloudkeel_controllers::runtime::{ErrorText, RecentEvent, RecentEvents};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;
use kube::{Api, Client};
use tracing::{debug, error, info};

use crate::log_messages::{
    CLOUD_AVAILABLE, CLOUD_UNAVAILABLE, SETTINGS_REJECTED, SETTINGS_RELOADED,
};
use crate::options::ElectionOptions;

/// The outcome of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReloadOutcome {
    Applied,
    Rejected {
        why: String,
    },
    /// The cloud could not be built since the start.
    Unavailable {
        why: String,
    },
    /// It could, at last.
    Available,
}

/// Reports the outcome of a reload.
#[async_trait]
pub(crate) trait ReloadReporter: Send + Sync {
    async fn report(&self, cloud: &str, outcome: &ReloadOutcome);
}

/// An Event is not worth a longer wait.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);
const COMPONENT: &str = "cloudkeel";

/// Reports in the log and as an Event.
pub(crate) struct KubeReloadReporter {
    client: Client,
    namespace: String,
    lease: String,
    clock: Arc<dyn Clock>,
    recent: Arc<RecentEvents>,
}

impl KubeReloadReporter {
    /// Creates Events on this Lease, which exists in every cluster with leader election.
    pub(crate) fn new(
        client: Client,
        election: &ElectionOptions,
        clock: Arc<dyn Clock>,
        recent: Arc<RecentEvents>,
    ) -> Self {
        Self {
            client,
            namespace: election.namespace.clone(),
            lease: election.name.clone(),
            clock,
            recent,
        }
    }

    async fn write(&self, event: &ReloadEvent, now: Timestamp) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let lease = leases.get_opt(&self.lease).await.ok().flatten();
        let uid = lease.and_then(|lease| lease.metadata.uid);
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let event = self.event(event, now, uid);
        events.create(&PostParams::default(), &event).await?;
        Ok(())
    }

    fn event(&self, event: &ReloadEvent, now: Timestamp, uid: Option<String>) -> Event {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", self.lease, now.as_nanosecond())),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                name: Some(self.lease.clone()),
                namespace: Some(self.namespace.clone()),
                uid,
                ..ObjectReference::default()
            },
            type_: Some(severity.to_owned()),
            reason: Some(event.reason.to_owned()),
            message: Some(event.message.clone()),
            source: Some(EventSource {
                component: Some(COMPONENT.to_owned()),
                host: None,
            }),
            reporting_component: Some(COMPONENT.to_owned()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        }
    }
}

/// The outcome as an Event.
struct ReloadEvent {
    severity: Severity,
    reason: &'static str,
    message: String,
}

impl ReloadEvent {
    fn of(cloud: &str, outcome: &ReloadOutcome) -> Self {
        match outcome {
            ReloadOutcome::Applied => Self {
                severity: Severity::Normal,
                reason: "CloudSettingsReloaded",
                message: format!("Cloud {cloud} uses its new settings"),
            },
            ReloadOutcome::Unavailable { why } => Self {
                severity: Severity::Warning,
                reason: "CloudUnavailable",
                message: shortened(format!(
                    "Cloud {cloud} is unavailable since the start, and is retried: {why}"
                )),
            },
            ReloadOutcome::Available => Self {
                severity: Severity::Normal,
                reason: "CloudAvailable",
                message: format!("Cloud {cloud} is available"),
            },
            ReloadOutcome::Rejected { why } => Self {
                severity: Severity::Warning,
                reason: "CloudSettingsRefused",
                message: shortened(format!(
                    "Cloud {cloud} keeps its current settings, because the new ones do not work: {why}"
                )),
            },
        }
    }
}

/// The API server accepts no longer message.
fn shortened(message: String) -> String {
    const LONGEST: usize = 1024;
    if message.len() <= LONGEST {
        return message;
    }
    let end = message.floor_char_boundary(LONGEST - 3);
    let (kept, _) = message.split_at(end);
    format!("{kept}...")
}

#[async_trait]
impl ReloadReporter for KubeReloadReporter {
    async fn report(&self, cloud: &str, outcome: &ReloadOutcome) {
        match outcome {
            ReloadOutcome::Applied => info!(cloud, "{SETTINGS_RELOADED}"),
            ReloadOutcome::Rejected { why: err } => {
                error!(cloud, err, "{SETTINGS_REJECTED}");
            }
            ReloadOutcome::Unavailable { why: err } => {
                error!(cloud, err, "{CLOUD_UNAVAILABLE}");
            }
            ReloadOutcome::Available => info!(cloud, "{CLOUD_AVAILABLE}"),
        }
        let (event, now) = (ReloadEvent::of(cloud, outcome), self.clock.now());
        self.recent.record(RecentEvent {
            id: 0,
            at: now,
            source: COMPONENT,
            severity: event.severity,
            reason: event.reason.to_owned(),
            object: format!("Lease/{}", self.lease),
            message: event.message.clone(),
            count: 1,
        });
        match tokio::time::timeout(EVENT_TIMEOUT, self.write(&event, now)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(err = %ErrorText(&error), "failed to record event"),
            Err(_) => debug!("failed to record event in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cause_is_cut_between_characters() {
        let long = shortened("ü".repeat(1000));
        assert!(long.len() <= 1024 && long.ends_with("ü..."), "{long}");
        assert_eq!(shortened("short".to_owned()), "short");
    }

    #[tokio::test]
    async fn a_reload_is_among_the_latest_events() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let recent = Arc::<RecentEvents>::default();
        let election = ElectionOptions {
            enabled: true,
            lease_duration: EVENT_TIMEOUT,
            renew_deadline: EVENT_TIMEOUT,
            retry_period: EVENT_TIMEOUT,
            name: "ccm".to_owned(),
            namespace: "kube-system".to_owned(),
            release_on_exit: true,
            migration: false,
            migration_config: None,
        };
        let report = KubeReloadReporter::new(
            Client::try_from(nowhere).unwrap(),
            &election,
            Arc::new(cloudkeel_api::SystemClock),
            Arc::clone(&recent),
        );
        let why = "no such token".to_owned();
        report.report("fsn", &ReloadOutcome::Rejected { why }).await;
        let all = recent.all();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].reason, "CloudSettingsRefused");
        assert!(all[0].message.ends_with("no such token"), "{all:?}");
    }
}
