//! Writes events to the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::{Clock, Event, Severity, Subject};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as KubeEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kube::{Client, Resource as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::correlate::EventKey;
use super::{Correlated, Correlator, RecentEvents, Reported, Reports};
use crate::runtime::Brief;
use crate::runtime::slim::SlimClient;

/// How many events are written at once. Each is about another object.
const AT_ONCE: usize = 8;

/// Writes what is reported until `stop`, and then what is left; whoever cannot wait for that drops the future. A
/// failure is only logged: an event is never worth more. A role that does not allow it is told about once.
pub async fn write_events(
    client: Client,
    mut reports: Reports,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let mut writer = Writer {
        client: SlimClient::new(client),
        clock,
        correlator: Correlator::default(),
        names: Names::default(),
        recent: Arc::clone(&reports.recent),
        denial_told: false,
        under_way: FuturesUnordered::new(),
        subjects: BTreeSet::new(),
    };
    while let Some(Some(reported)) = stop.run_until_cancelled(writer.next(&mut reports)).await {
        writer.write(&reported).await;
    }
    while let Ok(reported) = reports.queue.try_recv() {
        writer.write(&reported).await;
    }
    while writer.finish_one().await {}
}

struct Writer {
    client: SlimClient,
    clock: Arc<dyn Clock>,
    correlator: Correlator,
    names: Names,
    /// What is sent, whether the cluster takes it or not.
    recent: Arc<RecentEvents>,
    denial_told: bool,
    under_way: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// Whom the writes under way are about.
    subjects: BTreeSet<Subject>,
}

/// A write, and how it ended.
struct Ended {
    reported: Reported,
    key: EventKey,
    written: Written,
    result: kube::Result<()>,
}

/// What was written.
enum Written {
    /// A new event of this name.
    New(String),
    /// One that was there, and may have expired.
    Again,
}

impl Writer {
    /// The next event, while the writes under way go on.
    async fn next(&mut self, reports: &mut Reports) -> Option<Reported> {
        loop {
            tokio::select! {
                biased;
                Some(ended) = self.under_way.next() => self.conclude(ended),
                reported = reports.queue.recv() => return reported,
            }
        }
    }

    /// Begins to write, when there is room and nothing else about the same object is under way: the second of two
    /// equal events counts the first one up.
    async fn write(&mut self, reported: &Reported) {
        while self.under_way.len() >= AT_ONCE || self.subjects.contains(&reported.event.subject) {
            self.finish_one().await;
        }
        let now = self.clock.now();
        match self.correlator.judge(reported, now) {
            Correlated::Drop => {}
            Correlated::Create { key } => {
                self.recent.note(reported, key.message(), 1, now);
                self.create(reported.clone(), key, now);
            }
            Correlated::Repeat { key, name, count } => {
                self.recent.note(reported, key.message(), count, now);
                let patch = json!({"count": count, "lastTimestamp": Time(now)});
                let path = format!("{}/{name}", path_of(reported));
                let client = self.client.clone();
                let patched = async move { client.patch(&path, &patch).await.map(drop) };
                self.begin(reported.clone(), key, Written::Again, patched);
            }
        }
    }

    fn create(&mut self, reported: Reported, key: EventKey, now: Timestamp) {
        let name = self.names.next(&reported.event.subject, now);
        let event = kube_event(&reported, name.clone(), key.message().to_owned(), now);
        let path = path_of(&reported);
        let client = self.client.clone();
        let created = async move { client.create(&path, &event).await };
        self.begin(reported, key, Written::New(name), created);
    }

    fn begin(
        &mut self,
        reported: Reported,
        key: EventKey,
        written: Written,
        writing: impl Future<Output = kube::Result<()>> + Send + 'static,
    ) {
        self.subjects.insert(reported.event.subject.clone());
        let ended = async move {
            Ended {
                result: writing.await,
                reported,
                key,
                written,
            }
        };
        self.under_way.push(ended.boxed());
    }

    /// Waits for a write under way. `false` if there is none.
    async fn finish_one(&mut self) -> bool {
        let Some(ended) = self.under_way.next().await else {
            return false;
        };
        self.conclude(ended);
        true
    }

    fn conclude(&mut self, ended: Ended) {
        let now = self.clock.now();
        let reason = &ended.reported.event.reason;
        self.subjects.remove(&ended.reported.event.subject);
        match (ended.result, ended.written) {
            (Ok(()), Written::New(name)) => self.correlator.remember(ended.key, name, now),
            (Ok(()), Written::Again) => {}
            (Err(kube::Error::Api(status)), Written::Again) if status.code == 404 => {
                self.correlator.forget(&ended.key);
                self.create(ended.reported, ended.key, now);
            }
            (Err(kube::Error::Api(error)), _) if error.code == 403 && !self.denial_told => {
                self.denial_told = true;
                let error = Brief(error.as_ref());
                warn!(%error, %reason, "events may not be written; some will be missing");
            }
            (Err(error), _) => debug!(error = %Brief(&error), %reason, "event not written"),
        }
    }
}

fn path_of(reported: &Reported) -> String {
    KubeEvent::url_path(&(), Some(namespace(&reported.event.subject)))
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
