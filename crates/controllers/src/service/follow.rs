//! Balancers follow the Nodes: a burst of changes becomes one comparison, and only those Services are
//! filed whose targets really differ.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::debug;

use super::claim::claim_of;
use super::controller::ServiceController;
use super::marks::Marks;
use super::records::Record;
use super::wants::owner_of_service;
use crate::runtime::Urgency;

impl ServiceController {
    /// Compares whenever a burst of changes has ended, or somebody has been drained.
    pub(super) async fn follow_nodes(&self) {
        let mut next_drained: Option<Instant> = None;
        loop {
            let drained = async {
                match next_drained {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.churn.ended() => {}
                () = drained => {}
            }
            next_drained = self.compare_targets();
        }
    }

    /// Files the Services whose targets differ from those that their balancers have. What is applied
    /// is worked out afresh when their turn comes. Returns when the next target has been drained.
    pub(super) fn compare_targets(&self) -> Option<Instant> {
        let mut behind = Vec::new();
        let mut drained = BTreeSet::new();
        let mut next: Option<Instant> = None;
        self.records.for_each(|key, record| {
            let (differs, due) = self.compare(record);
            if differs {
                behind.push(key.to_owned());
            }
            drained.extend(record.leaving.keys().cloned());
            next = [next, due].into_iter().flatten().min();
        });
        self.forget_departed(|name| drained.contains(name));
        debug!(services = behind.len(), "the nodes have changed");
        if !behind.is_empty() {
            self.following.begin(behind.iter().cloned());
        }
        for key in behind {
            self.queue.add(key, Urgency::Refresh);
        }
        next
    }

    /// Whether a Service's targets differ, and when the next of them has been drained.
    fn compare(&self, record: &mut Record) -> (bool, Option<Instant>) {
        let Some(aimed_at) = record.aimed_at().cloned() else {
            return (false, None);
        };
        let service = Arc::clone(&record.seen);
        let Some(serving) = owner_of_service(&service, &self.parts.classes) else {
            return (false, None);
        };
        let provider = self.provider_of(&serving.cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            return (false, None);
        };
        // One that cannot be read is told by those who work on the Service.
        let Ok(selector) = Self::selector_of(&service, balancers) else {
            return (false, None);
        };
        let features = balancers
            .profile(&claim_of(&service, &self.parts.cluster))
            .features;
        let chosen = self.choice(serving, features, selector).marks;
        if record.leaving.is_empty() {
            // Whoever leaves now is drained when its turn comes.
            let is_same = Arc::ptr_eq(&chosen, &aimed_at) || chosen == aimed_at;
            return (!is_same, None);
        }
        let applied = record.applied().cloned();
        let leaving = &mut record.leaving;
        let drained = self.drain(&service, features, &chosen, applied.as_deref(), leaving);
        let mut marks = Marks::clone(&chosen);
        marks.extend(drained.targets);
        (marks != *aimed_at, drained.next)
    }
}
