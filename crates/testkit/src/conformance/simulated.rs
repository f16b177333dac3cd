//! The simulated cloud under the kit: for the provider that speaks its API, and for any other that does.

mod state;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{self as api, BuildError, CloudProvider, NodeAddress, ProviderContext};
use cloudkeel_emulation::FaultInjector;
use futures::future::BoxFuture;

use super::actual::{ActualInstance, ActualState};
use super::adapter::{
    Adapter, Change, OrNotPlayable as _, OwnerLabels, Samples, Stop, TestCloud, declared_gaps,
};
use super::fault::ELSEWHERE;
use crate::simulated_cloud::wire::{
    AddressScope, Balancer, Hop, Machine, MachineAddress, NewBalancer, NewRoute, TargetAt, Volume,
};
use crate::simulated_cloud::{Latency, Limits, MachineSpec, Refusal, Settings, SimulatedCloud};

/// Instances of a list that fit on a page.
const PAGE: usize = 50;

/// How much a balancer takes: few enough to fill one up.
const MAX_TARGETS: u32 = 20;
const MAX_LISTENERS: u32 = 8;

/// The machine of another client.
const ROUTER: &str = "router-of-another-client";

/// How long a terminated instance is still shown.
const TOMBSTONE: Duration = Duration::from_hours(1);

/// How a provider is connected to a simulated cloud.
type Connect = dyn Fn(SimulatedCloud, ProviderContext) -> Connecting + Send + Sync;

/// A provider that is being connected.
pub type Connecting = BoxFuture<'static, Result<Arc<dyn CloudProvider>, BuildError>>;

/// The simulated cloud, seen by a provider of the author's choice that labels balancers with
/// `cloudkeel.dev/service-uid`.
pub struct SimulatedAdapter {
    name: &'static str,
    connect: Arc<Connect>,
    gaps: Vec<(&'static str, &'static str)>,
    ids: fn(u64) -> String,
    settings: Settings,
    samples: Samples,
}

impl SimulatedAdapter {
    /// For the provider of this name.
    pub fn new(
        name: &'static str,
        connect: impl Fn(SimulatedCloud, ProviderContext) -> Connecting + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            connect: Arc::new(connect),
            gaps: Vec::new(),
            ids: |machine| format!("local://{}/{machine}", SimulatedCloud::PROJECT),
            settings: Settings {
                // Slow enough for two callers to meet.
                latency: Latency {
                    fixed: Duration::from_millis(5),
                    jitter: Duration::from_millis(5),
                },
                page_size: PAGE as u64,
                limits: Limits {
                    targets: MAX_TARGETS as usize,
                    listeners: MAX_LISTENERS as usize,
                    ..Limits::default()
                },
                ..Settings::default()
            },
            samples: Samples {
                secrets: vec![SimulatedCloud::TOKEN.to_owned()],
                page_size: Some(PAGE),
                limits: api::Limits {
                    targets: Some(MAX_TARGETS),
                    listeners: Some(MAX_LISTENERS),
                    rules: None,
                },
                sizes: Some(["small", "large"]),
                address: "198.18.77.77".parse().ok(),
                outside_target: Some(NodeAddress::internal([10, 0, 200, 7].into())),
                ..Samples::default()
            },
        }
    }

    /// With these declared gaps, as in [`adapter()`](super::adapter()).
    #[must_use]
    pub fn with_gaps(mut self, gaps: &[&'static str]) -> Self {
        self.gaps = declared_gaps(gaps);
        self
    }

    /// With clouds that behave otherwise.
    #[must_use]
    pub fn with_settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// With these provider IDs, in place of the local provider's.
    #[must_use]
    pub fn with_ids(mut self, ids: fn(u64) -> String) -> Self {
        self.ids = ids;
        self
    }

    /// With other samples.
    #[must_use]
    pub fn with_samples(mut self, change: impl FnOnce(&mut Samples)) -> Self {
        change(&mut self.samples);
        self
    }
}

#[async_trait]
impl Adapter for SimulatedAdapter {
    fn name(&self) -> &str {
        self.name
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        let cloud = SimulatedCloud::new(self.settings.clone());
        cloud.add_project(ELSEWHERE);
        let theirs = MachineSpec::named("theirs").in_project(ELSEWHERE);
        cloud.add_machine(theirs).or_not_playable()?;
        Ok(Box::new(SimulatedTestCloud {
            cloud,
            connect: Arc::clone(&self.connect),
            ids: self.ids,
            samples: self.samples.clone(),
        }))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        &self.gaps
    }
}

/// One simulated cloud.
struct SimulatedTestCloud {
    cloud: SimulatedCloud,
    connect: Arc<Connect>,
    ids: fn(u64) -> String,
    samples: Samples,
}

impl SimulatedTestCloud {
    fn machine_id(&self, name: &str) -> Result<u64, Stop> {
        let mut machines = self.cloud.machines().into_iter();
        let found = machines.find(|machine| machine.name == name && machine.is_alive());
        let found = found.ok_or_else(|| Stop::not_playable(format!("no machine {name}")))?;
        Ok(found.id)
    }

    /// With addresses of both kinds and families, not in the order of their kinds.
    fn machine(&self, name: &str) -> MachineSpec {
        let last = u16::try_from(self.cloud.machines().len()).unwrap_or(u16::MAX);
        let [high, low] = last.to_be_bytes();
        MachineSpec::named(name)
            .size("standard-4")
            .zone("sim-1-b")
            .public([203, 0, high, low].into())
            .private([10, 1, high, low].into())
            .private([0xfd00, 0, 0, 0, 0, 0, 0, last].into())
    }

    fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(&mut Balancer),
    ) -> Result<Result<(), Refusal>, Stop> {
        Ok(self.cloud.edit_balancer(number(id)?, edit).map(drop))
    }

    fn actual(&self, machine: Machine) -> ActualInstance {
        let addresses = machine.addresses.iter().map(|address| match address.scope {
            AddressScope::Private => NodeAddress::internal(address.ip),
            AddressScope::Public => NodeAddress::external(address.ip),
        });
        let mut actual = ActualInstance::new((self.ids)(machine.id), &machine.name, addresses)
            .of_type(machine.kind)
            .at(machine.zone, machine.region);
        actual.node.system_uuid = Some(machine.uuid);
        actual
    }
}

fn number(id: &str) -> Result<u64, Stop> {
    id.parse().or_not_playable()
}

fn new_balancer(name: &str, owner: OwnerLabels) -> NewBalancer {
    NewBalancer {
        name: name.to_owned(),
        labels: owner.labels("cloudkeel.dev/service-uid", "cloudkeel.dev/cluster-uid"),
        ..NewBalancer::default()
    }
}

fn volume() -> Volume {
    Volume {
        id: "vol-1".to_owned(),
        zones: vec!["sim-1-b".to_owned(), "sim-1-a".to_owned()],
        region: SimulatedCloud::REGION.to_owned(),
    }
}

#[async_trait]
impl TestCloud for SimulatedTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        (self.connect)(self.cloud.clone(), context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.cloud
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let cloud = &self.cloud;
        match change {
            Change::AddInstance(name) => cloud.add_machine(self.machine(name)).map(drop),
            Change::DestroyInstance(name) => cloud.destroy(self.machine_id(name)?),
            Change::SwitchOff(name) => cloud.power_off(self.machine_id(name)?).map(drop),
            Change::Terminate(name) => {
                cloud.change_settings(|now| now.keep_deleted = TOMBSTONE);
                cloud.destroy(self.machine_id(name)?)
            }
            Change::Modify(name) => {
                let modified = cloud.edit_machine(self.machine_id(name)?, |machine| {
                    "standard-8".clone_into(&mut machine.kind);
                    let another = MachineAddress::private([10, 9, 9, 9].into());
                    machine.addresses.insert(0, another);
                });
                modified.map(drop)
            }
            Change::AddBalancer(name, owner) => {
                cloud.add_balancer(new_balancer(name, owner)).map(drop)
            }
            Change::Protect(id) => self.edit(id, |balancer| balancer.protected = true)?,
            Change::Damage(id) => self.edit(id, |balancer| {
                balancer.listeners.pop();
                balancer.targets.clear();
            })?,
            Change::AddListener(id, port) => self.edit(id, |balancer| {
                if let Some(mut added) = balancer.listeners.first().cloned() {
                    (added.port, added.target_port) = (port, 31_999);
                    balancer.listeners.push(added);
                }
            })?,
            Change::AddTarget(id, name) => {
                let at = TargetAt::Machine(self.machine_id(name)?);
                cloud.add_stray_target(number(id)?, at).map(drop)
            }
            Change::AddLabel(id, (key, value)) => self.edit(id, |balancer| {
                balancer.labels.insert(key.to_owned(), value.to_owned());
            })?,
            Change::RemoveLabels(id) => self.edit(id, |balancer| balancer.labels.clear())?,
            Change::AddRoute(destination) => {
                // The cloud routes to nothing but machines, so another client has one.
                let router = MachineSpec::named(ROUTER);
                let hop = Hop::Machine(cloud.add_machine(router).or_not_playable()?.id);
                cloud.add_route(NewRoute { destination, hop }).map(drop)
            }
            Change::AddVolume => cloud.add_volume(volume()),
            Change::BalancerQuota(count) => {
                cloud.change_settings(|now| now.limits.balancers = count);
                Ok(())
            }
            Change::SlowJobs(duration) => {
                cloud.change_settings(|now| now.action_duration = duration);
                Ok(())
            }
        }
        .or_not_playable()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let machines = self.cloud.machines().into_iter();
        let living = machines.filter(|machine| machine.is_alive() && machine.name != ROUTER);
        let balancers = self.cloud.balancers().into_iter();
        let routes = self.cloud.routes().into_iter();
        Ok(ActualState {
            instances: living.map(|machine| self.actual(machine)).collect(),
            balancers: balancers.map(|b| state::balancer(&b)).collect(),
            routes: routes.map(|route| state::route(&route)).collect(),
            volumes: vec![state::volume(&volume())],
            others: Vec::new(),
        })
    }

    fn samples(&self) -> Samples {
        self.samples.clone()
    }
}
