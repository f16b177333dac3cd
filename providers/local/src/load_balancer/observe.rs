//! What is there, and whose it is.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerFinder, Claim, Claimable, CloudError, Event, Judged, LoadBalancerSpec, Owner, Priority,
    ServiceRef, SharedList, Wish,
};

use super::LocalBalancers;
use super::desired::{Targets, balancer_name};
use super::marks::{SERVICE_UID, owner};
use crate::wire::{Balancer, TargetAt};

/// The reason of the event about targets that cannot be reached.
const TARGET_UNRESOLVED: &str = "TargetUnresolved";

/// The reason of the event about a balancer that does not work.
const PROBLEM: &str = "LoadBalancerProblem";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The balancer that is ours or will be.
    pub(super) found: Judged<Balancer>,
    /// Machines that are wanted as new targets and that the cloud does not know.
    pub(super) unknown_machines: BTreeSet<u64>,
}

impl Claimable for Balancer {
    const THING: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[async_trait]
impl BalancerFinder for LocalBalancers {
    type Balancer = Balancer;

    async fn marked(&self, service: &ServiceRef) -> Result<Vec<Balancer>, CloudError> {
        let uid = &service.uid;
        self.api.balancers_with_label(SERVICE_UID, uid).await
    }

    async fn with_id(&self, id: &str) -> Result<Balancer, CloudError> {
        self.api.balancer(id).await
    }

    async fn named(&self, name: &str) -> Result<Vec<Balancer>, CloudError> {
        self.api.balancers_named(name).await
    }

    async fn all(&self) -> Result<Vec<Balancer>, CloudError> {
        self.api.balancers(Priority::Normal).await
    }

    fn shared_list(&self) -> Option<&SharedList<Balancer>> {
        Some(&self.list)
    }

    fn is_marked(&self, balancer: &Balancer, service: &ServiceRef) -> bool {
        balancer.labels.get(SERVICE_UID) == Some(&service.uid)
    }

    fn owner(&self, balancer: &Balancer, claim: &Claim) -> Owner {
        owner(&balancer.labels, claim, self.facts.cluster.as_deref())
    }
}

impl LocalBalancers {
    pub(super) async fn observe_one(&self, wish: Wish<'_>) -> Result<Observed, CloudError> {
        let claim = wish.claim();
        let Wish::Present(spec) = wish else {
            return Ok(Observed {
                found: self.find_going(claim).await?,
                ..Observed::default()
            });
        };
        let found = self.find(claim, &balancer_name(spec)).await?;
        let observed = self.complete(spec, found).await?;
        self.tell_unresolved(spec, &observed);
        self.tell_problems(spec, &observed);
        Ok(observed)
    }

    /// What else the plan needs to know of a balancer.
    pub(super) async fn complete(
        &self,
        spec: &LoadBalancerSpec,
        found: Judged<Balancer>,
    ) -> Result<Observed, CloudError> {
        let mut observed = Observed {
            found,
            ..Observed::default()
        };
        let new = self.new_machines(spec, &observed);
        observed.unknown_machines = self.unknown_among(&new, Priority::Normal).await?;
        Ok(observed)
    }

    /// One list of balancers and one look-up of machines for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let all = || self.api.balancers(Priority::Background);
        let all = self.list.all(all).await?;
        let mut observed: Vec<Result<Observed, CloudError>> = specs
            .iter()
            .map(|spec| {
                let found = self.find_among(&all, &spec.claim, &balancer_name(spec))?;
                Ok(Observed {
                    found,
                    ..Observed::default()
                })
            })
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
        let present = seen.found.balancer().into_iter();
        let present = present.flat_map(|balancer| &balancer.targets);
        let present: BTreeSet<TargetAt> = present.map(|target| target.at).collect();
        let places = Targets::of(spec, &self.facts).places.into_keys();
        places
            .filter_map(|at| match at {
                TargetAt::Machine(id) if !present.contains(&at) => Some(id),
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
        for problem in seen
            .found
            .ours
            .iter()
            .flat_map(|balancer| &balancer.problems)
        {
            let message = format!("the load balancer does not work: {problem}");
            let event = Event::warning(&spec.claim.service, PROBLEM, message);
            self.events.emit(event);
        }
    }

    fn tell_unresolved(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        let targets = Targets::of(spec, &self.facts).known(&seen.unknown_machines);
        for (node, why) in &targets.unresolved {
            if !self.patience.is_over(&format!("{node}: {why}")) {
                // As when a Node is new, or its machine is replaced.
                continue;
            }
            let message = format!("{node} gets no traffic yet: {why}");
            let event = Event::warning(&spec.claim.service, TARGET_UNRESOLVED, message);
            self.events.emit(event);
        }
    }
}
