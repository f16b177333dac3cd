//! What the state asks of whatever carries its traffic.

use std::net::IpAddr;

use cloudkeel_provider_local::wire::{
    AddressScope, Balancer, BalancerState, Hop, Machine, MachineState, Route, TargetAt, TargetState,
};

use super::SimulatedCloud;
use super::state::Project;

/// Everything that has to be made true outside, in all projects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The balancers that work.
    pub balancers: Vec<WantedBalancer>,
    /// The routes.
    pub routes: Vec<WantedRoute>,
}

/// A balancer and where its targets really are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedBalancer {
    /// The balancer.
    pub balancer: Balancer,
    /// Its targets.
    pub targets: Vec<WantedTarget>,
}

/// A target and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedTarget {
    /// As the API names it.
    pub at: TargetAt,
    /// Its address, unless it is a machine that is off or has none.
    pub ip: Option<IpAddr>,
    /// Whether it gets new connections.
    pub state: TargetState,
}

/// A route and where it really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedRoute {
    /// The route.
    pub route: Route,
    /// The address of its hop, unless there is nothing any more.
    pub via: Option<IpAddr>,
}

impl SimulatedCloud {
    /// What has to be made true outside, as of now.
    pub fn wanted(&self) -> Wanted {
        self.with(|state, _| {
            let mut wanted = Wanted::default();
            for (_, project) in state.projects() {
                let alive = project
                    .balancers
                    .iter()
                    .filter(|(_, balancer)| balancer.state != BalancerState::Deleting);
                let balancers = alive.map(|(_, balancer)| project.wanted_balancer(balancer));
                wanted.balancers.extend(balancers);
                let routes = project.routes.iter();
                let routes = routes.map(|(_, route)| project.wanted_route(route));
                wanted.routes.extend(routes);
            }
            wanted
        })
    }

    /// Grows with every change of a machine, a balancer or a route.
    pub fn changes(&self) -> u64 {
        self.with(|state, _| state.changes())
    }
}

impl Project {
    fn wanted_balancer(&self, balancer: &Balancer) -> WantedBalancer {
        let targets = balancer.targets.iter().map(|target| WantedTarget {
            at: target.at,
            ip: match target.at {
                TargetAt::Ip(ip) => Some(ip),
                TargetAt::Machine(id) => self
                    .machines
                    .get(&id)
                    .filter(|machine| machine.state == MachineState::Running)
                    .and_then(|machine| inner_address(machine)),
            },
            state: target.state,
        });
        WantedBalancer {
            targets: targets.collect(),
            balancer: balancer.clone(),
        }
    }

    fn wanted_route(&self, route: &Route) -> WantedRoute {
        let via = match route.hop {
            _ if route.blackhole => None,
            Hop::Ip(ip) => Some(ip),
            Hop::Machine(id) => {
                let same_family =
                    |address: &IpAddr| address.is_ipv4() == route.destination.network().is_ipv4();
                let machine = self.machines.get(&id);
                machine.and_then(|machine| {
                    let addresses = machine.addresses.iter().map(|address| address.ip);
                    addresses.into_iter().find(same_family)
                })
            }
        };
        WantedRoute {
            route: route.clone(),
            via,
        }
    }
}

/// Balancers stand inside the project's network, so they take a machine's address there.
fn inner_address(machine: &Machine) -> Option<IpAddr> {
    let addresses = &machine.addresses;
    let inner = addresses
        .iter()
        .find(|address| address.scope == AddressScope::Private);
    inner.or(addresses.first()).map(|address| address.ip)
}
