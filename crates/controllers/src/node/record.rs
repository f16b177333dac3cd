//! What is remembered of a Node for as long as it is there.

use std::collections::BTreeMap;

use cloudkeel_api::{Event, Subject};
use tokio::time::Instant;
use tracing::warn;

use super::NodeController;
use super::waiting::Waiting;
use crate::view::{NodeView, version_of};

/// What the controller remembers of one Node.
#[derive(Debug, Default)]
pub(super) struct NodeRecord {
    /// Since when it waits for its initialisation, and why.
    pub(super) waiting: Option<Waiting>,
    /// The version of our last write.
    pub(super) written: Option<u128>,
    /// When what stands on it was learnt from the cloud: an older list knows less.
    pub(super) learnt: Option<Instant>,
    /// What was last reported about it, by the reason of the Event.
    reported: BTreeMap<&'static str, String>,
}

impl NodeController {
    /// Whether we have written a later version of the Node than this one.
    pub(super) fn is_behind(&self, node: &NodeView) -> bool {
        let written = self.records.with(&node.facts.uid, |record| record.written);
        written.flatten() > node.version()
    }

    /// Remembers what the API server answered to our last write.
    pub(super) fn note_written(&self, uid: &str, resource_version: &str) {
        if let Some(version) = version_of(resource_version) {
            self.records
                .with(uid, |record| record.written = Some(version));
        }
    }

    /// It does not wait any more.
    pub(super) fn end_wait(&self, node: &NodeView) {
        self.records
            .with(&node.facts.uid, |record| record.waiting = None);
    }

    /// Records an Event about a Node once, until it says something else. `None` ends it.
    pub(super) fn report_once(
        &self,
        node: &NodeView,
        reason: &'static str,
        message: Option<String>,
    ) {
        let is_news = self.records.with(&node.facts.uid, |record| {
            let reported = &mut record.reported;
            match &message {
                Some(message) => reported.insert(reason, message.clone()).as_ref() != Some(message),
                None => reported.remove(reason).is_some(),
            }
        });
        if let Some(message) = message.filter(|_| is_news == Some(true)) {
            warn!(node = node.facts.name, reason, message);
            let subject = Subject::from(&node.facts);
            self.tell_later(Event::warning(subject, reason, message));
        }
    }
}
