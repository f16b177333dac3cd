//! Where the lease is stored.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Map, Value};

use super::record::Record;

/// Stores one Lease. Every call ends in bounded time, and the store never retries.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// The lease as it is now, never an older state; `None` if there is none.
    async fn get(&self) -> Result<Option<StoredLease>, StoreError>;

    /// Creates the lease; a [`StoreError::Conflict`] if there is one.
    async fn create(&self, record: &Record) -> Result<StoredLease, StoreError>;

    /// Writes the record into the lease if that has not changed since it was read, else a
    /// [`StoreError::Conflict`]. All fields outside the record stay as they are.
    async fn update(&self, lease: &StoredLease, record: &Record)
    -> Result<StoredLease, StoreError>;

    /// Reports every state of the lease from now on, until the connection ends. A state may be late or come twice;
    /// `None` means that the lease was deleted.
    async fn watch(
        &self,
        on_change: &(dyn Fn(Option<Record>) + Send + Sync),
    ) -> Result<(), StoreError>;
}

/// A Lease as the API server returned it, including unknown fields.
#[derive(Debug, Clone)]
pub struct StoredLease {
    object: DynamicObject,
    record: Record,
}

impl StoredLease {
    /// Reads an object that the API server returned.
    pub fn read(object: DynamicObject) -> Result<Self, StoreError> {
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        let record =
            Record::read(spec).map_err(|error| StoreError::Unreadable(error.to_string()))?;
        Ok(Self { object, record })
    }

    /// Its holder's record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The object itself.
    pub fn object(&self) -> &DynamicObject {
        &self.object
    }

    /// The object to write in its place; its resource version is the condition.
    pub fn with(&self, record: &Record) -> DynamicObject {
        let mut object = self.object.clone();
        if let Value::Object(data) = &mut object.data {
            let spec = data.entry("spec").or_insert(Value::Null);
            put(record, spec);
        }
        object
    }

    /// The object to create.
    pub fn fresh(namespace: &str, name: &str, record: &Record) -> DynamicObject {
        let mut spec = Value::Null;
        put(record, &mut spec);
        DynamicObject::new(name, &resource())
            .within(namespace)
            .data(Value::Object(Map::from_iter([("spec".to_owned(), spec)])))
    }
}

fn put(record: &Record, spec: &mut Value) {
    if !spec.is_object() {
        *spec = Value::Object(Map::new());
    }
    if let Value::Object(fields) = spec {
        record.write_into(fields);
    }
}

/// The resource type of leases.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// Why the lease could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another client changed it first.
    #[error("the lease was changed by another client meanwhile")]
    Conflict,
    /// The role lacks a permission.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// No answer came in time; the request may or may not have had an effect.
    #[error("no response within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The object is not a valid Lease.
    #[error("the lease cannot be read: {0}")]
    Unreadable(String),
    /// Anything else; the request may or may not have had an effect.
    #[error("{0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(lease: Value) -> StoredLease {
        StoredLease::read(serde_json::from_value(lease).unwrap()).unwrap()
    }

    #[test]
    fn an_update_changes_the_record_and_nothing_else() {
        let lease = stored(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "ccm", "namespace": "kube-system", "uid": "u", "resourceVersion": "41",
                "labels": {"team": "infra"},
            },
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "strategy": "OldestEmulationVersion", "preferredHolder": "b", "new": {"field": 1},
            },
            "extra": true,
        }));
        assert_eq!(lease.record().holder, "a");
        let record = Record {
            holder: "me".to_owned(),
            lease_seconds: 10,
            acquired: Some("2026-02-03T04:05:06Z".parse().unwrap()),
            renewed: Some("2026-02-03T04:05:07Z".parse().unwrap()),
            transitions: 3,
        };
        assert_eq!(
            serde_json::to_value(lease.with(&record)).unwrap(),
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": "ccm", "namespace": "kube-system", "uid": "u", "resourceVersion": "41",
                    "labels": {"team": "infra"},
                },
                "spec": {
                    "holderIdentity": "me", "leaseDurationSeconds": 10, "leaseTransitions": 3,
                    "acquireTime": "2026-02-03T04:05:06.000000Z",
                    "renewTime": "2026-02-03T04:05:07.000000Z",
                    "strategy": "OldestEmulationVersion", "preferredHolder": "b", "new": {"field": 1},
                },
                "extra": true,
            })
        );
    }

    #[test]
    fn a_fresh_lease_has_the_fields_that_go_writes_and_no_more() {
        let record = Record {
            holder: "me".to_owned(),
            lease_seconds: 15,
            acquired: Some("2026-02-03T04:05:06Z".parse().unwrap()),
            renewed: Some("2026-02-03T04:05:06Z".parse().unwrap()),
            transitions: 0,
        };
        let object = StoredLease::fresh("kube-system", "ccm", &record);
        assert_eq!(
            serde_json::to_value(object).unwrap(),
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "ccm", "namespace": "kube-system"},
                "spec": {
                    "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                    "acquireTime": "2026-02-03T04:05:06.000000Z",
                    "renewTime": "2026-02-03T04:05:06.000000Z",
                },
            })
        );
    }

    #[test]
    fn a_lease_without_a_spec_gets_one() {
        let lease = stored(json!({"metadata": {"name": "ccm"}}));
        let object = lease.with(&Record {
            holder: "me".to_owned(),
            ..Record::default()
        });
        assert_eq!(object.data["spec"]["holderIdentity"], "me");
    }

    #[test]
    fn a_lease_that_is_none_is_an_error_that_says_why() {
        let object = serde_json::from_value(json!({
            "metadata": {"name": "ccm"},
            "spec": {"leaseDurationSeconds": "long"},
        }));
        let error = StoredLease::read(object.unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("the lease cannot be read: "), "{error}");
        assert!(error.contains("long"), "{error}");
    }
}
