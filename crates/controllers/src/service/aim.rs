//! What a balancer should aim at, by the Nodes as they are at this very moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Features, LabelSelector, LoadBalancers, NodeFacts, Problem, Problems, Shared, names,
};
use tokio::time::Instant;

use super::choices::Choice;
use super::claim::claim_of;
use super::controller::ServiceController;
use super::marks::{Aimed, Drained, Leaving, Marks, Patience, let_go, marks_of};
use super::spec::{Draft, Setting, Warning, draft};
use super::targets::node_selector;
use super::wants::Serving;
use crate::view::{Change, NodeView, ServiceView, View as _};

/// A Node that nobody drains is forgotten after this long.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// What a Service asks of its balancer.
pub(super) struct Aim {
    pub(super) draft: Draft,
    /// Its targets, as they are remembered.
    pub(super) marks: Arc<Marks>,
}

impl ServiceController {
    /// What a Service asks of its balancer now. Targets that are no longer chosen are drained first
    /// where the cloud can do that.
    pub(super) fn draft(
        &self,
        service: &Arc<ServiceView>,
        serving: &Serving,
        balancers: &dyn LoadBalancers,
    ) -> Result<Aim, Problems> {
        let profile = balancers.profile(&claim_of(service, &self.parts.cluster));
        let features = profile.features;
        let selector = Self::selector_of(service, balancers);
        let choice = selector.map(|selector| {
            let choice = self.choice(serving, features, selector);
            self.with_leaving(service, features, choice)
        });
        let (targets, marks) = match choice {
            Ok(choice) => (Ok(choice.targets), choice.marks),
            Err(problem) => (Err(problem), Arc::default()),
        };
        let setting = Setting {
            cluster: &self.parts.cluster,
            features,
            health_checks: self.settings.health_checks.over(profile.health_check),
        };
        let mut draft = draft(service, targets, &setting)?;
        let unknown = balancers.unknown_annotations(&service.annotations);
        draft
            .warnings
            .extend(unknown.into_iter().map(Warning::from));
        Ok(Aim { draft, marks })
    }

    /// Which Nodes a Service selects, whoever's annotation says so.
    pub(super) fn selector_of(
        service: &ServiceView,
        balancers: &dyn LoadBalancers,
    ) -> Result<Option<LabelSelector>, Problem> {
        node_selector(service, balancers.node_selector(&service.annotations))
    }

    /// The same with those that leave and are to be drained.
    fn with_leaving(
        &self,
        service: &Arc<ServiceView>,
        features: Features,
        mut choice: Choice,
    ) -> Choice {
        let mut drained = Vec::new();
        self.records.amend(&service.key(), |record| {
            let applied = record.applied().cloned();
            let leaving = &mut record.leaving;
            if applied
                .as_ref()
                .is_some_and(|it| Arc::ptr_eq(it, &choice.marks))
            {
                leaving.clear();
            } else {
                let applied = applied.as_deref();
                let drain = self.drain(service, features, &choice.targets, applied, leaving);
                drained = drain.targets;
            }
        });
        if !drained.is_empty() {
            choice.targets.extend(drained);
            choice.marks = self.records.share(marks_of(&choice.targets));
        }
        choice
    }

    /// Those that leave and are to be drained.
    pub(super) fn drain<T: Aimed>(
        &self,
        service: &ServiceView,
        features: Features,
        chosen: &BTreeMap<String, T>,
        applied: Option<&Marks>,
        leaving: &mut Leaving,
    ) -> Drained<T> {
        let Some(applied) = applied.filter(|_| features.drain) else {
            return Drained::default();
        };
        let asked_for = names::LB_DRAIN_SECONDS.get(&service.annotations);
        let asked_for = asked_for.ok().flatten();
        let patience = Patience {
            now: Instant::now(),
            drain: asked_for.map_or(self.settings.drain, |seconds| {
                Duration::from_secs(seconds.into())
            }),
        };
        let facts = |name: &str| self.last_facts(name);
        let_go(chosen, applied, leaving, facts, patience)
    }

    /// A Node as it is, or was when it went.
    fn last_facts(&self, name: &str) -> Option<Shared<NodeFacts>> {
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

#[cfg(test)]
mod tests;
