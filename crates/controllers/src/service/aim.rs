//! What a balancer should aim at, by the Nodes as they are at this very moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{Features, LoadBalancers, NodeFacts, Problems, Target, names};
use tokio::time::Instant;

use super::controller::ServiceController;
use super::marks::{Aimed, Leaving, Marks, Patience, let_go};
use super::spec::{Draft, Setting, draft};
use super::targets::{Candidate, TargetRules, choose, node_selector};
use super::wants::Serving;
use crate::view::{Change, NodeView, ServiceView, View as _};

/// A Node that nobody drains is forgotten after this long.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

impl ServiceController {
    /// What a Service asks of its balancer now. Targets that are no longer chosen are drained first
    /// where the cloud can do that.
    pub(super) fn draft(
        &self,
        service: &Arc<ServiceView>,
        serving: &Serving,
        balancers: &dyn LoadBalancers,
    ) -> Result<Draft, Problems> {
        let features = balancers.features();
        let nodes = self.parts.nodes.all();
        let candidates = self.candidates(&nodes);
        let mut targets = self.choose(&candidates, service, serving, features);
        self.records.amend(&service.key(), |record| {
            let applied = record.applied().cloned();
            self.drain(
                service,
                features,
                &mut targets,
                applied.as_deref(),
                &mut record.leaving,
            );
        });
        let setting = Setting {
            cluster: &self.parts.cluster,
            features,
            health_checks: self.settings.health_checks.over(balancers.health_checks()),
        };
        draft(service, targets, &setting)
    }

    pub(super) fn candidates<'a>(&'a self, nodes: &'a [Arc<NodeView>]) -> Vec<Candidate<'a>> {
        nodes
            .iter()
            .map(|node| Candidate::new(node, &self.parts.clouds))
            .collect()
    }

    /// The targets of a Service, those that leave aside.
    pub(super) fn choose(
        &self,
        candidates: &[Candidate<'_>],
        service: &ServiceView,
        serving: &Serving,
        features: Features,
    ) -> BTreeMap<String, Target> {
        // One that cannot be read is told with everything else that is wrong with the Service.
        let selector = node_selector(service).ok().flatten();
        if selector.is_some() {
            self.labels_matter.store(true, Ordering::Relaxed);
        }
        let rules = TargetRules {
            serving,
            features,
            selector,
        };
        choose(candidates, &rules)
    }

    /// Adds those that leave and are to be drained. Returns when the first of them has had its time.
    pub(super) fn drain<T: Aimed>(
        &self,
        service: &ServiceView,
        features: Features,
        targets: &mut BTreeMap<String, T>,
        applied: Option<&Marks>,
        leaving: &mut Leaving,
    ) -> Option<Instant> {
        let applied = applied.filter(|_| features.drain)?;
        let asked_for = names::LB_DRAIN_SECONDS.get(&service.annotations);
        let asked_for = asked_for.ok().flatten();
        let patience = Patience {
            now: Instant::now(),
            drain: asked_for.map_or(self.settings.drain, |seconds| {
                Duration::from_secs(seconds.into())
            }),
        };
        let facts = |name: &str| self.last_facts(name);
        let_go(targets, applied, leaving, facts, patience)
    }

    /// A Node as it is, or was when it went.
    fn last_facts(&self, name: &str) -> Option<NodeFacts> {
        if let Some(node) = self.parts.nodes.get(name) {
            return Some(node.facts.clone());
        }
        let departed = self.departed();
        departed.get(name).map(|(node, _)| node.facts.clone())
    }

    /// Remembers a Node that is gone, and forgets one that is back.
    pub(super) fn note_departure(&self, change: &Change<NodeView>) {
        match (&change.before, &change.after) {
            (Some(gone), None) => {
                let name = gone.facts.name.clone();
                let node = (Arc::clone(gone), Instant::now());
                self.departed().insert(name, node);
            }
            (_, Some(here)) => {
                self.departed().remove(&here.facts.name);
            }
            (None, None) => {}
        }
    }

    /// Forgets Nodes that are gone, unless somebody still drains them.
    pub(super) fn forget_departed(&self, is_drained: impl Fn(&str) -> bool) {
        self.departed()
            .retain(|name, (_, since)| since.elapsed() < FORGOTTEN_AFTER || is_drained(name));
    }

    fn departed(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Arc<NodeView>, Instant)>> {
        self.departed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
