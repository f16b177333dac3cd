//! Events on the Lease: which replica became leader, and which stopped.

use std::fmt;

use async_trait::async_trait;
use cloudkeel_controllers::runtime::ErrorText;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use tracing::{debug, warn};

use super::ElectionConfig;
use crate::log_messages::LEASE_EVENTS_FORBIDDEN;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// This replica acquired the lease.
    BecameLeader,
    /// This replica stopped leading.
    StoppedLeading,
}

impl fmt::Display for LeaseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BecameLeader => "became leader",
            Self::StoppedLeading => "stopped leading",
        })
    }
}

/// Records the events of an election. It runs beside the election, which waits for it only briefly at the end.
#[async_trait]
pub trait LeaseEvents: Send + Sync {
    /// Records an event on this lease. A failure does not affect the election.
    async fn record(&self, lease: &DynamicObject, event: LeaseEvent, at: Timestamp);
}

/// Records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLeaseEvents;

#[async_trait]
impl LeaseEvents for NoLeaseEvents {
    async fn record(&self, _lease: &DynamicObject, _event: LeaseEvent, _at: Timestamp) {}
}

/// Creates events in the namespace of the Lease, as the Go framework does.
#[derive(Clone)]
pub struct KubeLeaseEvents {
    api: Api<Event>,
    identity: String,
    component: String,
}

impl KubeLeaseEvents {
    /// Events of this candidate.
    pub fn new(client: Client, config: &ElectionConfig) -> Self {
        Self {
            api: Api::namespaced(client, &config.namespace),
            identity: config.identity.clone(),
            component: config.component.clone(),
        }
    }

    fn event(&self, lease: &DynamicObject, event: LeaseEvent, at: Timestamp) -> Event {
        let meta = &lease.metadata;
        let name = meta.name.clone().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", at.as_nanosecond())),
                namespace: meta.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                name: Some(name),
                namespace: meta.namespace.clone(),
                resource_version: meta.resource_version.clone(),
                uid: meta.uid.clone(),
                ..ObjectReference::default()
            },
            type_: Some("Normal".to_owned()),
            reason: Some("LeaderElection".to_owned()),
            message: Some(format!("{} {event}", self.identity)),
            source: Some(EventSource {
                component: Some(self.component.clone()),
                host: None,
            }),
            reporting_component: Some(self.component.clone()),
            reporting_instance: None,
            first_timestamp: Some(Time(at)),
            last_timestamp: Some(Time(at)),
            count: Some(1),
            ..Event::default()
        }
    }
}

#[async_trait]
impl LeaseEvents for KubeLeaseEvents {
    async fn record(&self, lease: &DynamicObject, event: LeaseEvent, at: Timestamp) {
        let object = self.event(lease, event, at);
        match self.api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(error))
                if error.code == 403 && event == LeaseEvent::BecameLeader =>
            {
                warn!(err = %ErrorText(error.as_ref()), "{LEASE_EVENTS_FORBIDDEN}");
            }
            Err(error) => {
                debug!(%event, err = %ErrorText(&error), "failed to record leader election event");
            }
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::election::record::Record;
    use crate::election::store::StoredLease;

    #[tokio::test]
    async fn an_event_looks_as_the_go_framework_writes_it() {
        let config = ElectionConfig::new("kube-system", "ccm", "node-1_5e1f");
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let events = KubeLeaseEvents::new(Client::try_from(nowhere).unwrap(), &config);
        let mut lease = StoredLease::fresh("kube-system", "ccm", &Record::default());
        lease.metadata.uid = Some("u-1".to_owned());
        lease.metadata.resource_version = Some("7".to_owned());
        let at = "2026-02-03T04:05:06Z".parse().unwrap();
        let event = events.event(&lease, LeaseEvent::StoppedLeading, at);
        assert_eq!(
            serde_json::to_value(event).unwrap(),
            json!({
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "ccm.1890a0d8ab10f400", "namespace": "kube-system"},
                "involvedObject": {
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "ccm",
                    "namespace": "kube-system", "resourceVersion": "7", "uid": "u-1",
                },
                "type": "Normal",
                "reason": "LeaderElection",
                "message": "node-1_5e1f stopped leading",
                "source": {"component": "cloud-controller-manager"},
                "reportingComponent": "cloud-controller-manager",
                "firstTimestamp": "2026-02-03T04:05:06Z",
                "lastTimestamp": "2026-02-03T04:05:06Z",
                "count": 1,
            })
        );
    }
}
