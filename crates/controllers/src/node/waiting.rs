//! A Node that waits for its initialisation says why, once.

use std::time::Duration;

use cloudkeel_api::{Event, Subject};
use tokio::time::Instant;
use tracing::warn;

use super::{NodeController, lock};
use crate::runtime::Verdict;
use crate::view::NodeView;

/// After this long, people begin to look.
const PATIENCE: Duration = Duration::from_secs(10);

/// A Node that waits.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    node: String,
    since: Instant,
    why: String,
    told: bool,
}

impl NodeController {
    /// Which Nodes wait for their initialisation, since when and why.
    pub(super) fn delayed(&self) -> Vec<String> {
        let waiting = lock(&self.waiting);
        waiting
            .values()
            .map(|waiting| {
                let Waiting { node, why, .. } = waiting;
                format!(
                    "{node}: {why} (for {} s)",
                    waiting.since.elapsed().as_secs()
                )
            })
            .collect()
    }

    /// Notes that a Node has to wait, and tells why when it has waited too long. A retry comes no
    /// later than the moment in which that can be told.
    pub(super) fn wait(&self, node: &NodeView, why: &str, verdict: Verdict) -> Verdict {
        let now = Instant::now();
        let mut waiting = lock(&self.waiting);
        let entry = waiting
            .entry(node.facts.uid.clone())
            .or_insert_with(|| Waiting {
                node: node.facts.name.clone(),
                since: now,
                why: String::new(),
                told: false,
            });
        why.clone_into(&mut entry.why);
        let waited = now.duration_since(entry.since);
        if entry.told {
            return verdict;
        }
        if let Some(left) = PATIENCE.checked_sub(waited).filter(|left| !left.is_zero()) {
            return match verdict {
                Verdict::AgainAfter(delay) => Verdict::AgainAfter(delay.min(left)),
                Verdict::NeedsPerson => Verdict::AgainAfter(left),
                Verdict::Done | Verdict::Failed => verdict,
            };
        }
        entry.told = true;
        drop(waiting);
        warn!(
            node = node.facts.name,
            why, "node still waits to be initialised"
        );
        let message = format!(
            "Not initialised after {} s: {why}{}",
            waited.as_secs(),
            next_try(verdict)
        );
        let subject = Subject::from(&node.facts);
        self.events
            .emit(Event::warning(subject, "InitializationDelayed", message));
        verdict
    }
}

fn next_try(verdict: Verdict) -> String {
    match verdict {
        Verdict::AgainAfter(delay) => format!("; next try in {} s", delay.as_secs()),
        Verdict::NeedsPerson => "; this needs a person, and is tried again every minute".to_owned(),
        Verdict::Failed => "; tried again with growing pauses, at least every minute".to_owned(),
        Verdict::Done => String::new(),
    }
}
