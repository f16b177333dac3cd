//! Tells people what became of new settings, where they look: in the log, and as an Event on the Lease.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Clock;
use cloudkeel_controllers::runtime::Brief;
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
}

impl KubeTell {
    /// Events on this Lease, which people know, and which is there in every cluster that elects.
    pub(crate) fn new(client: Client, election: &ElectionOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            namespace: election.namespace.clone(),
            lease: election.name.clone(),
            clock,
        }
    }

    async fn write(&self, cloud: &str, news: &News) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let lease = leases.get_opt(&self.lease).await.ok().flatten();
        let uid = lease.and_then(|lease| lease.metadata.uid);
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let event = self.event(cloud, news, uid);
        events.create(&PostParams::default(), &event).await?;
        Ok(())
    }

    fn event(&self, cloud: &str, news: &News, uid: Option<String>) -> Event {
        let now = self.clock.now();
        let (severity, reason, message) = match news {
            News::Taken => (
                "Normal",
                "CloudSettingsReloaded",
                format!("Cloud {cloud} works with its new settings"),
            ),
            News::Refused { why } => (
                "Warning",
                "CloudSettingsRefused",
                format!("Cloud {cloud} goes on with its old settings: {why}"),
            ),
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
            reason: Some(reason.to_owned()),
            message: Some(shortened(message)),
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
        match tokio::time::timeout(PATIENCE, self.write(cloud, news)).await {
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
}
