//! What a Service asks of its balancer, with its current targets; `mod.rs` decides which Nodes these are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Features, LabelSelector, LoadBalancers, Problem, Problems, Shared, Target, TargetState, names,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::keys::{SharedKeys, TargetKeys, drain_removed, keys_of};
use super::{Candidate, TargetRules, choose, is_about_to_go, node_selector};
use crate::service::controller::ServiceController;
use crate::service::owner::ServiceOwner;
use crate::service::record::Record;
use crate::service::spec::{Draft, Setting, Warning, balancer_ref_of, draft};
use crate::view::ServiceView;

/// The cloud, the selector, and the features of a balancer that decide about its targets.
type Alike = (String, Option<LabelSelector>, [bool; 3]);

/// The targets of all Services that are alike.
#[derive(Clone)]
pub(crate) struct Choice {
    targets: Shared<BTreeMap<String, Target>>,
    pub(crate) keys: Arc<TargetKeys>,
}

/// What was chosen from the Nodes as they are, until a Node or a provider changes.
#[derive(Default)]
pub(crate) struct TargetCache(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    /// The version of the Nodes, and of the provider of each cloud.
    version: (u64, Vec<u64>),
    candidates: BTreeMap<String, Candidate>,
    choices: BTreeMap<Alike, Choice>,
    sets: SharedKeys,
}

/// What decides about the targets of a Service.
pub(super) fn target_rules<'a>(
    service: &ServiceView,
    owner: &'a ServiceOwner,
    balancers: &dyn LoadBalancers,
    features: Features,
) -> Result<TargetRules<'a>, Problem> {
    let own = balancers.node_selector(&service.annotations);
    Ok(TargetRules {
        owner,
        features,
        selector: node_selector(service, own)?,
    })
}

impl ServiceController {
    /// What a Service asks of its balancer now, and the keys of its targets. Targets that are no longer chosen
    /// drain first where the cloud can do that.
    pub(crate) fn desired(
        &self,
        service: &ServiceView,
        owner: &ServiceOwner,
        balancers: &dyn LoadBalancers,
    ) -> Result<(Draft, Arc<TargetKeys>), Problems> {
        let profile = balancers.profile(&balancer_ref_of(service, &self.parts.cluster));
        let features = profile.features;
        let rules = target_rules(service, owner, balancers, features);
        let (targets, keys) = match rules {
            Ok(rules) => {
                let chosen = self.chosen(&rules);
                let Choice { targets, keys } = self.with_draining(service, &rules, chosen);
                (Ok(targets), keys)
            }
            Err(problem) => (Err(problem), Arc::default()),
        };
        let setting = Setting {
            cluster: &self.parts.cluster,
            features,
            health_checks: self
                .settings
                .health_checks
                .over(profile.health_check, owner.is_own_config),
        };
        let mut draft = draft(service, targets, &setting)?;
        draft.spec.balancer_ref.others = self.others(&service.service, &owner.cloud);
        draft.spec.options.keeps_draining = self.inherited_drain(service).is_some();
        let unknown = balancers.unknown_annotations(&service.annotations);
        let unknown = unknown.into_iter().map(Warning::from);
        let others = Warning::of_other_clouds(owner, features);
        draft.warnings.extend(unknown.chain(others));
        Ok((draft, keys))
    }

    /// The targets that a Service selects, without those that drain.
    pub(super) fn chosen(&self, rules: &TargetRules<'_>) -> Choice {
        let Features {
            drain,
            targets_by_address,
            every_node,
            ..
        } = rules.features;
        let decisive = [drain, targets_by_address, every_node];
        let alike = (rules.owner.cloud.clone(), rules.selector.clone(), decisive);
        let mut cached = self.targets.0.lock();
        self.refresh(&mut cached);
        if let Some(choice) = cached.choices.get(&alike) {
            return choice.clone();
        }
        let targets = choose(cached.candidates.values(), rules);
        let choice = Choice {
            keys: cached.sets.share(keys_of(&targets)),
            targets: targets.into(),
        };
        cached.choices.insert(alike, choice.clone());
        choice
    }

    /// Forgets the choices if a Node or a provider has changed. Whose a Node is stays known unless it or a
    /// provider has changed.
    fn refresh(&self, cached: &mut Cached) {
        let clouds = &self.parts.clouds;
        let providers: Vec<_> = clouds.iter().map(|cloud| cloud.cell.version()).collect();
        let version = (self.parts.nodes.version(), providers);
        if cached.version == version {
            return;
        }
        cached.choices.clear();
        let mut before = std::mem::take(&mut cached.candidates);
        if cached.version.1 != version.1 {
            before.clear();
        }
        let nodes = self.parts.nodes.all().into_iter();
        cached.candidates = nodes
            .map(|node| {
                let name = node.facts.name.clone();
                let same = before.remove(&name);
                let same = same.filter(|before| Arc::ptr_eq(&before.node, &node));
                (name, same.unwrap_or_else(|| Candidate::new(node, clouds)))
            })
            .collect();
        cached.version = version;
    }

    fn with_draining(
        &self,
        service: &ServiceView,
        rules: &TargetRules<'_>,
        mut choice: Choice,
    ) -> Choice {
        let mut draining = TargetKeys::new();
        self.records.amend(&service.service.to_string(), |record| {
            (draining, _) = self.draining(service, rules, &choice.keys, record);
        });
        if draining.is_empty() {
            return choice;
        }
        for (name, key) in draining {
            let node = self.parts.nodes.get(&name);
            let node = node.map_or_else(|| key.facts(&name).into(), |node| node.facts.clone());
            let (by, state) = (key.by, key.state);
            choice.targets.insert(name, Target { node, by, state });
        }
        let keys = keys_of(&choice.targets);
        choice.keys = self.targets.0.lock().sets.share(keys);
        choice
    }

    /// The targets of a balancer that stay for a while although they are not `chosen` any more, and when the first of
    /// them is done. Where the cloud cannot drain, these are Nodes that are about to go: their connections end by
    /// themselves, and the balancer's own health check finds out.
    pub(super) fn draining(
        &self,
        service: &ServiceView,
        rules: &TargetRules<'_>,
        chosen: &Arc<TargetKeys>,
        record: &mut Record,
    ) -> (TargetKeys, Option<Instant>) {
        let applied = record.applied.clone();
        let Some(applied) = applied.filter(|applied| !Arc::ptr_eq(applied, chosen)) else {
            record.removed_since.clear();
            return (TargetKeys::new(), None);
        };
        let stays_as = |name: &str| {
            if rules.features.drain {
                return Some(TargetState::Draining);
            }
            let node = self.parts.nodes.get(name)?;
            is_about_to_go(&node, rules).then_some(TargetState::Serving)
        };
        let (removed, drain) = (&mut record.removed_since, self.drain_time(service));
        drain_removed(chosen, &applied, removed, Instant::now(), drain, stays_as)
    }

    /// How long what an earlier leader drains may still take: its time from the start of this process. `None` if that
    /// is over.
    pub(crate) fn inherited_drain(&self, service: &ServiceView) -> Option<Duration> {
        let left = self.drain_time(service).checked_sub(self.began.elapsed());
        left.filter(|left| !left.is_zero())
    }

    /// How long a target of this Service may finish its connections.
    pub(crate) fn drain_time(&self, service: &ServiceView) -> Duration {
        match names::LB_DRAIN_SECONDS.get(&service.annotations) {
            Ok(Some(seconds)) => Duration::from_secs(seconds.into()),
            Ok(None) | Err(_) => self.settings.drain,
        }
    }
}

#[cfg(test)]
mod tests;
