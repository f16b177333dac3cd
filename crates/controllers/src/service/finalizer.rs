//! The finalizer that keeps a Service until its balancer is gone. Pure.
//!
//! Bodies are strategic merge patches for `services/status`, where upstream writes them too: roles of
//! the Go charts allow nothing else. In such a patch finalizers are a set, so those of others stay.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::status::StatusUpdate;
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

/// Adds the finalizer; `None` if it is there. Must be written before the cloud is asked for anything.
pub fn add(service: &ServiceView) -> Option<Value> {
    (!service.has_finalizer(CLEANUP_FINALIZER)).then(|| {
        json!({
            "metadata": {"uid": service.service.uid, "finalizers": [CLEANUP_FINALIZER]},
        })
    })
}

/// Removes the finalizer, and with it what the status still says of the balancer, in one write;
/// `None` if there is nothing to remove. Conditions of ours go along but need no write of their own.
pub fn release(service: &ServiceView, now: Timestamp) -> Option<Value> {
    let has_finalizer = service.has_finalizer(CLEANUP_FINALIZER);
    let mut body = StatusUpdate::released().body(service, now, has_finalizer)?;
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    if let (true, Some(metadata)) = (has_finalizer, metadata) {
        let key = "$deleteFromPrimitiveList/finalizers".to_owned();
        metadata.insert(key, json!([CLEANUP_FINALIZER]));
    }
    Some(body)
}

#[cfg(test)]
mod tests;
