//! A Node that waits for its initialisation says why, once.

use std::time::Duration;

use cloudkeel_api::{Event, Subject};
use tokio::time::Instant;
use tracing::warn;

use super::NodeController;
use crate::report::{Holdings, WaitingNode};
use crate::runtime::{Cause, Verdict};
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

/// How long a Node may wait before it is told.
enum Patience {
    /// This much longer.
    Left(Duration),
    /// No longer, after this long.
    Over(Duration),
    /// It was told before.
    ToldAlready,
}

impl Waiting {
    fn begin(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            since: Instant::now(),
            why: String::new(),
            told: false,
        }
    }

    /// Still waits, for this reason.
    fn note(&mut self, why: &Cause) -> Patience {
        self.why = why.in_full();
        let waited = self.since.elapsed();
        if self.told {
            return Patience::ToldAlready;
        }
        let left = PATIENCE.saturating_sub(waited);
        if !left.is_zero() {
            return Patience::Left(left);
        }
        self.told = true;
        Patience::Over(waited)
    }
}

impl NodeController {
    /// Which Nodes wait for their initialisation, since when and why, by name.
    pub(super) fn delayed(&self) -> Vec<WaitingNode> {
        let mut delayed = self.records.find(|record| {
            let waiting = record.waiting.as_ref()?;
            Some(WaitingNode {
                node: waiting.node.clone(),
                waits_for: waiting.why.clone(),
                seconds: waiting.since.elapsed().as_secs(),
            })
        });
        delayed.sort_unstable();
        delayed
    }

    pub(super) fn hold(&self) -> Holdings {
        let mut waiting_nodes = self.delayed();
        let most = Holdings::MOST_WAITING_NODES;
        let more_waiting_nodes = waiting_nodes.len().saturating_sub(most);
        waiting_nodes.truncate(most);
        Holdings {
            waiting_nodes,
            more_waiting_nodes,
            ..Holdings::default()
        }
    }

    /// Notes that a Node has to wait, and tells why when it has waited too long. A retry comes no
    /// later than the moment in which that can be told.
    pub(super) fn wait(&self, node: &NodeView, why: &Cause, verdict: Verdict) -> Verdict {
        let noted = self.records.with(&node.facts.uid, |record| {
            let waiting = record
                .waiting
                .get_or_insert_with(|| Waiting::begin(&node.facts.name));
            waiting.note(why)
        });
        let waited = match noted {
            // The Node is gone.
            None => return Verdict::Done,
            Some(Patience::ToldAlready) => return verdict,
            Some(Patience::Left(left)) => {
                return match verdict {
                    Verdict::AgainAfter(delay) => Verdict::AgainAfter(delay.min(left)),
                    Verdict::NeedsPerson => Verdict::AgainAfter(left),
                    Verdict::Done | Verdict::Failed => verdict,
                };
            }
            Some(Patience::Over(waited)) => waited,
        };
        warn!(
            node = node.facts.name,
            why = why.in_full(),
            next_try = next_try(verdict),
            "node still waits to be initialised"
        );
        let message = format!("Not initialised after {} s: {why}", waited.as_secs());
        let subject = Subject::from(&node.facts);
        self.events
            .emit(Event::warning(subject, "InitializationDelayed", message));
        verdict
    }
}

fn next_try(verdict: Verdict) -> String {
    match verdict {
        Verdict::AgainAfter(delay) => format!("in {} s", delay.as_secs()),
        Verdict::NeedsPerson => "every minute".to_owned(),
        Verdict::Failed => "with growing pauses, at least every minute".to_owned(),
        Verdict::Done => String::new(),
    }
}
