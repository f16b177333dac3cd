//! A cloud, a provider that sees it, and what checks do with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    BalancerRef, BuildError, CloudProvider, CollectedEvents, DesiredState, ErrorKind, Instances,
    KnownInstance, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, NodeFacts, Outcome,
    ProviderContext, Routes, TokioClock, Volumes,
};
use cloudkeel_emulation::CallTotals;

use super::actual::ActualBalancer;
use super::adapter::{Adapter, Stop};
use super::check::Done;
use super::cloud::Cloud;
use super::desired::cluster;
use super::fault::{Fault, FaultTiming};

/// How often a desired state is repeated through errors until it must have been reached.
const ATTEMPTS: usize = 60;

/// How often a balancer that the cloud is still working on is checked.
const POLLS: usize = 500;

/// How long to wait after an error.
const PAUSE: Duration = Duration::from_secs(30);

/// A cloud and a provider that sees it.
pub(super) struct TestEnv<'s> {
    adapter: &'s dyn Adapter,
    pub(super) cloud: Cloud,
    pub(super) provider: Arc<dyn CloudProvider>,
    clock: Arc<TokioClock>,
    events: Arc<CollectedEvents>,
}

impl<'s> TestEnv<'s> {
    pub(super) async fn new(adapter: &'s dyn Adapter) -> Result<Self, Stop> {
        let cloud = Cloud(adapter.new_cloud().await?);
        let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        let events = Arc::new(CollectedEvents::default());
        let provider = cloud.connect(context(&clock, &events)).await?;
        Ok(Self {
            adapter,
            cloud,
            provider,
            clock,
            events,
        })
    }

    /// Another cloud of the same kind, for checks that repeat one scenario.
    pub(super) async fn another(&self) -> Result<Self, Stop> {
        Self::new(self.adapter).await
    }

    /// Another provider that sees the same cloud and remembers nothing.
    pub(super) async fn reconnect(&self) -> Result<Arc<dyn CloudProvider>, BuildError> {
        self.cloud.connect(context(&self.clock, &self.events)).await
    }

    /// The events since the last call.
    pub(super) fn events(&self) -> Vec<cloudkeel_api::Event> {
        self.events.take()
    }

    pub(super) fn calls(&self) -> CallTotals {
        self.cloud.interposer().call_totals()
    }

    pub(super) fn inject(&self, when: FaultTiming, fault: Fault) -> Done {
        if self.cloud.interposer().inject(when, fault.scripted()) {
            return Ok(());
        }
        let message = format!("{fault:?} cannot be played in front of this cloud");
        Err(Stop::NotPlayable(message))
    }

    pub(super) fn clear_faults(&self) {
        self.cloud.interposer().clear_faults();
    }

    pub(super) fn instances(&self) -> Result<&dyn Instances, Stop> {
        let found = self.provider.instances();
        found.ok_or_else(|| Stop::not_playable("the provider has no instances"))
    }

    pub(super) fn balancers(&self) -> Result<&dyn LoadBalancers, Stop> {
        balancers_of(&*self.provider)
    }

    pub(super) fn routes(&self) -> Result<&dyn Routes, Stop> {
        let found = self.provider.routes();
        found.ok_or_else(|| Stop::not_playable("the provider has no routes"))
    }

    pub(super) fn volumes(&self) -> Result<&dyn Volumes, Stop> {
        let found = self.provider.volumes();
        found.ok_or_else(|| Stop::not_playable("the provider has no volumes"))
    }

    /// The Nodes of new instances `node-1`, `node-2` and so on.
    pub(super) async fn add_nodes(&self, count: usize) -> Result<Vec<NodeFacts>, Stop> {
        let mut nodes = Vec::with_capacity(count);
        for number in 1..=count {
            let name = format!("node-{number}");
            nodes.push(self.cloud.add_instance(&name).await?.node);
        }
        Ok(nodes)
    }

    /// The same, as many as the checks take apart.
    pub(super) async fn add_some<const N: usize>(&self) -> Result<[NodeFacts; N], Stop> {
        let nodes = self.add_nodes(N).await?;
        <[NodeFacts; N]>::try_from(nodes)
            .map_err(|_| Stop::not_playable("there are fewer instances than were added"))
    }

    /// What is counted during some work.
    pub(super) async fn counted<T>(&self, work: impl Future<Output = T>) -> (T, CallTotals) {
        let before = self.calls();
        let done = work.await;
        (done, self.calls().since(before))
    }

    /// A fresh known instance besides this Node's.
    pub(super) async fn known_instance_besides(
        &self,
        node: &NodeFacts,
    ) -> Result<Option<KnownInstance>, Stop> {
        let list = self.instances()?.list().await?;
        let id = node.provider_id.as_ref();
        let id = id.ok_or_else(|| Stop::not_playable("its instances have no IDs"))?;
        Ok(list.known_instance_besides(id, |_| true))
    }

    /// Applies a desired state as the service controller does, until it is reached. An error is one.
    pub(super) async fn settle(&self, spec: &LoadBalancerSpec) -> Result<LoadBalancerStatus, Stop> {
        for _ in 0..POLLS {
            match self.balancers()?.apply(DesiredState::Present(spec)).await? {
                Outcome::Settled { status, .. } => return Ok(status),
                Outcome::Incomplete { failures, .. } => return Err(failures.to_error().into()),
                Outcome::Pending { check_after, .. } => self.cloud.wait(check_after).await,
                Outcome::Gone { .. } => {
                    return Err(Stop::failed(
                        "a balancer was asked for, and the outcome is Gone",
                    ));
                }
            }
        }
        let message = format!("it is still pending after {POLLS} checks");
        Err(Stop::failed(message))
    }

    /// The same, through errors.
    pub(super) async fn settle_through_errors(
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
        Err(Stop::failed(format!("it is never reached: {last}")))
    }

    /// Removes a Service's balancer, until nothing of it is left. An error is one.
    pub(super) async fn remove(&self, balancer_ref: &BalancerRef) -> Done {
        self.end(DesiredState::Absent(balancer_ref)).await
    }

    /// The same for any desired state without a balancer of the Service.
    pub(super) async fn end(&self, desired: DesiredState<'_>) -> Done {
        for _ in 0..POLLS {
            match self.balancers()?.apply(desired).await {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Err(Stop::Unsupported(error.message().to_owned()));
                }
                Err(error) => return Err(error.into()),
                Ok(Outcome::Gone { .. }) => return Ok(()),
                Ok(Outcome::Pending { check_after, .. }) => self.cloud.wait(check_after).await,
                Ok(Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                    return Err(Stop::failed(
                        "no balancer was asked for, and the outcome has one",
                    ));
                }
            }
        }
        let message = format!("it is still there after {POLLS} checks");
        Err(Stop::failed(message))
    }

    /// The same, through errors.
    pub(super) async fn remove_through_errors(&self, balancer_ref: &BalancerRef) -> Done {
        self.end_through_errors(DesiredState::Absent(balancer_ref))
            .await
    }

    /// The same for any desired state without a balancer of the Service.
    pub(super) async fn end_through_errors(&self, desired: DesiredState<'_>) -> Done {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.end(desired).await {
                Ok(()) => return Ok(()),
                Err(stop @ Stop::Unsupported(_)) => return Err(stop),
                Err(stop) => last = Some(stop),
            }
            self.cloud.wait(PAUSE).await;
        }
        let last = last.map(|stop| stop.to_string()).unwrap_or_default();
        Err(Stop::failed(format!("it never goes: {last}")))
    }

    /// The one balancer that there should be.
    pub(super) async fn only_balancer(&self) -> Result<ActualBalancer, Stop> {
        let all = self.cloud.balancers().await?;
        match <[ActualBalancer; 1]>::try_from(all) {
            Ok([one]) => Ok(one),
            Err(all) => {
                let names: Vec<_> = all
                    .iter()
                    .map(|b| format!("{} {:?}", b.id, b.name))
                    .collect();
                let (count, names) = (names.len(), names.join(", "));
                let message = format!("there are {count} balancers in place of one: {names}");
                Err(Stop::failed(message))
            }
        }
    }

    /// That the one balancer has the ports and targets of a desired state.
    pub(super) async fn only_balancer_matches(&self, spec: &LoadBalancerSpec) -> Done {
        let only = self.only_balancer().await?;
        only.check_matches(spec).map_err(Stop::Failed)
    }

    /// The balancer of this ID.
    pub(super) async fn balancer(&self, id: &str) -> Result<ActualBalancer, Stop> {
        let mut all = self.cloud.balancers().await?.into_iter();
        let found = all.find(|balancer| balancer.id == id);
        found.ok_or_else(|| Stop::failed(format!("balancer {id} has vanished")))
    }

    /// How many resources of each kind there are, besides instances.
    pub(super) async fn resources(&self) -> Result<BTreeMap<&'static str, usize>, Stop> {
        let mut kinds = BTreeMap::new();
        let state = self.cloud.state().await?;
        kinds.insert("balancer", state.balancers.len());
        kinds.insert("route", state.routes.len());
        for resource in state.others {
            *kinds.entry(resource.kind).or_default() += 1;
        }
        Ok(kinds)
    }
}

fn context(clock: &Arc<TokioClock>, events: &Arc<CollectedEvents>) -> ProviderContext {
    ProviderContext {
        cluster: cluster(),
        clock: Arc::<TokioClock>::clone(clock),
        events: Arc::<CollectedEvents>::clone(events),
        ..ProviderContext::detached("conformance")
    }
}

pub(super) fn balancers_of(provider: &dyn CloudProvider) -> Result<&dyn LoadBalancers, Stop> {
    let found = provider.load_balancers();
    found.ok_or_else(|| Stop::not_playable("the provider has no load balancers"))
}

/// Fails with a reason unless something holds.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Done {
    if holds {
        Ok(())
    } else {
        Err(Stop::Failed(why()))
    }
}

/// That work made no call that could change something.
pub(super) fn ensure_unchanged(calls: CallTotals, when: &str) -> Done {
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls {when}", calls.mutating)
    })
}
