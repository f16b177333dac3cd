//! The simulated cloud under the kit: for the provider that speaks its API, and for any other that does.

mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, NodeAddress, NodeFacts, ProviderContext, TokioClock};
use futures::future::BoxFuture;
use ipnet::IpNet;

use super::emulated::{self, ELSEWHERE};
use super::emulator::{Calls, Emulator, Mark, Setup, Stop, Strike, Trouble};
use super::seen::{SeenBalancer, SeenRoute, Thing};
use super::wishes::cluster;
use crate::simulated_cloud::wire::{Hop, NewBalancer, NewRoute};
use crate::simulated_cloud::{Latency, MachineSpec, Refusal, Settings, SimulatedCloud};

/// Machines of a sweep that fit on a page.
const PAGE: usize = 50;

/// How a provider is connected to a simulated cloud.
type Connect = dyn Fn(SimulatedCloud, ProviderContext) -> Connecting + Send + Sync;

/// A provider that is being connected.
pub type Connecting = BoxFuture<'static, Result<Arc<dyn CloudProvider>, String>>;

/// The simulated cloud, seen by a provider of the author's choice that marks balancers with the label
/// `cloudkeel.dev/service-uid`.
pub struct SimulatedSetup {
    name: &'static str,
    connect: Arc<Connect>,
    gaps: &'static [(&'static str, &'static str)],
    ids: fn(u64) -> String,
    settings: Settings,
}

impl SimulatedSetup {
    /// For the provider of this name.
    pub fn new(
        name: &'static str,
        connect: impl Fn(SimulatedCloud, ProviderContext) -> Connecting + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            connect: Arc::new(connect),
            gaps: &[],
            ids: |machine| format!("local://{}/{machine}", SimulatedCloud::PROJECT),
            settings: Settings {
                // Slow enough for two callers to meet.
                latency: Latency {
                    fixed: Duration::from_millis(5),
                    jitter: Duration::from_millis(5),
                },
                page_size: PAGE as u64,
                ..Settings::default()
            },
        }
    }

    /// With these declared gaps.
    #[must_use]
    pub const fn with_gaps(mut self, gaps: &'static [(&'static str, &'static str)]) -> Self {
        self.gaps = gaps;
        self
    }

    /// With clouds in which it takes this long to build, change or take down a balancer.
    #[must_use]
    pub const fn with_slow_actions(mut self, duration: Duration) -> Self {
        self.settings.action_duration = duration;
        self
    }

    /// With these provider IDs, in place of the local provider's.
    #[must_use]
    pub fn with_ids(mut self, ids: fn(u64) -> String) -> Self {
        self.ids = ids;
        self
    }
}

#[async_trait]
impl Setup for SimulatedSetup {
    fn name(&self) -> &str {
        self.name
    }

    async fn new_cloud(&self) -> Result<Box<dyn Emulator>, Stop> {
        let connect = Arc::clone(&self.connect);
        Ok(Box::new(SimulatedEmulator::new(
            connect,
            self.ids,
            self.settings.clone(),
        )?))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        self.gaps
    }
}

/// One simulated cloud.
struct SimulatedEmulator {
    cloud: SimulatedCloud,
    connect: Arc<Connect>,
    ids: fn(u64) -> String,
}

impl SimulatedEmulator {
    fn new(
        connect: Arc<Connect>,
        ids: fn(u64) -> String,
        settings: Settings,
    ) -> Result<Self, Stop> {
        let cloud = SimulatedCloud::new(settings);
        cloud.add_project(ELSEWHERE);
        let stranger = MachineSpec::named("stranger").in_project(ELSEWHERE);
        cloud
            .add_machine(stranger)
            .map_err(|refusal| refused(&refusal))?;
        Ok(Self {
            cloud,
            connect,
            ids,
        })
    }

    fn machine_id(&self, name: &str) -> Result<u64, Stop> {
        let mut machines = self.cloud.machines().into_iter();
        let found = machines.find(|machine| machine.name == name && machine.is_alive());
        let found = found.ok_or_else(|| Stop::cannot_play(format!("no machine {name}")))?;
        Ok(found.id)
    }

    fn machine_names(&self) -> BTreeMap<u64, String> {
        let machines = self.cloud.machines().into_iter();
        machines.map(|machine| (machine.id, machine.name)).collect()
    }
}

fn refused(refusal: &Refusal) -> Stop {
    Stop::cannot_play(refusal.to_string())
}

fn number(id: &str) -> Result<u64, Stop> {
    id.parse()
        .map_err(|_| Stop::cannot_play(format!("{id} is no ID of this cloud")))
}

#[async_trait]
impl Emulator for SimulatedEmulator {
    async fn connect(&self) -> Result<Arc<dyn CloudProvider>, Stop> {
        let clock = TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let context = ProviderContext {
            cluster: cluster(),
            clock: Arc::new(clock),
            ..ProviderContext::detached("conformance")
        };
        let connected = (self.connect)(self.cloud.clone(), context).await;
        connected.map_err(Stop::Wrong)
    }

    fn calls(&self) -> Calls {
        emulated::calls(&self.cloud)
    }

    async fn add_machine(&self, name: &str) -> Result<NodeFacts, Stop> {
        let added = self.cloud.add_machine(MachineSpec::named(name));
        let machine = added.map_err(|refusal| refused(&refusal))?;
        let id = (self.ids)(machine.id);
        Ok(NodeFacts {
            name: machine.name,
            uid: format!("uid-{}", machine.id),
            provider_id: id.parse().ok(),
            system_uuid: Some(machine.uuid),
            addresses: machine
                .addresses
                .iter()
                .map(|address| NodeAddress::internal(address.ip))
                .collect(),
            ..NodeFacts::default()
        })
    }

    async fn destroy_machine(&self, name: &str) -> Result<(), Stop> {
        let id = self.machine_id(name)?;
        self.cloud.destroy(id).map_err(|refusal| refused(&refusal))
    }

    async fn switch_off_machine(&self, name: &str) -> Result<(), Stop> {
        let id = self.machine_id(name)?;
        self.cloud
            .power_off(id)
            .map(|_| ())
            .map_err(|refusal| refused(&refusal))
    }

    fn pages(&self, machines: usize) -> Result<u64, Stop> {
        Ok(machines.div_ceil(PAGE).max(1) as u64)
    }

    async fn strike(&self, strike: Strike, trouble: Trouble) -> Result<(), Stop> {
        emulated::strike(&self.cloud, strike, trouble);
        Ok(())
    }

    async fn heal(&self) {
        emulated::heal(&self.cloud);
    }

    fn things(&self) -> Vec<Thing> {
        let thing = |kind, id: u64| Thing {
            kind,
            id: id.to_string(),
        };
        let balancers = self.cloud.balancers().into_iter();
        let routes = self.cloud.routes().into_iter();
        balancers
            .map(|balancer| thing("balancer", balancer.id))
            .chain(routes.map(|route| thing("route", route.id)))
            .collect()
    }

    fn balancers(&self) -> Vec<SeenBalancer> {
        let names = self.machine_names();
        let balancers = self.cloud.balancers().into_iter();
        balancers
            .map(|balancer| words::balancer(&balancer, &names))
            .collect()
    }

    async fn add_balancer(&self, name: &str, mark: Mark) -> Result<String, Stop> {
        let marks: &[(&str, &str)] = match mark {
            Mark::Nobody => &[],
            Mark::OtherCluster => &[
                ("cloudkeel.dev/service-uid", "another-service"),
                ("cloudkeel.dev/cluster-uid", "another-cluster"),
            ],
        };
        let labels = marks.iter();
        let new = NewBalancer {
            name: name.to_owned(),
            labels: labels
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..NewBalancer::default()
        };
        let made = self
            .cloud
            .add_balancer(new)
            .map_err(|refusal| refused(&refusal))?;
        Ok(made.id.to_string())
    }

    async fn protect_balancer(&self, id: &str) -> Result<(), Stop> {
        let edited = self
            .cloud
            .edit_balancer(number(id)?, |balancer| balancer.protected = true);
        edited.map(|_| ()).map_err(|refusal| refused(&refusal))
    }

    async fn damage_balancer(&self, id: &str) -> Result<(), Stop> {
        let edited = self.cloud.edit_balancer(number(id)?, |balancer| {
            balancer.listeners.pop();
            balancer.targets.clear();
        });
        edited.map(|_| ()).map_err(|refusal| refused(&refusal))
    }

    fn sizes(&self) -> Option<[&str; 2]> {
        Some(["small", "large"])
    }

    fn spare_address(&self) -> Option<IpAddr> {
        "198.18.77.77".parse().ok()
    }

    fn far_address(&self) -> Option<NodeAddress> {
        Some(NodeAddress::internal([10, 0, 200, 7].into()))
    }

    fn routes(&self) -> Vec<SeenRoute> {
        let names = self.machine_names();
        let hop = |hop: &Hop| match hop {
            Hop::Machine(id) => names.get(id).cloned().unwrap_or_else(|| id.to_string()),
            Hop::Ip(ip) => ip.to_string(),
        };
        let routes = self.cloud.routes().into_iter();
        routes
            .map(|route| SeenRoute {
                destination: route.destination,
                hop: hop(&route.hop),
            })
            .collect()
    }

    async fn add_route(&self, destination: IpNet) -> Result<(), Stop> {
        // The cloud routes to nothing but machines, so somebody else has one.
        let router = MachineSpec::named("somebody-elses-router");
        let router = self
            .cloud
            .add_machine(router)
            .map_err(|refusal| refused(&refusal))?;
        let hop = Hop::Machine(router.id);
        let added = self.cloud.add_route(NewRoute { destination, hop });
        added.map(|_| ()).map_err(|refusal| refused(&refusal))
    }
}
