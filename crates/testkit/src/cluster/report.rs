//! What a failed wait says: the object as it was, and what happened to it.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

/// How many of the latest events a report repeats.
const EVENTS: usize = 20;

/// A condition that did not come about in time.
#[derive(Debug)]
pub struct Unmet {
    what: String,
    waited: Duration,
    asked_at: &'static Location<'static>,
    why: String,
    events: Vec<String>,
}

impl Unmet {
    pub(super) fn new(
        what: &str,
        waited: Duration,
        asked_at: &'static Location<'static>,
        why: String,
    ) -> Self {
        Self {
            what: what.to_owned(),
            waited,
            asked_at,
            why,
            events: Vec::new(),
        }
    }

    /// Adds the latest events about an object.
    pub(super) async fn with_events(mut self, events: &Api<Event>, kind: &str, name: &str) -> Self {
        self.events = match events_of(events, kind, name).await {
            Ok(events) => events,
            Err(error) => vec![format!("(cannot be listed: {error})")],
        };
        self
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} did not come about within {:?} (asked for at {})",
            self.what, self.waited, self.asked_at
        )?;
        writeln!(f, "last seen: {}", self.why)?;
        if self.events.is_empty() {
            return write!(f, "events: none");
        }
        write!(f, "events:")?;
        self.events
            .iter()
            .try_for_each(|event| write!(f, "\n  {event}"))
    }
}

impl std::error::Error for Unmet {}

/// The object as JSON, without what does not help a reader: field managers, and the images of a Node.
pub(super) fn readable(object: &impl serde::Serialize) -> String {
    let mut value = match serde_json::to_value(object) {
        Ok(value) => value,
        Err(error) => return format!("(cannot be written as JSON: {error})"),
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if let Some(images) = value.pointer_mut("/status/images") {
        let count = images.as_array().map_or(0, Vec::len);
        *images = json!(format!("({count} images)"));
    }
    format!("{value:#}")
}

async fn events_of(
    events: &Api<Event>,
    kind: &str,
    name: &str,
) -> Result<Vec<String>, kube::Error> {
    let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let mut found = events
        .list(&ListParams::default().fields(&about))
        .await?
        .items;
    found.sort_by_key(last_seen);
    let from = found.len().saturating_sub(EVENTS);
    Ok(found.iter().skip(from).map(one_line).collect())
}

fn last_seen(event: &Event) -> Option<jiff::Timestamp> {
    let newest = event.last_timestamp.as_ref().map(|time| time.0);
    newest
        .or(event.event_time.as_ref().map(|time| time.0))
        .or(event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0))
}

fn one_line(event: &Event) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!(
        "{} {} {} ×{}: {}",
        last_seen(event)
            .map(|time| time.to_string())
            .unwrap_or_default(),
        text(&event.type_),
        text(&event.reason),
        event.count.unwrap_or(1),
        text(&event.message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeBuilder;

    #[test]
    fn a_node_is_shown_without_its_bulk() {
        let text = readable(&NodeBuilder::new("n1").build(jiff::Timestamp::UNIX_EPOCH));
        assert!(
            text.contains("(50 images)") && text.contains("KubeletReady"),
            "{text}"
        );
        assert!(!text.contains("sha256"), "{text}");
    }
}
