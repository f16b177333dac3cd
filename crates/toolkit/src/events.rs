//! Records an Event about a state once, not with every observation of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::{
    DesiredState, Doubt, Event, NodeFacts, ServiceRef, SharedEvents, Subject, WarningDelay, names,
};
use tokio::time::Instant;

use crate::{Classified, CloudBalancer, DesiredTargets, Sharing};

/// The same event is recorded again after this long, before Kubernetes has deleted it.
const REPEAT_AFTER: Duration = Duration::from_mins(30);

/// The reason of the event about what a Service asks for and its cloud cannot do.
const UNSUPPORTED_OPTION: &str = "UnsupportedOption";

/// The reason of the event about a Node that several instances could be.
const LOOKUP_FAILED: &str = "InstanceLookupFailed";

/// The reason of the event about Nodes that are no targets.
const TARGET_UNRESOLVED: &str = "TargetUnresolved";

/// The reason of the event about a balancer that stays because it is shared.
const SHARED_BALANCER_LEFT: &str = "SharedLoadBalancerLeft";

/// How many events are remembered; beyond that all are recorded afresh.
const REMEMBERED: usize = 10_000;

/// Records events, but the same only once in half an hour.
pub struct EventRecorder {
    events: SharedEvents,
    recorded: Mutex<BTreeMap<(Subject, String, String), Instant>>,
    unresolved: WarningDelay,
}

impl EventRecorder {
    /// Records to this sink.
    pub fn new(events: SharedEvents) -> Self {
        Self {
            events,
            recorded: Mutex::default(),
            unresolved: WarningDelay::for_missing_instances(),
        }
    }

    /// Records an event, unless the same was recorded lately.
    pub fn record(&self, event: Event) {
        if self.is_new(&event) {
            self.events.emit(event);
        }
    }

    /// Records a warning.
    pub fn warn(
        &self,
        subject: impl Into<Subject>,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.record(Event::warning(subject, reason, message));
    }

    /// Warns about a Node that several instances could be.
    pub fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        self.warn(node, LOOKUP_FAILED, doubt.to_string());
    }

    /// Warns about what a Service asks of its load balancer and the load balancers of this cloud cannot do, in words.
    pub fn unsupported(&self, service: &ServiceRef, cloud: &str, asked: &[String]) {
        for what in asked {
            let message = format!("{cloud}'s load balancers cannot {what}");
            self.warn(service, UNSUPPORTED_OPTION, message);
        }
    }

    /// Warns about Nodes that could not be targets for a while, and what that means for them. It is normal while a Node is
    /// new or its instance is replaced.
    pub fn unresolved<T>(&self, service: &ServiceRef, targets: &DesiredTargets<T>, effect: &str) {
        for (node, why) in &targets.unresolved {
            if self.unresolved.has_elapsed(&format!("{node}: {why}")) {
                let message = format!("{node} {effect}: {why}");
                self.warn(service, TARGET_UNRESOLVED, message);
            }
        }
    }

    /// Warns that a shared balancer stays without what was the Service's.
    pub fn shared_balancer_left<B: CloudBalancer>(
        &self,
        desired: DesiredState<'_>,
        found: &Classified<B>,
        sharing: &Sharing,
    ) {
        let is_left = sharing.outlives_service() && matches!(desired, DesiredState::Absent(_));
        for balancer in found.ours.iter().filter(|_| is_left) {
            let (balancer, exclusive) = (balancer.in_words(), names::LB_EXCLUSIVE.name());
            let message = format!(
                "{balancer} is shared with other clients ({exclusive}): it stays, without the listeners and targets of \
                 this Service"
            );
            self.warn(
                &desired.balancer_ref().service,
                SHARED_BALANCER_LEFT,
                message,
            );
        }
    }

    fn is_new(&self, event: &Event) -> bool {
        let key = (
            event.subject.clone(),
            event.reason.to_string(),
            event.message.clone(),
        );
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recorded.get(&key);
        if at.is_some_and(|at| at.elapsed() < REPEAT_AFTER) {
            return false;
        }
        if recorded.len() >= REMEMBERED {
            recorded.clear();
        }
        recorded.insert(key, Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cloudkeel_api::CollectedEvents;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_event_is_recorded_again_only_after_a_while() {
        let events = Arc::new(CollectedEvents::default());
        let recorder = EventRecorder::new(Arc::<CollectedEvents>::clone(&events));
        let node = NodeFacts::default();
        for message in ["one", "two", "one", "two"] {
            recorder.warn(&node, "Reason", message);
        }
        assert_eq!(events.take().len(), 2);
        tokio::time::advance(REPEAT_AFTER).await;
        recorder.warn(&node, "Reason", "two");
        assert_eq!(events.take().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_without_traffic_is_reported_only_if_that_lasts() {
        let events = Arc::new(CollectedEvents::default());
        let recorder = EventRecorder::new(Arc::<CollectedEvents>::clone(&events));
        let service = ServiceRef {
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u-1".to_owned(),
        };
        let mut targets = DesiredTargets::<u64>::default();
        let (node, why) = ("n-1".to_owned(), "there is no machine 7".to_owned());
        targets.unresolved.insert(node, why);
        recorder.unsupported(&service, "X", &["fly".to_owned()]);
        recorder.unresolved(&service, &targets, "gets no traffic");
        tokio::time::advance(Duration::from_mins(3)).await;
        recorder.unresolved(&service, &targets, "gets no traffic");
        let messages: Vec<_> = events.take().into_iter().map(|it| it.message).collect();
        let expected = [
            "X's load balancers cannot fly",
            "n-1 gets no traffic: there is no machine 7",
        ];
        assert_eq!(messages, expected);
    }
}
