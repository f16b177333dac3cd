//! Carries the traffic of balancers: real proxies for the desired balancers of the cloud's state.
//!
//! A change touches only what differs. Frontends stay open and connections live on when targets,
//! algorithms or checks change.

mod affinity;
mod choice;
mod counters;
mod health;
mod pool;
mod port;
mod probe;
mod proxy_header;
mod rules;
mod splice;
mod stats;
mod target;
mod tcp;
mod udp;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_provider_local::wire::{Listener, Protocol, ReportedHealth};
use tokio_util::task::TaskTracker;

use self::pool::DesiredTarget;
use self::port::Port;
use self::probe::Prober;
use self::rules::Rules;
use crate::simulated_cloud::WantedBalancer;

pub use cloudkeel_api::HealthState as Health;

pub use self::pool::Phase;
pub use self::stats::{BalancerStats, FrontendStats, PortStats, TargetStats};

/// How the proxies behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaneSettings {
    /// How long connections may live on when their target, port or balancer goes.
    pub drain: Duration,
    /// How long a client of UDP may be silent until it is forgotten.
    pub udp_idle: Duration,
}

impl Default for PlaneSettings {
    fn default() -> Self {
        Self {
            drain: Duration::from_secs(30),
            udp_idle: Duration::from_mins(1),
        }
    }
}

/// What everything that carries traffic shares.
#[derive(Debug)]
struct Tools {
    settings: PlaneSettings,
    connections: TaskTracker,
}

/// All proxies. They end when this is dropped.
#[derive(Debug)]
pub struct Plane {
    tools: Tools,
    prober: Arc<Prober>,
    balancers: BTreeMap<u64, Proxy>,
}

/// The ports of one balancer.
#[derive(Debug)]
struct Proxy {
    name: String,
    ports: BTreeMap<(Protocol, u16), Port>,
}

impl Plane {
    /// No proxies yet.
    pub fn new(settings: PlaneSettings) -> Result<Self, rustls::Error> {
        Ok(Self {
            tools: Tools {
                settings,
                connections: TaskTracker::new(),
            },
            prober: Arc::new(Prober::new()?),
            balancers: BTreeMap::new(),
        })
    }

    /// Makes it true. Returns what keeps each balancer from working.
    pub async fn apply(&mut self, wanted: &[WantedBalancer]) -> BTreeMap<u64, Vec<String>> {
        let is_wanted = |id: &u64| wanted.iter().any(|w| w.balancer.id == *id);
        self.balancers.retain(|id, _| is_wanted(id));
        let mut problems = BTreeMap::new();
        for balancer in wanted {
            let id = balancer.balancer.id;
            let proxy = self.balancers.entry(id).or_insert_with(|| Proxy {
                name: String::new(),
                ports: BTreeMap::new(),
            });
            proxy.update(balancer, &self.tools, &self.prober).await;
            let found = proxy.ports.values().flat_map(Port::problems).collect();
            problems.insert(id, found);
        }
        problems
    }

    /// What they have carried.
    pub fn stats(&self) -> Vec<BalancerStats> {
        let stats = |(id, proxy): (&u64, &Proxy)| BalancerStats {
            id: *id,
            name: proxy.name.clone(),
            ports: proxy
                .ports
                .iter()
                .map(|((protocol, number), port)| PortStats::of(*protocol, *number, port))
                .collect(),
        };
        self.balancers.iter().map(stats).collect()
    }

    /// The health of each balancer's targets that get new connections.
    pub(crate) fn health(&self) -> BTreeMap<u64, Vec<ReportedHealth>> {
        let health = self.balancers.iter().map(|(id, proxy)| {
            let ports = proxy.ports.iter();
            let reported = ports.flat_map(|((_, port), of)| of.health(*port)).collect();
            (*id, reported)
        });
        health.collect()
    }

    /// Closes all frontends and waits until every connection has ended, which the drain time bounds.
    pub(crate) async fn close(mut self) {
        self.balancers.clear();
        self.tools.connections.close();
        self.tools.connections.wait().await;
    }
}

impl Proxy {
    async fn update(&mut self, wanted: &WantedBalancer, tools: &Tools, prober: &Arc<Prober>) {
        let balancer = &wanted.balancer;
        self.name.clone_from(&balancer.name);
        let is_wanted = |(protocol, port): &(Protocol, u16)| {
            let same = |l: &Listener| l.protocol == *protocol && l.port == *port;
            balancer.listeners.iter().any(same)
        };
        self.ports.retain(|key, _| is_wanted(key));
        for listener in &balancer.listeners {
            let (protocol, number) = (listener.protocol, listener.port);
            let rules = Rules::of(balancer, listener);
            let port = self
                .ports
                .entry((protocol, number))
                .or_insert_with(|| Port::new(rules.clone(), tools, prober));
            let targets = targets(wanted, listener);
            let frontends = (protocol, number, &*balancer.addresses);
            port.update(rules, &targets, frontends, tools).await;
        }
    }
}

/// Targets that can be reached, each at the port that the listener leads to.
fn targets(wanted: &WantedBalancer, listener: &Listener) -> Vec<DesiredTarget> {
    let targets = wanted.targets.iter();
    targets
        .filter_map(|target| {
            Some(DesiredTarget {
                at: target.at,
                address: SocketAddr::new(target.ip?, listener.target_port),
                state: target.state,
            })
        })
        .collect()
}
