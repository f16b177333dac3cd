//! Balancers follow the Nodes: a burst of changes becomes one comparison, and only those Services are
//! filed whose targets really differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::names;
use tokio::time::Instant;
use tracing::debug;

use super::controller::ServiceController;
use super::marks::{Marks, marks_of};
use super::records::Record;
use super::targets::Candidate;
use super::wants::{Serving, owner_of_service};
use crate::runtime::Urgency;

/// A cloud and a selector: all Services that have both in common choose alike.
type Alike = (String, Option<String>);

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
    fn compare_targets(&self) -> Option<Instant> {
        let nodes = self.parts.nodes.all();
        let candidates = self.candidates(&nodes);
        let mut choices: BTreeMap<Alike, Arc<Marks>> = BTreeMap::new();
        let mut behind = Vec::new();
        let mut drained = BTreeSet::new();
        let mut next: Option<Instant> = None;
        self.records.for_each(|key, record| {
            let (differs, due) = self.compare(record, &candidates, &mut choices);
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
    fn compare(
        &self,
        record: &mut Record,
        candidates: &[Candidate<'_>],
        choices: &mut BTreeMap<Alike, Arc<Marks>>,
    ) -> (bool, Option<Instant>) {
        let Some(aimed_at) = record.aimed_at().cloned() else {
            return (false, None);
        };
        let service = Arc::clone(&record.seen);
        let Some(serving) = owner_of_service(&service, &self.parts.classes) else {
            return (false, None);
        };
        let Some(balancers) = self.balancers_of(&serving.cloud) else {
            return (false, None);
        };
        let features = balancers.features();
        let chosen = choices
            .entry(alike(&service.annotations, serving))
            .or_insert_with(|| {
                let targets = self.choose(candidates, &service, serving, features);
                self.records.share(marks_of(&targets))
            });
        if record.leaving.is_empty() {
            // Whoever leaves now is drained when its turn comes.
            let is_same = Arc::ptr_eq(chosen, &aimed_at) || *chosen == aimed_at;
            return (!is_same, None);
        }
        let mut marks = Marks::clone(chosen);
        let applied = record.applied().cloned();
        let leaving = &mut record.leaving;
        let next = self.drain(&service, features, &mut marks, applied.as_deref(), leaving);
        (marks != *aimed_at, next)
    }
}

fn alike(annotations: &BTreeMap<String, String>, serving: &Serving) -> Alike {
    let selector = annotations.get(names::LB_NODE_SELECTOR.name()).cloned();
    (serving.cloud.clone(), selector)
}
