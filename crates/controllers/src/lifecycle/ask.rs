//! Does the machine of a suspect exist? From a recent sweep where that is enough, by a look-up of the
//! very ID where it is not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, Doubt, ErrorKind, Existence, InstanceState, Match, ProviderId, Sighting,
};
use tokio::time::Instant;

use super::LifecycleController;
use super::scope::{KnownNode, ScopeDoubt};
use crate::clouds::{Cloud, Owner, Snapshot, is_surely_listed, owner_of, with_machines};
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};

/// A sweep this recent tells whether a machine that it shows exists.
pub(super) const FRESH: Duration = Duration::from_secs(30);
/// So many Ready Nodes that a sweep does not show are looked up one by one; if more are missing, one
/// of these will do to stop everything.
const MOST_LOOK_UPS: usize = 3;
/// Suspects whose turn comes within this time are judged together.
const ONE_PASS: Duration = Duration::from_secs(1);

impl LifecycleController {
    /// Present if any cloud has it, gone only if every one proves it.
    pub(super) async fn ask_all(&self, node: &NodeView, clouds: &[Arc<Cloud>]) -> Existence {
        let answers = clouds.iter().map(|cloud| self.ask(node, cloud));
        let answers = futures::future::join_all(answers).await;
        let mut combined: Option<Existence> = None;
        for answer in answers {
            combined = Some(match (combined, answer) {
                (Some(found @ Existence::Present(_)), _) | (_, found @ Existence::Present(_)) => {
                    found
                }
                (Some(Existence::Unknown(doubt)), _) => Existence::Unknown(doubt),
                (_, answer) => answer,
            });
        }
        combined.unwrap_or_else(|| no_answer("no cloud to ask"))
    }

    async fn ask(&self, node: &NodeView, cloud: &Cloud) -> Existence {
        let Some(instances) = cloud.provider.instances() else {
            return no_answer("this cloud has no machines");
        };
        // One sweep serves all suspects of the next half minute; a failed one leaves the look-up.
        let snapshot = cloud.inventory.no_older_than(FRESH).await.ok();
        if let Some(snapshot) = &snapshot
            && let Match::One(instance) = instances.identify(&node.facts, &snapshot.sweep)
            && instance.state != InstanceState::Unknown
        {
            return Existence::present(instance.clone());
        }
        if Bug::DeleteOnFirstAbsence.is_planted() && snapshot.is_some() {
            let _ = self.parts.writer.delete(node).await;
        }
        let sighting = match (&snapshot, &node.facts.provider_id) {
            (Some(snapshot), Some(id)) => {
                let known = self.known_ids(cloud, snapshot);
                snapshot.sweep.sighting_besides(id, |other| {
                    known.contains(other) || Bug::IgnoreDoubt.is_planted()
                })
            }
            _ => None,
        };
        instances.find(&node.facts, sighting.as_ref()).await
    }

    /// Whether the credential of a cloud can be trusted right now. If not, its deletions are stopped.
    pub(super) async fn judge_scope(&self, cloud: &Cloud) -> Result<(), ScopeDoubt> {
        let verdict = self.judged(cloud).await;
        self.note_halt(cloud, &verdict);
        verdict
    }

    /// All suspects of a moment share one judgement: it looks at every Node, and may have to look some of
    /// them up.
    async fn judged(&self, cloud: &Cloud) -> Result<(), ScopeDoubt> {
        let judging = self.with_guard(cloud, |guard| Arc::clone(&guard.judging));
        let _turn = judging.lock().await;
        let Some(snapshot) = seen_lately(cloud) else {
            return Err(ScopeDoubt::NotSeen);
        };
        let shared = self.with_guard(cloud, |guard| {
            let (at, of, verdict) = guard.judged.as_ref()?;
            let is_current = at.elapsed() < ONE_PASS && Arc::ptr_eq(of, &snapshot);
            is_current.then(|| verdict.clone())
        });
        if let Some(verdict) = shared {
            return verdict;
        }
        let verdict = self.judge_anew(cloud, &snapshot).await;
        self.with_guard(cloud, |guard| {
            guard.judged = Some((Instant::now(), snapshot, verdict.clone()));
        });
        verdict
    }

    async fn judge_anew(&self, cloud: &Cloud, snapshot: &Snapshot) -> Result<(), ScopeDoubt> {
        let nodes = self.nodes_of(cloud);
        let now = self.parts.clock.now();
        let mut known: Vec<_> = nodes
            .iter()
            .map(|node| KnownNode {
                name: &node.facts.name,
                is_seen: cloud.shows(&snapshot.sweep, &node.facts),
                surely_running: node.readiness == Readiness::Ready
                    && is_surely_listed(&node.facts, now),
            })
            .collect();
        self.look_for_missing(cloud, &nodes, &mut known).await;
        self.with_guard(cloud, |guard| guard.memory.judge(&snapshot.sweep, known))
    }

    /// Looks up some of the Ready Nodes that the sweep does not show, those first whose absence would stop
    /// everything.
    async fn look_for_missing(
        &self,
        cloud: &Cloud,
        nodes: &[Arc<NodeView>],
        known: &mut [KnownNode<'_>],
    ) {
        let Some(instances) = cloud.provider.instances() else {
            return;
        };
        let pairs = nodes.iter().zip(known);
        let missing =
            pairs.filter(|(node, known)| node.readiness == Readiness::Ready && !known.is_seen);
        let mut missing: Vec<_> = missing.collect();
        missing.retain_mut(|(node, known)| {
            let is_elsewhere = self.is_shown_by_another(cloud, node);
            known.surely_running &= !is_elsewhere;
            !is_elsewhere
        });
        missing.sort_by_key(|(_, known)| !known.surely_running);
        let mut looks = 0;
        for (node, known) in missing {
            match instances.find(&node.facts, None).await {
                // It was never told how to look for this one, so nobody can miss it.
                Existence::Unknown(Doubt::NotOurs { .. }) => known.surely_running = false,
                found => {
                    known.is_seen = matches!(found, Existence::Present(_));
                    looks += 1;
                }
            }
            if looks == MOST_LOOK_UPS {
                break;
            }
        }
    }

    /// Whether another cloud that may own a Node shows its machine: the IDs of some clouds do not tell
    /// accounts apart.
    fn is_shown_by_another(&self, cloud: &Cloud, node: &NodeView) -> bool {
        let Owner::Ask(owners) = owner_of(&node.facts, &self.parts.clouds) else {
            return false;
        };
        let mut others = owners.iter().filter(|owner| owner.name != cloud.name);
        others.any(|other| {
            seen_lately(other).is_some_and(|seen| other.shows(&seen.sweep, &node.facts))
        })
    }

    /// The Nodes whose provider ID names a machine of this cloud.
    pub(super) fn nodes_of(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let nodes = self.parts.nodes.all();
        with_machines(nodes, &self.parts.clouds, |owner| owner.may_be(cloud))
    }

    /// The machines of this cluster that a sweep shows, worked out once for all suspects that it serves.
    fn known_ids(&self, cloud: &Cloud, snapshot: &Arc<Snapshot>) -> Arc<BTreeSet<ProviderId>> {
        let known = self.with_guard(cloud, |guard| {
            let (of, known) = guard.known.as_ref()?;
            Arc::ptr_eq(of, snapshot).then(|| Arc::clone(known))
        });
        known.unwrap_or_else(|| {
            let nodes = self.nodes_of(cloud);
            let ids = nodes
                .iter()
                .filter_map(|node| cloud.shown_as(&snapshot.sweep, &node.facts).cloned());
            let known = Arc::new(ids.collect());
            let kept = (Arc::clone(snapshot), Arc::clone(&known));
            self.with_guard(cloud, |guard| guard.known = Some(kept));
            known
        })
    }
}

/// The last good sweep, unless it is too old to say anything about a scope.
fn seen_lately(cloud: &Cloud) -> Option<Arc<Snapshot>> {
    let latest = cloud.inventory.latest();
    latest.filter(|seen| seen.ended.elapsed() <= Sighting::FRESH_FOR)
}

fn no_answer(why: &str) -> Existence {
    Existence::Unknown(Doubt::NoAnswer(CloudError::new(
        "find machine",
        ErrorKind::Unsupported,
        why,
    )))
}
