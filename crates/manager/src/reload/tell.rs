//! Tells people what became of new settings, where they look: in the log, and as an Event on the Lease.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, Severity};
use cloudkeel_controllers::runtime::{Brief, RecentEvents, Sent};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;
use kube::{Api, Client};
use tracing::{debug, error, info};

use crate::options::ElectionOptions;

/// What became of new settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    Taken,
    Refused { why: String },
}

/// Tells people.
#[async_trait]
pub(crate) trait Tell: Send + Sync {
    async fn tell(&self, cloud: &str, news: &News);
}

/// An Event is not worth a longer wait.
const PATIENCE: Duration = Duration::from_secs(5);
const COMPONENT: &str = "cloudkeel";

/// Tells by log and by Event.
pub(crate) struct KubeTell {
    client: Client,
    namespace: String,
    lease: String,
    clock: Arc<dyn Clock>,
    recent: Arc<RecentEvents>,
}

impl KubeTell {
    /// Events on this Lease, which people know, and which is there in every cluster that elects.
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

    async fn write(&self, told: &Told, now: Timestamp) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let lease = leases.get_opt(&self.lease).await.ok().flatten();
        let uid = lease.and_then(|lease| lease.metadata.uid);
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let event = self.event(told, now, uid);
        events.create(&PostParams::default(), &event).await?;
        Ok(())
    }

    fn event(&self, told: &Told, now: Timestamp, uid: Option<String>) -> Event {
        let severity = match told.severity {
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
            reason: Some(told.reason.to_owned()),
            message: Some(told.message.clone()),
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

/// News as an event has it.
struct Told {
    severity: Severity,
    reason: &'static str,
    message: String,
}

impl Told {
    fn of(cloud: &str, news: &News) -> Self {
        match news {
            News::Taken => Self {
                severity: Severity::Normal,
                reason: "CloudSettingsReloaded",
                message: format!("Cloud {cloud} works with its new settings"),
            },
            News::Refused { why } => Self {
                severity: Severity::Warning,
                reason: "CloudSettingsRefused",
                message: shortened(format!(
                    "Cloud {cloud} goes on with its old settings: {why}"
                )),
            },
        }
    }
}

/// The API server takes no longer message.
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
impl Tell for KubeTell {
    async fn tell(&self, cloud: &str, news: &News) {
        match news {
            News::Taken => info!(cloud, "the cloud works with its new settings"),
            News::Refused { why } => {
                error!(cloud, why, "new settings refused; the old ones stay in use");
            }
        }
        let (told, now) = (Told::of(cloud, news), self.clock.now());
        self.recent.tell(&Sent {
            source: COMPONENT,
            severity: told.severity,
            reason: told.reason,
            object: &format!("Lease/{}", self.lease),
            message: &told.message,
            count: 1,
            at: now,
        });
        match tokio::time::timeout(PATIENCE, self.write(&told, now)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(error = %Brief(&error), "event not written"),
            Err(_) => debug!("event not written in time"),
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
    async fn what_became_of_new_settings_is_among_the_latest_events() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let recent = Arc::<RecentEvents>::default();
        let election = ElectionOptions {
            enabled: true,
            lease_duration: PATIENCE,
            renew_deadline: PATIENCE,
            retry_period: PATIENCE,
            name: "ccm".to_owned(),
            namespace: "kube-system".to_owned(),
            release_on_exit: true,
            migration: false,
            migration_config: None,
        };
        let tell = KubeTell::new(
            Client::try_from(nowhere).unwrap(),
            &election,
            Arc::new(cloudkeel_api::SystemClock),
            Arc::clone(&recent),
        );
        let why = "no such token".to_owned();
        tell.tell("fsn", &News::Refused { why }).await;
        let all = recent.all();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].reason, "CloudSettingsRefused");
        assert!(all[0].message.ends_with("no such token"), "{all:?}");
    }
}
