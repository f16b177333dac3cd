//! The emulated Hetzner Cloud. Its API is Hetzner's; behind it, the proxies of the local cloud carry the traffic of
//! its load balancers. Its private network is on loopback, so everything in it can be reached.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock as _, SystemClock};
use cloudkeel_emulator_hetzner::{
    Destination, Fault, FaultMatch, HetznerCloud, LoadBalancer, Operation, Permission, Served,
    Server, ServerSpec, ServerStatus, Settings,
};
use cloudkeel_local_cloud::simulated_cloud::wire::{
    Algorithm, Balancer, BalancerState, HealthCheck, Hop, Listener, Machine, MachineAddress,
    MachineState, Protocol, ProxyProtocol, Route, Target as WireTarget, TargetAt, TargetState,
};
use cloudkeel_local_cloud::simulated_cloud::{WantedBalancer, WantedTarget};
use cloudkeel_local_cloud::{BalancerStats, Plane, PlaneSettings};
use ipnet::{IpNet, Ipv4Net};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::{Calls, Cloud, OTHER_PROJECT, Place, STRANGER};
use crate::addresses::Block;
use crate::settings::DRAIN;

const LOCATIONS: [&str; 3] = ["fsn1", "nbg1", "hel1"];
const NETWORK: &str = "kube";

/// How long an action of the cloud takes.
const ACTION: Duration = Duration::from_millis(200);

/// How soon the proxies follow the managers' changes.
const FOLLOW: Duration = Duration::from_millis(50);

pub(super) struct Hetzner {
    cloud: HetznerCloud,
    served: Served,
    network: u64,
    /// The addresses of load balancers.
    balancers: Ipv4Net,
    proxies: Proxies,
    _follows: AbortOnDropHandle<()>,
}

/// The proxies of the load balancers.
#[derive(Clone)]
struct Proxies {
    cloud: HetznerCloud,
    plane: Arc<Mutex<Plane>>,
}

impl Proxies {
    /// Configures the proxies as the cloud's API shows.
    async fn follow(&self) {
        let mut plane = self.plane.lock().await;
        let servers = self.cloud.servers();
        let balancers = self.cloud.load_balancers();
        let wanted: Vec<_> = balancers
            .iter()
            .map(|balancer| wanted(balancer, &servers))
            .collect();
        for (balancer, problems) in plane.apply(&wanted).await {
            for problem in problems {
                tracing::warn!(balancer, err = problem, "load balancer not working");
            }
        }
    }
}

impl Hetzner {
    pub(super) async fn start(block: Block) -> Result<Self, String> {
        let settings = Settings {
            action_duration: ACTION,
            ..Settings::default()
        };
        let cloud = HetznerCloud::starting_at(settings, SystemClock.now());
        let (machines, balancers) = (block.machines(), block.balancers());
        let network = cloud.add_network_with(NETWORK, block.all(), &[machines, balancers]);
        let network = network.map_err(|why| why.to_string())?.id;
        cloud.add_project(OTHER_PROJECT);
        let stranger = cloud.add_server_in(OTHER_PROJECT, ServerSpec::named(STRANGER));
        stranger.map_err(|why| why.to_string())?;
        let plane = Plane::new(PlaneSettings {
            drain: DRAIN,
            ..PlaneSettings::default()
        });
        let plane = plane.map_err(|error| error.to_string())?;
        let proxies = Proxies {
            cloud: cloud.clone(),
            plane: Arc::new(Mutex::new(plane)),
        };
        let following = proxies.clone();
        let follows = tokio::spawn(async move {
            loop {
                following.follow().await;
                tokio::time::sleep(FOLLOW).await;
            }
        });
        let served = cloud.serve_on_loopback().await;
        Ok(Self {
            served: served.map_err(|error| format!("the cloud cannot be served: {error}"))?,
            cloud,
            network,
            balancers,
            proxies,
            _follows: AbortOnDropHandle::new(follows),
        })
    }

    fn set_status(&self, machine: u64, status: ServerStatus) -> Result<(), String> {
        let set = self.cloud.set_status(machine, status);
        set.map_err(|why| why.to_string())
    }

    fn grant(&self, project: &str) {
        let token = HetznerCloud::TOKEN;
        self.cloud.grant(token, project, Permission::ReadWrite);
    }
}

#[async_trait]
impl Cloud for Hetzner {
    fn name(&self) -> &'static str {
        "hetzner"
    }

    fn provider(&self) -> &'static str {
        "hcloud"
    }

    fn id_prefix(&self) -> &'static str {
        "hcloud://"
    }

    fn service_uid_label(&self) -> &'static str {
        "hcloud-ccm/service-uid"
    }

    fn url(&self) -> String {
        self.served.api_url()
    }

    fn config(&self) -> Value {
        json!({
            "endpoint": self.served.api_url(),
            "token": HetznerCloud::TOKEN,
            "network": NETWORK,
            // This host is not a Hetzner server.
            "attachedCheck": false,
            "loadBalancers": {
                "location": LOCATIONS[0],
                // Only the private network can be reached here.
                "usePrivateIp": true,
                "disablePublicNetwork": true,
                "privateSubnetIpRange": self.balancers,
            },
        })
    }

    fn machines(&self) -> Vec<Machine> {
        self.cloud.servers().iter().map(machine).collect()
    }

    fn balancers(&self) -> Vec<Balancer> {
        let balancers = self.cloud.load_balancers();
        balancers.iter().map(balancer).collect()
    }

    fn routes(&self) -> Vec<Route> {
        let servers = self.cloud.servers();
        let networks = self.cloud.networks().into_iter();
        let routes = networks.flat_map(|network| network.routes).zip(0..);
        routes
            .map(|(route, id)| {
                let has = |server: &&Server| address(server) == Some(route.gateway);
                let server = servers.iter().find(has);
                Route {
                    id,
                    destination: IpNet::V4(route.destination),
                    hop: server.map_or(Hop::Ip(IpAddr::V4(route.gateway)), |server| {
                        Hop::Machine(server.id)
                    }),
                    blackhole: server.is_none(),
                }
            })
            .collect()
    }

    async fn stats(&self) -> Vec<BalancerStats> {
        self.proxies.plane.lock().await.stats()
    }

    fn calls(&self) -> Calls {
        let calls = self.cloud.calls();
        Calls {
            all: calls.total(),
            mutations: calls.mutations(),
            of_machines: calls.of(Operation::GetServer) + calls.of(Operation::ListServers),
        }
    }

    fn add_machine(&self, place: Place<'_>) -> Result<u64, String> {
        let IpAddr::V4(address) = place.address else {
            return Err(format!("{} is no IPv4 address", place.address));
        };
        let location = LOCATIONS.iter().cycle().nth(usize::from(place.number) - 1);
        let spec = ServerSpec::named(place.name)
            .at(location.copied().unwrap_or_default())
            .in_network_as(self.network, address);
        let made = self.cloud.add_server(spec);
        made.map(|server| server.id).map_err(|why| why.to_string())
    }

    fn power_off(&self, machine: u64) -> Result<(), String> {
        self.set_status(machine, ServerStatus::Off)
    }

    fn power_on(&self, machine: u64) -> Result<(), String> {
        self.set_status(machine, ServerStatus::Running)
    }

    fn destroy(&self, machine: u64) -> Result<(), String> {
        let destroyed = self.cloud.destroy_server(machine);
        destroyed.map_err(|why| why.to_string())
    }

    async fn settle(&self) -> Result<(), String> {
        self.proxies.follow().await;
        Ok(())
    }

    fn break_down(&self) {
        let faults = self.cloud.faults();
        faults.clear();
        faults.always(FaultMatch::any(), Fault::status(503));
    }

    fn swap_token(&self) {
        self.grant(OTHER_PROJECT);
    }

    fn repair(&self) {
        self.cloud.faults().clear();
        self.grant(HetznerCloud::PROJECT);
    }

    fn is_broken(&self) -> bool {
        !self.cloud.faults().rules().is_empty()
    }

    fn made_elsewhere(&self) -> usize {
        self.cloud.load_balancers_of(OTHER_PROJECT).len()
    }
}

/// The address of a server in the private network.
fn address(server: &Server) -> Option<Ipv4Addr> {
    server.private_net.first().map(|net| net.ip)
}

fn machine(server: &Server) -> Machine {
    let addresses = address(server).into_iter();
    Machine {
        id: server.id,
        name: server.name.clone(),
        uuid: String::new(),
        state: match server.status {
            ServerStatus::Running | ServerStatus::Migrating | ServerStatus::Unknown => {
                MachineState::Running
            }
            ServerStatus::Initializing | ServerStatus::Starting | ServerStatus::Rebuilding => {
                MachineState::Starting
            }
            ServerStatus::Stopping => MachineState::Stopping,
            ServerStatus::Off => MachineState::Off,
            ServerStatus::Deleting => MachineState::Deleted,
        },
        kind: server.server_type.name.to_owned(),
        zone: server.location.name.to_owned(),
        region: server.location.network_zone.to_owned(),
        hostname: None,
        addresses: addresses
            .map(|ip| MachineAddress::private(IpAddr::V4(ip)))
            .collect(),
        labels: server.labels.clone(),
    }
}

fn balancer(balancer: &LoadBalancer) -> Balancer {
    let listeners = balancer.services.iter().map(|service| Listener {
        protocol: Protocol::Tcp,
        port: service.listen_port,
        target_port: service.destination_port,
        health_check: HealthCheck {
            port: Some(service.health_check.port),
            interval_seconds: service.health_check.interval,
            timeout_seconds: service.health_check.timeout,
            retries: service.health_check.retries,
            ..HealthCheck::default()
        },
    });
    let has_proxy_protocol = balancer
        .services
        .iter()
        .any(|service| service.proxyprotocol);
    let address = balancer.private_net.map(|(_, ip)| IpAddr::V4(ip));
    Balancer {
        id: balancer.id,
        version: 0,
        name: balancer.name.clone(),
        labels: balancer.labels.clone(),
        state: BalancerState::Active,
        kind: balancer.kind.to_string(),
        internal: true,
        families: std::collections::BTreeSet::new(),
        addresses: address.into_iter().collect(),
        hostname: None,
        algorithm: match balancer.algorithm.as_str() {
            "least_connections" => Algorithm::LeastConnections,
            _ => Algorithm::RoundRobin,
        },
        proxy_protocol: has_proxy_protocol.then_some(ProxyProtocol::V2),
        source_ranges: std::collections::BTreeSet::new(),
        affinity: None,
        protected: balancer.protected,
        listeners: listeners.collect(),
        targets: targets(balancer),
        problems: Vec::new(),
        health: Vec::new(),
    }
}

fn targets(balancer: &LoadBalancer) -> Vec<WireTarget> {
    let targets = balancer.targets.iter();
    targets
        .filter_map(|target| {
            let at = match &target.to {
                Destination::Server(id) => TargetAt::Machine(*id),
                Destination::Ip(ip) => TargetAt::Ip(*ip),
                // No Service of the demo uses it.
                Destination::LabelSelector(_) => return None,
            };
            let state = TargetState::Serving;
            Some(WireTarget { at, state })
        })
        .collect()
}

/// A load balancer with the addresses of the running targets.
fn wanted(it: &LoadBalancer, servers: &[Server]) -> WantedBalancer {
    let balancer = balancer(it);
    let targets = balancer.targets.iter().map(|target| WantedTarget {
        at: target.at,
        ip: match target.at {
            TargetAt::Ip(ip) => Some(ip),
            TargetAt::Machine(id) => servers
                .iter()
                .find(|server| server.id == id && server.status == ServerStatus::Running)
                .and_then(address)
                .map(IpAddr::V4),
        },
        state: target.state,
    });
    WantedBalancer {
        targets: targets.collect(),
        balancer,
    }
}
