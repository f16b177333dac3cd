//! The node lifecycle controller: taints Nodes whose machines are shut down, and deletes those whose
//! machines are proven gone.
//!
//! ```text
//! not ready ─▶ queue ─▶ ask the cloud ─ present ─▶ shut down? taint
//!                                     ├ unknown ─▶ nothing, ask again
//!                                     └ gone ────▶ compare list, Nodes and kubelets ─▶ decide ─▶ pace
//!                                                  ─▶ read the Node again ─▶ decide ─▶ delete
//! ready ─────▶ queue ─▶ shutdown taint off
//! ```

mod delete;
mod existence;
mod heartbeat;
mod home;
pub mod judge;
pub mod pace;
pub mod scope;
mod scope_check;
mod stop;
mod taint;
mod tell;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, Doubt, EventSink, InstanceState, Retry, TokioClock, names};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub use heartbeat::{Heartbeat, Heartbeats, LeaseHeartbeats};

use crate::clouds::{Cloud, Owner, is_another_machine, owner_of};
use crate::report::ControllerReport;
use crate::runtime::{
    Backoff, Cache, Listener, NodeWriter, Queue, QueueObserver, Records, Urgency, Verdict, work,
};
use crate::view::{Change, NodeView, Readiness};
use crate::wellknown::SHUTDOWN_TAINT;
use crate::{Controller, ControllerName};
use existence::Answer;
use home::Belonging;
use judge::{Caution, Proofs};
use pace::Pace;
use scope_check::ScopeState;
use stop::Halt;

/// How the lifecycle controller works.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleSettings {
    /// How many Nodes at once.
    pub workers: usize,
    /// The shortest pause between two questions about a Node.
    pub monitor_period: Duration,
    /// The longest pause between two questions about a Node that stays not ready.
    pub longest_pause: Duration,
    /// How careful deletions are.
    pub caution: Caution,
    /// The pace of deletions, per cloud.
    pub pace: Pace,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            workers: 20,
            monitor_period: Duration::from_secs(5),
            longest_pause: Duration::from_mins(1),
            caution: Caution::default(),
            pace: Pace::new(10, 0.2, Duration::from_secs(10)),
        }
    }
}

/// Hears what the cloud was asked and what was done.
pub trait LifecycleObserver: Send + Sync {
    /// A question and its answer: `success`, `error`, `instance_not_found`.
    fn asked(&self, result: &'static str);
    /// A Node was deleted.
    fn deleted(&self, cloud: &str);
    /// Deletions of a cloud were stopped or may go on.
    fn halted(&self, cloud: &str, halted: bool);
    /// A look at a Node took this long, questions to the cloud included.
    fn looked(&self, _took: Duration) {}
}

/// Everything a [`LifecycleController`] is made of.
pub struct LifecycleParts {
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// The clouds.
    pub clouds: Vec<Arc<Cloud>>,
    /// Writes Nodes.
    pub writer: NodeWriter,
    /// Tells whether a kubelet still reports.
    pub heartbeats: Arc<dyn Heartbeats>,
    /// Where events go; source `cloud-node-lifecycle-controller`.
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Hears what was asked and done.
    pub observer: Arc<dyn LifecycleObserver>,
    /// Hears what happens in the queue.
    pub queue_observer: Arc<dyn QueueObserver>,
}

/// The controller.
pub struct LifecycleController {
    parts: LifecycleParts,
    settings: LifecycleSettings,
    /// Shows what the wall clock would if nobody had set it since the start.
    steady: TokioClock,
    queue: Arc<Queue<String>>,
    /// What is remembered of Nodes that are not ready.
    histories: Records<History>,
    /// The cloud that alone showed the machine of a Node that several may own.
    homes: Records<Option<String>>,
    /// What is remembered of clouds, by name.
    guards: Mutex<BTreeMap<String, Guard>>,
    /// Whether it was reported that the role does not allow deletions.
    denial_told: AtomicBool,
}

#[derive(Default)]
struct History {
    asked: u32,
    /// When it was last not found.
    missed: Option<Instant>,
    row: Option<Proofs>,
    /// What the kubelet had to say when the row of proofs began.
    heartbeat: Option<Heartbeat>,
    /// Why it is kept although its machine was not found: the kind of reason, and the reason.
    kept: Option<(String, String)>,
    /// When it may be deleted, as the pace has promised.
    turn: Option<Instant>,
}

/// What is remembered of a cloud.
struct Guard {
    scope: ScopeState,
    pace: Pace,
    halted: Option<Halt>,
    /// When so many Nodes were counted that are not ready that they share lists.
    many_suspects: Option<Instant>,
}

impl LifecycleController {
    /// A controller that has not started.
    pub fn new(parts: LifecycleParts, settings: LifecycleSettings) -> Arc<Self> {
        let backoff = Backoff {
            first: settings.monitor_period,
            longest: settings.longest_pause,
        };
        Arc::new(Self {
            queue: Arc::new(Queue::new(backoff, Arc::clone(&parts.queue_observer))),
            steady: TokioClock::starting_at(parts.clock.now()),
            parts,
            settings,
            histories: Records::default(),
            homes: Records::default(),
            guards: Mutex::default(),
            denial_told: AtomicBool::default(),
        })
    }

    /// Files Nodes that stop being ready, that come back with a shutdown taint, or about which
    /// something changed that matters here. Mere heartbeats do not count.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            this.homes.follow(change);
            let ended = this.histories.follow(change);
            if let Some(gone) = change.gone() {
                this.queue.remove(&gone.facts.name);
                if ended.is_some_and(|history| history.turn.is_some()) {
                    this.give_back_turn(gone);
                }
            }
            if let Some(node) = change.after.as_ref().filter(|_| matters(change)) {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
        })
    }

    async fn look_at(&self, name: String) -> Verdict {
        let began = Instant::now();
        let verdict = self.handle(name).await;
        self.parts.observer.looked(began.elapsed());
        verdict
    }

    async fn handle(&self, name: String) -> Verdict {
        let Some(node) = self.parts.nodes.get(&name).filter(|node| !node.deleting) else {
            return Verdict::Done;
        };
        if node.readiness == Readiness::Ready {
            self.forget(&node);
            return match owner_of(&node.facts, &self.parts.clouds) {
                // Whoever tainted it will take the taint away.
                Owner::Nobody { .. } => Verdict::Done,
                Owner::Cloud(_) | Owner::Ask(_) => self.remove_shutdown_taint(&node).await,
            };
        }
        let clouds = self.clouds_of(&node);
        if clouds.is_empty() {
            return Verdict::Done;
        }
        let is_hurried = names::DELETE_NOW.get(&node.facts.annotations) == Ok(Some(true));
        if !is_hurried && let Some(verdict) = self.is_still_stopped(&node, &clouds).await {
            return verdict;
        }
        match self.ask_all(&node, &clouds).await {
            Answer::Present(instance) => {
                self.parts.observer.asked("success");
                self.end_proofs(&node);
                let is_own = !is_another_machine(&instance, &node.facts);
                let shut_down = is_own && instance.state == InstanceState::ShutDown;
                self.taint_if(shut_down, &node).await
            }
            Answer::Unknown(Doubt::NothingElseSeen { .. } | Doubt::ScopeChanged { .. }) => {
                self.parts.observer.asked("error");
                self.histories.with(&node.facts.uid, |history| {
                    history.missed = Some(Instant::now());
                });
                self.suspect_blindness(&node, &clouds).await
            }
            Answer::Unknown(doubt) => {
                self.parts.observer.asked("error");
                debug!(node = name, %doubt, "cannot tell whether the machine exists");
                // A call that failed says nothing against the proofs before it; another answer does.
                if !matches!(doubt, Doubt::NoAnswer(_)) {
                    self.end_proofs(&node);
                }
                later_of(self.ask_later(&node), &doubt)
            }
            Answer::Gone { proofs, noticed } => {
                self.parts.observer.asked("instance_not_found");
                self.histories
                    .with(&node.facts.uid, |history| history.missed = Some(noticed));
                self.consider(&node, &clouds, proofs, noticed).await
            }
        }
    }

    /// The next question, after a pause that doubles.
    fn ask_later(&self, node: &NodeView) -> Verdict {
        self.histories.with(&node.facts.uid, |history| {
            history.asked = history.asked.saturating_add(1);
        });
        Verdict::AgainAfter(
            self.pause_of(&node.facts.uid)
                .max(self.settings.monitor_period),
        )
    }

    /// The pause between two questions about a Node, as long as it stays not ready.
    fn pause_of(&self, uid: &str) -> Duration {
        let backoff = Backoff {
            first: self.settings.monitor_period,
            longest: self.settings.longest_pause,
        };
        let asked = self.histories.with(uid, |history| history.asked);
        let asked = asked.unwrap_or(0);
        if asked == 0 {
            Duration::ZERO
        } else {
            backoff.pause(asked)
        }
    }

    /// Whether a Node had been seen here before this moment.
    fn joined_before(&self, node: &NodeView, moment: Instant) -> bool {
        let joined = self.parts.nodes.first_seen(node);
        joined.is_some_and(|joined| joined <= moment)
    }

    /// Any answer but "gone" ends a row of proofs.
    fn end_proofs(&self, node: &NodeView) {
        self.end_row(node);
        self.histories.with(&node.facts.uid, |history| {
            history.kept = None;
            history.missed = None;
        });
        self.give_up_turn(node);
    }

    /// A Node that may not be deleted after all has no right to a turn. Turns that were kept would add up
    /// while deletions are stopped, and all be used at once.
    fn give_up_turn(&self, node: &NodeView) {
        let take = |history: &mut History| history.turn.take();
        if self
            .histories
            .with(&node.facts.uid, take)
            .flatten()
            .is_some()
        {
            self.give_back_turn(node);
        }
    }

    /// Nothing more is to be done about this Node. A turn that it was promised is another one's.
    fn forget(&self, node: &NodeView) {
        let history = self.histories.with(&node.facts.uid, std::mem::take);
        if history.is_some_and(|history| history.turn.is_some()) {
            self.give_back_turn(node);
        }
    }

    fn give_back_turn(&self, node: &NodeView) {
        if let Some(cloud) = self.clouds_of(node).first() {
            self.with_guard(cloud, |guard| guard.pace.give_back());
        }
    }

    /// The clouds that may know the machine of a Node; none if it is not ours to judge. Without an ID it is
    /// not: a machine of the same name proves nothing.
    fn clouds_of(&self, node: &NodeView) -> Vec<Arc<Cloud>> {
        if node.facts.provider_id.is_none() {
            return Vec::new();
        }
        match owner_of(&node.facts, &self.parts.clouds) {
            Owner::Cloud(cloud) => vec![cloud],
            // Several accounts may own this ID: gone only if it is gone from all of them, or from the one
            // that is known to have had it.
            Owner::Ask(clouds) => {
                let is_home = |cloud: &Arc<Cloud>| self.belonging(node, cloud) == Belonging::Owned;
                let home = clouds.iter().find(|cloud| is_home(cloud)).cloned();
                home.map_or(clouds, |home| vec![home])
            }
            Owner::Nobody { .. } => Vec::new(),
        }
    }

    fn with_guard<T>(&self, cloud: &Cloud, use_it: impl FnOnce(&mut Guard) -> T) -> T {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = guards.entry(cloud.name.clone()).or_insert_with(|| Guard {
            scope: ScopeState::default(),
            pace: self.settings.pace.clone(),
            halted: None,
            many_suspects: None,
        });
        use_it(guard)
    }
}

/// A cloud that says when to come back is taken at its word.
fn later_of(verdict: Verdict, doubt: &Doubt) -> Verdict {
    let Doubt::NoAnswer(error) = doubt else {
        return verdict;
    };
    match (verdict, error.retry()) {
        (Verdict::AgainAfter(ours), Retry::After(theirs)) => Verdict::AgainAfter(ours.max(theirs)),
        (verdict, _) => verdict,
    }
}

/// Whether a change of a Node asks for a look at its machine.
fn matters(change: &Change<NodeView>) -> bool {
    let Some(after) = &change.after else {
        return false;
    };
    let needs_a_look = after.readiness != Readiness::Ready || after.has_taint(SHUTDOWN_TAINT);
    let news = change.before.as_ref().is_none_or(|before| {
        before.readiness != after.readiness
            || before.facts.uid != after.facts.uid
            || before.facts.provider_id != after.facts.provider_id
            || before.facts.annotations != after.facts.annotations
            || before.facts.labels != after.facts.labels
            || before.taints != after.taints
    });
    needs_a_look && news
}

#[async_trait]
impl Controller for LifecycleController {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNodeLifecycle
    }

    async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = self.parts.nodes.synced() => {}
        }
        let workers = work(
            &self.queue,
            self.settings.workers,
            &stop,
            |name, _failures| self.look_at(name),
        );
        tokio::select! {
            biased;
            () = workers => {}
            () = self.review_stops() => {}
        }
    }

    fn report(&self) -> ControllerReport {
        self.tell()
    }
}

#[cfg(test)]
mod tests;
