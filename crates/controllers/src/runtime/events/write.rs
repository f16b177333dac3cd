//! Writes events to the cluster.

use std::sync::Arc;

use cloudkeel_api::{Clock, Event, Severity, Subject};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as KubeEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kube::{Client, Resource as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{Correlated, Correlator, RecentEvents, Reported, Reports};
use crate::runtime::Brief;
use crate::runtime::slim::SlimClient;

/// Writes what is reported until `stop`, one at a time, and then what is left; whoever cannot wait for that drops
/// the future. A failure is only logged: an event is never worth more. A role that does not allow it is told
/// about once.
pub async fn write_events(
    client: Client,
    mut reports: Reports,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let mut writer = Writer {
        client: SlimClient::new(client),
        correlator: Correlator::default(),
        names: Names::default(),
        recent: Arc::clone(&reports.recent),
        denial_told: false,
    };
    while let Some(Some(reported)) = stop.run_until_cancelled(reports.queue.recv()).await {
        writer.write_or_log(&reported, clock.now()).await;
    }
    while let Ok(reported) = reports.queue.try_recv() {
        writer.write_or_log(&reported, clock.now()).await;
    }
}

struct Writer {
    client: SlimClient,
    correlator: Correlator,
    names: Names,
    /// What is sent, whether the cluster takes it or not.
    recent: Arc<RecentEvents>,
    denial_told: bool,
}

impl Writer {
    async fn write_or_log(&mut self, reported: &Reported, now: Timestamp) {
        let reason = &reported.event.reason;
        match self.write(reported, now).await {
            Err(kube::Error::Api(error)) if error.code == 403 && !self.denial_told => {
                self.denial_told = true;
                let error = Brief(error.as_ref());
                warn!(%error, %reason, "events may not be written; some will be missing");
            }
            Err(error) => debug!(error = %Brief(&error), %reason, "event not written"),
            Ok(()) => {}
        }
    }

    async fn write(&mut self, reported: &Reported, now: Timestamp) -> kube::Result<()> {
        let path = KubeEvent::url_path(&(), Some(namespace(&reported.event.subject)));
        let key = match self.correlator.judge(reported, now) {
            Correlated::Drop => return Ok(()),
            Correlated::Create { key } => {
                self.recent.note(reported, key.message(), 1, now);
                key
            }
            Correlated::Repeat { key, name, count } => {
                self.recent.note(reported, key.message(), count, now);
                let patch = json!({"count": count, "lastTimestamp": Time(now)});
                let path = format!("{path}/{name}");
                match self.client.patch(&path, &patch).await {
                    Ok(_) => return Ok(()),
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        self.correlator.forget(&key);
                        key
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let name = self.names.next(&reported.event.subject, now);
        let event = kube_event(reported, name.clone(), key.message().to_owned(), now);
        self.client.create(&path, &event).await?;
        self.correlator.remember(key, name, now);
        Ok(())
    }
}

/// Names of events are moments, as upstream's are. No two are the same, also where a clock stands still or is set
/// back: the second event would be refused as already there.
#[derive(Default)]
struct Names {
    last: i128,
}

impl Names {
    fn next(&mut self, subject: &Subject, now: Timestamp) -> String {
        self.last = now.as_nanosecond().max(self.last + 1);
        let about = match subject {
            Subject::Node { name, .. } => name,
            Subject::Service(service) => &service.name,
        };
        format!("{about}.{:x}", self.last)
    }
}

fn namespace(subject: &Subject) -> &str {
    match subject {
        Subject::Node { .. } => "default",
        Subject::Service(service) => &service.namespace,
    }
}

fn kube_event(reported: &Reported, name: String, message: String, now: Timestamp) -> KubeEvent {
    let Reported { source, event } = reported;
    let (kind, object) = reference(event);
    KubeEvent {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace(&event.subject).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            kind: Some(kind.to_owned()),
            api_version: Some("v1".to_owned()),
            ..object
        },
        reason: Some(event.reason.to_string()),
        message: Some(message),
        source: Some(EventSource {
            component: Some((*source).to_owned()),
            host: None,
        }),
        reporting_component: Some((*source).to_owned()),
        type_: Some(
            match event.severity {
                Severity::Normal => "Normal",
                Severity::Warning => "Warning",
            }
            .to_owned(),
        ),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        ..KubeEvent::default()
    }
}

fn reference(event: &Event) -> (&'static str, ObjectReference) {
    match &event.subject {
        Subject::Node { name, uid } => (
            "Node",
            ObjectReference {
                name: Some(name.clone()),
                uid: Some(uid.clone()),
                ..ObjectReference::default()
            },
        ),
        Subject::Service(service) => (
            "Service",
            ObjectReference {
                name: Some(service.name.clone()),
                namespace: Some(service.namespace.clone()),
                uid: Some(service.uid.clone()),
                ..ObjectReference::default()
            },
        ),
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
            let event = kube_event(&reported, "n.0".into(), "because".into(), now);
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
        let mut names = Names::default();
        let at = |nanosecond| Timestamp::from_nanosecond(nanosecond).unwrap();
        let named = [0x20, 0x20, 0x10, 0x30].map(|moment| names.next(&subject, at(moment)));
        assert_eq!(named, ["n.20", "n.21", "n.22", "n.30"]);
    }
}
