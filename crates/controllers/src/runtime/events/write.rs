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
use crate::runtime::slim::{self, PatchKind};

/// Writes what is reported until `stop`, one at a time. A failure is only logged: an event is never
/// worth more. A role that does not allow it is told about once.
pub async fn write_events(
    client: Client,
    mut reports: Reports,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let mut writer = Writer {
        client,
        correlator: Correlator::default(),
        recent: Arc::clone(&reports.recent),
    };
    let mut denial_told = false;
    loop {
        let reported = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            reported = reports.queue.recv() => match reported {
                Some(reported) => reported,
                None => return,
            },
        };
        let reason = &reported.event.reason;
        match writer.write(&reported, clock.now()).await {
            Err(kube::Error::Api(error)) if error.code == 403 && !denial_told => {
                denial_told = true;
                let error = Brief(error.as_ref());
                warn!(%error, %reason, "events may not be written; some will be missing");
            }
            Err(error) => debug!(error = %Brief(&error), %reason, "event not written"),
            Ok(()) => {}
        }
    }
}

struct Writer {
    client: Client,
    correlator: Correlator,
    /// What is sent, whether the cluster takes it or not.
    recent: Arc<RecentEvents>,
}

impl Writer {
    async fn write(&mut self, reported: &Reported, now: Timestamp) -> kube::Result<()> {
        let path = KubeEvent::url_path(&(), Some(namespace(&reported.event.subject)));
        let (key, message) = match self.correlator.judge(reported, now) {
            Correlated::Drop => return Ok(()),
            Correlated::Create { key, message } => {
                self.recent.note(reported, &message, 1, now);
                (key, message)
            }
            Correlated::Repeat { key, name, count } => {
                self.recent.note(reported, key.message(), count, now);
                let patch = json!({"count": count, "lastTimestamp": Time(now)});
                let path = format!("{path}/{name}");
                match slim::patch(&self.client, &path, PatchKind::Strategic, &patch).await {
                    Ok(_) => return Ok(()),
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        self.correlator.forget(&key);
                        (key, reported.event.message.clone())
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let event = kube_event(reported, message, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        slim::create(&self.client, &path, &event).await?;
        self.correlator.remember(key, name, now);
        Ok(())
    }
}

fn namespace(subject: &Subject) -> &str {
    match subject {
        Subject::Node { .. } => "default",
        Subject::Service(service) => &service.namespace,
    }
}

fn kube_event(reported: &Reported, message: String, now: Timestamp) -> KubeEvent {
    let Reported { source, event } = reported;
    let (kind, object) = reference(event);
    KubeEvent {
        metadata: ObjectMeta {
            name: Some(format!(
                "{}.{:x}",
                object.name.as_deref().unwrap_or_default(),
                now.as_nanosecond()
            )),
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
            let event = kube_event(&reported, "because".into(), Timestamp::UNIX_EPOCH);
            assert_eq!(event.involved_object.kind.as_deref(), Some(kind));
            assert_eq!(event.metadata.namespace.as_deref(), Some(place));
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            let source = event.source.unwrap().component;
            assert_eq!(source.as_deref(), Some("service-controller"));
        }
    }
}
