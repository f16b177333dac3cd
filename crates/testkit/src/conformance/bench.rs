//! A cloud, a provider that sees it, and what checks do with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Claim, CloudProvider, Instances, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers,
    NodeFacts, Outcome, Routes, Sighting, Wish,
};

use super::check::Done;
use super::emulator::{Calls, Emulator, Setup, Stop};
use super::seen::SeenBalancer;

/// How often a wish is repeated through errors until it must have come true.
const ATTEMPTS: usize = 60;

/// How often a balancer that the cloud is still working on is looked at.
const LOOKS: usize = 500;

/// How long to wait after an error.
const PAUSE: Duration = Duration::from_secs(30);

/// A cloud and a provider that sees it.
pub(super) struct Bench<'s> {
    setup: &'s dyn Setup,
    pub(super) cloud: Box<dyn Emulator>,
    pub(super) provider: Arc<dyn CloudProvider>,
}

impl<'s> Bench<'s> {
    pub(super) async fn new(setup: &'s dyn Setup) -> Result<Self, Stop> {
        let cloud = setup.new_cloud().await?;
        let provider = cloud.connect().await?;
        Ok(Self {
            setup,
            cloud,
            provider,
        })
    }

    /// Another cloud of the same kind, for checks that tell one story several times.
    pub(super) async fn another(&self) -> Result<Self, Stop> {
        Self::new(self.setup).await
    }

    pub(super) fn instances(&self) -> Result<&dyn Instances, Stop> {
        let found = self.provider.instances();
        found.ok_or_else(|| Stop::cannot_play("the provider has no instances"))
    }

    pub(super) fn balancers(&self) -> Result<&dyn LoadBalancers, Stop> {
        balancers_of(&*self.provider)
    }

    pub(super) fn routes(&self) -> Result<&dyn Routes, Stop> {
        let found = self.provider.routes();
        found.ok_or_else(|| Stop::cannot_play("the provider has no routes"))
    }

    /// Machines `node-1`, `node-2` and so on.
    pub(super) async fn machines(&self, count: usize) -> Result<Vec<NodeFacts>, Stop> {
        let mut nodes = Vec::with_capacity(count);
        for number in 1..=count {
            nodes.push(self.cloud.add_machine(&format!("node-{number}")).await?);
        }
        Ok(nodes)
    }

    /// What is counted while `work` is done.
    pub(super) async fn counted<T>(&self, work: impl Future<Output = T>) -> (T, Calls) {
        let before = self.cloud.calls();
        let done = work.await;
        (done, self.cloud.calls().since(before))
    }

    /// A fresh sighting of a machine besides this Node's.
    pub(super) async fn sighting_besides(
        &self,
        node: &NodeFacts,
    ) -> Result<Option<Sighting>, Stop> {
        let sweep = self.instances()?.sweep().await?;
        let id = node.provider_id.as_ref();
        let id = id.ok_or_else(|| Stop::cannot_play("its machines have no IDs"))?;
        Ok(sweep.sighting_besides(id, |_| true))
    }

    /// Applies a wish as the service controller does, until it has come true. An error is one.
    pub(super) async fn settle(&self, spec: &LoadBalancerSpec) -> Result<LoadBalancerStatus, Stop> {
        for _ in 0..LOOKS {
            match self.balancers()?.apply(Wish::Present(spec)).await? {
                Outcome::Settled { status, .. } => return Ok(status),
                Outcome::Incomplete { failures, .. } => return Err(failures.to_error().into()),
                Outcome::Pending { check_after, .. } => self.cloud.wait(check_after).await,
                Outcome::Gone { .. } => return Err(Stop::wrong("a wish for one ended as Gone")),
            }
        }
        let message = format!("it is still pending after {LOOKS} looks");
        Err(Stop::wrong(message))
    }

    /// The same, through errors.
    pub(super) async fn settle_at_last(
        &self,
        spec: &LoadBalancerSpec,
    ) -> Result<LoadBalancerStatus, Stop> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.settle(spec).await {
                Ok(status) => return Ok(status),
                Err(stop) => last = Some(stop),
            }
            self.cloud.wait(PAUSE).await;
        }
        let last = last.map(|stop| stop.to_string()).unwrap_or_default();
        Err(Stop::wrong(format!("it never comes right: {last}")))
    }

    /// Takes a Service's balancer down, until nothing of it is left. An error is one.
    pub(super) async fn remove(&self, claim: &Claim) -> Done {
        for _ in 0..LOOKS {
            match self.balancers()?.apply(Wish::Absent(claim)).await? {
                Outcome::Gone { .. } => return Ok(()),
                Outcome::Pending { check_after, .. } => self.cloud.wait(check_after).await,
                Outcome::Settled { .. } | Outcome::Incomplete { .. } => {
                    return Err(Stop::wrong("a wish for none ended as Settled"));
                }
            }
        }
        let message = format!("it is still there after {LOOKS} looks");
        Err(Stop::wrong(message))
    }

    /// The same, through errors.
    pub(super) async fn remove_at_last(&self, claim: &Claim) -> Done {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.remove(claim).await {
                Ok(()) => return Ok(()),
                Err(stop) => last = Some(stop),
            }
            self.cloud.wait(PAUSE).await;
        }
        let last = last.map(|stop| stop.to_string()).unwrap_or_default();
        Err(Stop::wrong(format!("it never goes: {last}")))
    }

    /// The one balancer that there should be.
    pub(super) fn only_balancer(&self) -> Result<SeenBalancer, Stop> {
        let all = self.cloud.balancers();
        match <[SeenBalancer; 1]>::try_from(all) {
            Ok([one]) => Ok(one),
            Err(all) => {
                let names: Vec<_> = all
                    .iter()
                    .map(|b| format!("{} {:?}", b.id, b.name))
                    .collect();
                let (count, names) = (names.len(), names.join(", "));
                let message = format!("there are {count} balancers in place of one: {names}");
                Err(Stop::wrong(message))
            }
        }
    }

    /// The balancer of this ID.
    pub(super) fn balancer(&self, id: &str) -> Result<SeenBalancer, Stop> {
        let mut all = self.cloud.balancers().into_iter();
        let found = all.find(|balancer| balancer.id == id);
        found.ok_or_else(|| Stop::wrong(format!("balancer {id} has vanished")))
    }

    /// How many things of each kind there are.
    pub(super) fn kinds(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for thing in self.cloud.things() {
            *kinds.entry(thing.kind).or_default() += 1;
        }
        kinds
    }
}

pub(super) fn balancers_of(provider: &dyn CloudProvider) -> Result<&dyn LoadBalancers, Stop> {
    let found = provider.load_balancers();
    found.ok_or_else(|| Stop::cannot_play("the provider has no load balancers"))
}

/// Fails with a reason unless something holds.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Done {
    if holds {
        Ok(())
    } else {
        Err(Stop::Wrong(why()))
    }
}
