//! What is there, and whose it is.

use std::collections::BTreeSet;

use cloudkeel_api::{
    Claim, Claimable, CloudError, Event, Judged, LoadBalancerSpec, Namesakes, Owner, Priority, Wish,
};

use super::desired::{Targets, balancer_name};
use super::marks::{SERVICE_UID, owner};
use super::{Facts, LocalBalancers};
use crate::client::Api;
use crate::wire::{Balancer, TargetAt};

/// The reason of the event about targets that cannot be reached.
const TARGET_UNRESOLVED: &str = "TargetUnresolved";

/// The reason of the event about a balancer that does not work.
const PROBLEM: &str = "LoadBalancerProblem";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// Balancers with our mark: at most one, unless they are to go.
    pub(super) ours: Vec<Balancer>,
    /// The balancer that a person asked to take over, if it is nobody's.
    pub(super) adoptable: Option<Balancer>,
    /// Machines that are wanted as new targets and that the cloud does not know.
    pub(super) unknown_machines: BTreeSet<u64>,
}

impl Observed {
    /// The one balancer that is ours or will be.
    pub(super) fn balancer(&self) -> Option<&Balancer> {
        self.ours.first().or(self.adoptable.as_ref())
    }
}

/// The balancers that could matter to a claim.
pub(super) type Candidates = cloudkeel_api::Candidates<Balancer>;

impl Claimable for Balancer {
    const THING: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl From<Judged<Balancer>> for Observed {
    fn from(judged: Judged<Balancer>) -> Self {
        Self {
            ours: judged.ours,
            adoptable: judged.adoptable,
            ..Self::default()
        }
    }
}

impl LocalBalancers {
    pub(super) async fn observe_one(&self, wish: Wish<'_>) -> Result<Observed, CloudError> {
        let claim = wish.claim();
        let uid = &claim.service.uid;
        let marked = self.api.balancers_with_label(SERVICE_UID, uid).await?;
        let Wish::Present(spec) = wish else {
            return Ok(Observed {
                ours: ours(marked, claim, &self.facts),
                ..Observed::default()
            });
        };
        let mut candidates = Candidates {
            marked,
            ..Candidates::default()
        };
        if candidates.marked.is_empty() {
            if let Some(id) = &claim.adopt {
                candidates.asked_for = asked_for(&self.api, id).await?;
            } else {
                let name = balancer_name(spec);
                candidates.namesakes = self.api.balancers_named(&name).await?;
            }
        }
        let mut observed = judge(claim, &self.facts, candidates)?;
        let new = self.new_machines(spec, &observed);
        observed.unknown_machines = self.unknown_among(&new, Priority::Normal).await?;
        self.tell_unresolved(spec, &observed);
        self.tell_problems(spec, &observed);
        Ok(observed)
    }

    /// One list of balancers and one look-up of machines for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let all = self.api.balancers(Priority::Background).await?;
        let mut observed: Vec<_> = specs
            .iter()
            .map(|spec| judge(&spec.claim, &self.facts, candidates(spec, &all)))
            .collect();
        let pairs = || specs.iter().zip(&observed);
        let new: BTreeSet<u64> = pairs()
            .filter_map(|(spec, seen)| Some(self.new_machines(spec, seen.as_ref().ok()?)))
            .flatten()
            .collect();
        let unknown = self.unknown_among(&new, Priority::Background).await?;
        for seen in observed.iter_mut().flatten() {
            seen.unknown_machines.clone_from(&unknown);
        }
        Ok(observed)
    }

    /// Machines that would become targets.
    fn new_machines(&self, spec: &LoadBalancerSpec, seen: &Observed) -> BTreeSet<u64> {
        let balancer = seen.balancer();
        let is_target = |at| balancer.is_some_and(|b| b.targets.iter().any(|t| t.at == at));
        let places = Targets::of(spec, &self.facts).places.into_keys();
        places
            .filter_map(|at| match at {
                TargetAt::Machine(id) if !is_target(at) => Some(id),
                TargetAt::Machine(_) | TargetAt::Ip(_) => None,
            })
            .collect()
    }

    /// Those of these machines that the cloud does not know. It would refuse all new targets for one
    /// of them.
    async fn unknown_among(
        &self,
        new: &BTreeSet<u64>,
        priority: Priority,
    ) -> Result<BTreeSet<u64>, CloudError> {
        if new.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids: Vec<u64> = new.iter().copied().collect();
        let found = self.api.machines_with_ids(&ids, priority).await?;
        let found = found.value.iter().filter(|machine| machine.is_alive());
        let found: BTreeSet<u64> = found.map(|machine| machine.id).collect();
        Ok(new.difference(&found).copied().collect())
    }

    /// The cloud did what it was asked to and cannot make it work, which only a person can change.
    fn tell_problems(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        for problem in seen.ours.iter().flat_map(|balancer| &balancer.problems) {
            let message = format!("the load balancer does not work: {problem}");
            let event = Event::warning(&spec.claim.service, PROBLEM, message);
            self.events.emit(event);
        }
    }

    fn tell_unresolved(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        let targets = Targets::of(spec, &self.facts).known(&seen.unknown_machines);
        for (node, why) in &targets.unresolved {
            let message = format!("{node} gets no traffic yet: {why}");
            let event = Event::warning(&spec.claim.service, TARGET_UNRESOLVED, message);
            self.events.emit(event);
        }
    }
}

/// What matters to one spec among all balancers.
fn candidates(spec: &LoadBalancerSpec, all: &[Balancer]) -> Candidates {
    let uid = &spec.claim.service.uid;
    let is_marked = |balancer: &Balancer| balancer.labels.get(SERVICE_UID) == Some(uid);
    Candidates::among(all, &spec.claim, &balancer_name(spec), is_marked)
}

async fn asked_for(api: &Api, id: &str) -> Result<Option<Balancer>, CloudError> {
    match api.balancer(id).await {
        Ok(balancer) => Ok(Some(balancer)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn ours(marked: Vec<Balancer>, claim: &Claim, facts: &Facts) -> Vec<Balancer> {
    let cluster = facts.cluster.as_deref();
    let is_ours = |b: &Balancer| owner(&b.labels, claim, cluster) == Owner::Us;
    marked.into_iter().filter(is_ours).collect()
}

/// Which balancer is this Service's. Pure.
pub(super) fn judge(
    claim: &Claim,
    facts: &Facts,
    candidates: Candidates,
) -> Result<Observed, CloudError> {
    let owner_of = |b: &Balancer| owner(&b.labels, claim, facts.cluster.as_deref());
    let judged = candidates.judge(claim, Namesakes::InTheWay, owner_of)?;
    Ok(judged.into())
}
