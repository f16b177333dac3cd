//! What the controller remembers of a Node while it exists, and what it reports: why the Node waits, which labels are
//! left out, and which differences from its machine are not repaired.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{Event, Instance, Match, Subject};
use jiff::SignedDuration;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::find::{BATCH_THRESHOLD, offered};
use super::labels::Declined;
use super::{NodeController, labels, plan};
use crate::clouds::{Cloud, Snapshot};
use crate::log_messages::{NODE_DIFFERS, NODE_NOT_INITIALIZED};
use crate::report::WaitingNode;
use crate::runtime::{FailureMessage, Verdict};
use crate::view::{NodeView, Readiness, version_of};

/// After this long without its initialisation, the cause is reported.
const REPORT_AFTER: Duration = Duration::from_secs(10);
/// While a batch waits, Events do so too, but no longer than this.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How often it is checked whether the batch is through.
const DELAY: Duration = Duration::from_millis(50);
/// Every list of a cloud shows the instances of Nodes that are this old.
const LISTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// What the controller remembers of one Node.
#[derive(Debug, Default)]
pub(super) struct NodeRecord {
    /// Since when it waits for its initialisation, and why.
    waiting: Option<Waiting>,
    /// The version of our last write.
    written: Option<u128>,
    /// When the cloud was asked for what was written to it: an older list knows less.
    pub(super) asked: Option<Instant>,
    /// The additional labels that it has had from the cloud.
    pub(super) agreed: BTreeMap<String, String>,
    /// What pauses it.
    pub(super) paused: Option<String>,
    /// What was last reported about it, by the reason of the Event.
    reported: BTreeMap<&'static str, String>,
}

#[derive(Debug)]
struct Waiting {
    node: String,
    since: Instant,
    why: String,
    is_reported: bool,
}

/// Events that can wait.
#[derive(Debug, Default)]
pub(super) struct DelayedEvents {
    since: Option<Instant>,
    events: Vec<Event>,
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

    /// Notes that a Node has to wait, and reports why when it has waited too long. A retry comes no
    /// later than the moment in which that can be reported.
    pub(super) fn wait(&self, node: &NodeView, why: &FailureMessage, verdict: Verdict) -> Verdict {
        let noted = self.records.with(&node.facts.uid, |record| {
            let waiting = record.waiting.get_or_insert_with(|| Waiting {
                node: node.facts.name.clone(),
                since: Instant::now(),
                why: String::new(),
                is_reported: false,
            });
            waiting.why = why.in_full();
            let waited = waiting.since.elapsed();
            let was_reported = waiting.is_reported;
            waiting.is_reported |= waited >= REPORT_AFTER;
            (waited, was_reported)
        });
        let waited = match noted {
            // The Node is gone.
            None => return Verdict::Done,
            Some((_, true)) => return verdict,
            Some((waited, false)) => waited,
        };
        if let Some(left) = REPORT_AFTER
            .checked_sub(waited)
            .filter(|left| !left.is_zero())
        {
            return match verdict {
                Verdict::AgainAfter(delay) => Verdict::AgainAfter(delay.min(left)),
                Verdict::UserAction => Verdict::AgainAfter(left),
                Verdict::Done | Verdict::Failed => verdict,
            };
        }
        warn!(
            node = node.facts.name,
            err = why.in_full(),
            retry_after = retry_after(verdict),
            "{NODE_NOT_INITIALIZED}"
        );
        let message = format!("Not initialized after {} s: {why}", waited.as_secs());
        let event = Event::warning(&node.facts, "InitializationDelayed", message);
        self.parts.events.emit(event);
        verdict
    }

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

    /// Records an Event about a Node once, until it says something else. `None` ends it.
    fn report_once(&self, node: &NodeView, reason: &'static str, message: Option<String>) {
        let is_news = self.records.with(&node.facts.uid, |record| {
            let reported = &mut record.reported;
            match &message {
                Some(message) => reported.insert(reason, message.clone()).as_ref() != Some(message),
                None => reported.remove(reason).is_some(),
            }
        });
        if let Some(message) = message.filter(|_| is_news == Some(true)) {
            warn!(
                node = node.facts.name,
                reason,
                err = message,
                "{NODE_DIFFERS}"
            );
            let subject = Subject::from(&node.facts);
            self.emit_later(Event::warning(subject, reason, message));
        }
    }

    /// Reports labels that the API server would refuse. Those that are left out by rule are only logged.
    pub(super) fn report_declined(&self, node: &NodeView, declined: &[Declined]) {
        let name = &node.facts.name;
        let mut by_rule = BTreeMap::<String, Vec<String>>::new();
        for label in declined {
            match label {
                Declined::Reserved { key } => {
                    debug!(node = name, key, "skipped label in a reserved domain");
                }
                Declined::Taken { key, offered, kept } => {
                    debug!(node = name, key, offered, kept, "skipped label that is set");
                }
                Declined::Invalid {
                    key,
                    value,
                    problem,
                } => {
                    let labels = by_rule.entry(problem.to_string()).or_default();
                    labels.push(format!("{key}={value:?}"));
                }
            }
        }
        let parts = by_rule.iter();
        let parts = parts.map(|(rule, labels)| format!("{}: {rule}", labels.join(", ")));
        let parts = parts.collect::<Vec<_>>().join("; ");
        let message = (!parts.is_empty()).then(|| {
            format!("Left out labels of the cloud that are invalid in Kubernetes, rename them there: {parts}")
        });
        self.report_once(node, "InvalidLabel", message);
    }

    /// Reports, once, what a list says about an initialised Node and no controller will change.
    pub(super) fn report_differences(&self, cloud: &Cloud, list: &Snapshot, node: &NodeView) {
        let (mut not_listed, mut moved, mut node_ip) = (None, None, None);
        match self.match_in(cloud, list, node) {
            Match::None => not_listed = self.not_listed(list, node),
            Match::One(instance) => {
                moved = self.moved(instance, node);
                let offered = offered(cloud, instance, node);
                let plan = plan::refresh(node, instance, &offered, self.settings.follow);
                self.report_declined(node, &plan.declined);
                node_ip = plan.address_problem.filter(|_| !instance.is_summary);
            }
            Match::Many(_) => {}
        }
        self.report_once(node, "MachineNotListed", not_listed);
        self.report_once(node, "TopologyChanged", moved);
        let node_ip =
            node_ip.map(|problem| format!("The addresses of the Node stay as they are: {problem}"));
        self.report_once(node, "InvalidNodeIP", node_ip);
    }

    fn not_listed(&self, list: &Snapshot, node: &NodeView) -> Option<String> {
        let id = node.facts.provider_id.as_ref()?;
        let age = self.parts.clock.now().duration_since(node.facts.created?);
        let is_missed =
            list.list.is_complete() && node.readiness == Readiness::Ready && age >= LISTED_WITHIN;
        is_missed.then(|| {
            format!(
                "The cloud no longer lists machine {id}, but the Node is Ready and is kept: check that the \
                 cloud's credential shows the machine"
            )
        })
    }

    fn moved(&self, instance: &Instance, node: &NodeView) -> Option<String> {
        if self.settings.follow.topology {
            return None;
        }
        let moved = labels::moved(instance, &node.facts).into_iter();
        let moved =
            moved.map(|(key, was, now)| format!("label {key} is {was}, the cloud says {now}"));
        let moved: Vec<_> = moved.collect();
        (!moved.is_empty()).then(|| {
            let moved = moved.join("; ");
            format!("The machine has moved: {moved}; recreate the Node, or set --follow-topology")
        })
    }

    /// Emits an event at once, or with others after the batch that waits now: an event costs the API
    /// server as much as half of a Node's initialisation.
    pub(super) fn emit_later(&self, event: Event) {
        if self.queue.load() < BATCH_THRESHOLD {
            self.parts.events.emit(event);
            return;
        }
        let mut delayed = self.delayed_events.lock();
        delayed.since.get_or_insert_with(Instant::now);
        delayed.events.push(event);
        drop(delayed);
        self.event_delayed.notify_one();
    }

    /// Emits delayed events when they are due.
    pub(super) async fn emit_delayed(&self) {
        loop {
            self.event_delayed.notified().await;
            while !self.are_events_due() {
                tokio::time::sleep(DELAY).await;
            }
            self.emit_all_delayed();
        }
    }

    pub(super) fn emit_all_delayed(&self) {
        let delayed = std::mem::take(&mut *self.delayed_events.lock());
        for event in delayed.events {
            self.parts.events.emit(event);
        }
    }

    fn are_events_due(&self) -> bool {
        let since = self.delayed_events.lock().since;
        self.queue.load() < BATCH_THRESHOLD
            || since.is_none_or(|since| since.elapsed() >= LONGEST_DELAY)
    }
}

fn retry_after(verdict: Verdict) -> String {
    match verdict {
        Verdict::AgainAfter(delay) => format!("{}s", delay.as_secs()),
        Verdict::UserAction => "1m".to_owned(),
        Verdict::Failed => "backoff, at most 1m".to_owned(),
        Verdict::Done => String::new(),
    }
}
