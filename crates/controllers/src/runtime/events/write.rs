//! Writes Events to the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudkeel_api::{Clock, Event, Severity, Subject};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as KubeEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kube::{Client, Resource as _};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::correlate::{Correlated, Correlator};
use super::{RecentEvents, Reported, Reports, name, namespace, next};
use crate::log_messages::EVENTS_FORBIDDEN;
use crate::runtime::ErrorText;
use crate::runtime::metadata_client::MetadataClient;

/// Writes what is reported until `stop`, and then what is left; a caller that cannot wait for that drops the future.
/// A failure is only logged: an Event is never worth more. A missing permission is logged once as a warning.
pub async fn write_events(
    client: Client,
    reports: Reports,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let client = MetadataClient::new(client);
    let is_denied = AtomicBool::new(false);
    let writers = reports.queues.into_iter().map(|queue| {
        let writer = Writer {
            client: &client,
            clock: clock.as_ref(),
            recent: &reports.recent,
            is_denied: &is_denied,
            correlator: Correlator::default(),
            last_name: 0,
        };
        writer.run(queue, &stop)
    });
    futures::future::join_all(writers).await;
}

/// Writes the Events about some objects, one after the other.
struct Writer<'a> {
    client: &'a MetadataClient,
    clock: &'a dyn Clock,
    /// What is sent, whether the cluster takes it or not.
    recent: &'a RecentEvents,
    /// Whether a missing permission was logged.
    is_denied: &'a AtomicBool,
    correlator: Correlator,
    /// The moment in the name of the last Event.
    last_name: i128,
}

impl Writer<'_> {
    async fn run(mut self, mut queue: mpsc::Receiver<Reported>, stop: &CancellationToken) {
        while let Some(reported) = next(&mut queue, stop).await {
            self.write(&reported).await;
        }
    }

    async fn write(&mut self, reported: &Reported) {
        let now = self.clock.now();
        let result = match self.correlator.classify(reported, now) {
            Correlated::Drop => return,
            Correlated::Create(reported) => {
                self.recent.note(&reported, 1, now);
                self.create(reported, now).await
            }
            Correlated::Repeat {
                reported,
                name,
                count,
            } => {
                self.recent.note(&reported, count, now);
                let patch = json!({"count": count, "lastTimestamp": Time(now)});
                let path = format!("{}/{name}", path_of(&reported.event.subject));
                match self.client.patch(&path, &patch).await.map(drop) {
                    // It has expired.
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        self.correlator.forget(&reported);
                        self.create(reported, now).await
                    }
                    patched => patched,
                }
            }
        };
        let reason = &reported.event.reason;
        match result {
            Ok(()) => {}
            Err(kube::Error::Api(status))
                if status.code == 403 && !self.is_denied.swap(true, Ordering::Relaxed) =>
            {
                let err = ErrorText(status.as_ref());
                warn!(%err, %reason, "{EVENTS_FORBIDDEN}");
            }
            Err(err) => debug!(err = %ErrorText(&err), %reason, "failed to write event"),
        }
    }

    async fn create(&mut self, reported: Reported, now: Timestamp) -> kube::Result<()> {
        let subject = &reported.event.subject;
        let name = next_name(&mut self.last_name, subject, now);
        let event = kube_event(&reported, name.clone(), now);
        self.client.create(&path_of(subject), &event).await?;
        self.correlator.remember(reported, name, now);
        Ok(())
    }
}

/// Names of Events are moments, as upstream's are. No two about an object are the same, also where a clock stands still
/// or is set back: the second would be refused because it exists.
fn next_name(last: &mut i128, subject: &Subject, now: Timestamp) -> String {
    *last = now.as_nanosecond().max(*last + 1);
    format!("{}.{last:x}", name(subject))
}

fn path_of(subject: &Subject) -> String {
    KubeEvent::url_path(&(), Some(namespace(subject)))
}

fn kube_event(reported: &Reported, name: String, now: Timestamp) -> KubeEvent {
    let Reported { source, event } = reported;
    let severity = match event.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    KubeEvent {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace(&event.subject).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: reference(event),
        reason: Some(event.reason.to_string()),
        message: Some(event.message.clone()),
        source: Some(EventSource {
            component: Some((*source).to_owned()),
            host: None,
        }),
        reporting_component: Some((*source).to_owned()),
        type_: Some(severity.to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        ..KubeEvent::default()
    }
}

fn reference(event: &Event) -> ObjectReference {
    let (kind, namespace, uid) = match &event.subject {
        Subject::Node { uid, .. } => ("Node", None, uid),
        Subject::Service(service) => ("Service", Some(service.namespace.clone()), &service.uid),
    };
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace,
        name: Some(name(&event.subject).to_owned()),
        uid: Some(uid.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ServiceRef;

    use super::*;

    #[test]
    fn events_of_nodes_land_in_default_and_those_of_services_beside_them() {
        let node = Subject::Node {
            name: "n".into(),
            uid: "u".into(),
        };
        let service = Subject::Service(ServiceRef {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "s".into(),
        });
        for (subject, kind, place) in [(node, "Node", "default"), (service, "Service", "shop")] {
            let reported = Reported {
                source: "service-controller",
                event: Event::warning(subject, "Why", "because"),
            };
            let now = Timestamp::UNIX_EPOCH;
            let event = kube_event(&reported, "n.0".into(), now);
            assert_eq!(event.involved_object.kind.as_deref(), Some(kind));
            assert_eq!(event.metadata.namespace.as_deref(), Some(place));
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            let source = event.source.unwrap().component;
            assert_eq!(source.as_deref(), Some("service-controller"));
        }
    }

    #[test]
    fn no_two_events_have_the_same_name_though_the_clock_stands_still_or_goes_back() {
        let subject = Subject::Node {
            name: "n".into(),
            uid: "u".into(),
        };
        let mut last = 0;
        let at = |nanosecond| Timestamp::from_nanosecond(nanosecond).unwrap();
        let named =
            [0x20, 0x20, 0x10, 0x30].map(|moment| next_name(&mut last, &subject, at(moment)));
        assert_eq!(named, ["n.20", "n.21", "n.22", "n.30"]);
    }
}
