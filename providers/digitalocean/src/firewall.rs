//! The public access firewall: opens the ports of Services on the droplets with the configured tags.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, KeyValue as _, Priority, Protocol, ServiceFacts, ServiceType, TrafficPolicy, names,
};
use cloudkeel_toolkit::health::KUBE_PROXY_PORT;
use cloudkeel_toolkit::{Cause, Schedule, ServiceFollower};
use tokio::sync::Mutex;

use crate::annotations as key;
use crate::annotations::Network;
use crate::client::Api;
use crate::config::{BalancerType, FirewallSettings as Settings};
use crate::load_balancer::desired::asked_type;
use crate::load_balancer::health::checked_port;
use crate::load_balancer::rules::transport;
use crate::wire::{Firewall, FirewallRule, FirewallSettings, Peers};

/// How often the firewall is read again, whatever happens to Services.
const RESYNC: Duration = Duration::from_mins(5);
const ALL_PORTS: &str = "all";

/// The controller.
pub(crate) struct FirewallController {
    pub(crate) api: Api,
    pub(crate) settings: Settings,
    pub(crate) default_type: BalancerType,
    /// As it was last read or written, which saves the reading. `None` after an error.
    pub(crate) known: Mutex<Option<Firewall>>,
}

#[async_trait]
impl ServiceFollower for FirewallController {
    const NAME: &'static str = "digitalocean-firewall";

    fn schedule(&self) -> Schedule {
        Schedule::on_change_and_every(RESYNC)
    }

    /// Creates or changes the firewall if it differs.
    async fn reconcile(&self, services: &[ServiceFacts], cause: Cause) -> Result<(), CloudError> {
        let mut known = self.known.lock().await;
        let have = match (known.take(), cause) {
            (Some(have), Cause::Change) => Some(have),
            (have, _) => self.read(have).await?,
        };
        let mut desired = FirewallSettings {
            name: self.settings.name.clone(),
            inbound_rules: inbound(services, self.default_type),
            outbound_rules: outbound(),
            tags: self.settings.tags.clone(),
            droplet_ids: Vec::new(),
        };
        *known = Some(match have {
            None => self.api.create(&desired).await?,
            Some(have) if is_same(&desired, &have.settings) => have,
            Some(have) => {
                desired.droplet_ids.clone_from(&have.settings.droplet_ids);
                match self.api.replace(&have.id, &desired).await {
                    Err(error) if error.is_not_found() => self.api.create(&desired).await?,
                    changed => changed?,
                }
            }
        });
        Ok(())
    }
}

impl FirewallController {
    /// The firewall by its ID if that is known, else by its name.
    async fn read(&self, known: Option<Firewall>) -> Result<Option<Firewall>, CloudError> {
        if let Some(known) = known
            && let Some(found) = self.api.find(&known.id, Priority::Background).await?
        {
            return Ok(Some(found));
        }
        let all: Vec<Firewall> = self.api.every(Priority::Background).await?;
        let mut all = all.into_iter();
        Ok(all.find(|firewall| firewall.settings.name == self.settings.name))
    }
}

/// What opens for these Services, sorted by protocol and port. Pure.
fn inbound(services: &[ServiceFacts], default_type: BalancerType) -> Vec<FirewallRule> {
    let mut open = BTreeMap::<(&str, String), BTreeSet<String>>::new();
    let mut add = |protocol: Protocol, port: u16, source: Option<&String>| {
        if let Some(protocol) = transport(protocol) {
            let sources = open.entry((protocol, port.to_string())).or_default();
            sources.extend(source.cloned());
        }
    };
    for service in services.iter().filter(|service| !service.is_deleting) {
        if is_open_on_nodes(service) {
            for port in &service.ports {
                if let Some(node_port) = port.node_port {
                    add(port.protocol, node_port, None);
                }
            }
        }
        if is_passed_through(service, default_type) {
            let id = service.annotations.get(key::LOAD_BALANCER_ID.name());
            add(Protocol::Tcp, health_port(service), id);
            for port in &service.ports {
                add(port.protocol, port.port, None);
            }
        }
    }
    let rules = open.into_iter();
    let rules = rules.map(|((protocol, ports), balancers)| FirewallRule {
        protocol: protocol.to_owned(),
        ports,
        sources: Some(sources(balancers)),
        destinations: None,
    });
    rules.collect()
}

/// From these load balancers, or from anywhere if a port is open to more than them.
fn sources(load_balancer_uids: BTreeSet<String>) -> Peers {
    if load_balancer_uids.is_empty() {
        return anywhere();
    }
    Peers {
        load_balancer_uids,
        ..Peers::default()
    }
}

fn anywhere() -> Peers {
    Peers {
        addresses: ["0.0.0.0/0", "::/0"].map(str::to_owned).into(),
        ..Peers::default()
    }
}

/// A `NodePort` Service, unless it says otherwise. A value that cannot be read says nothing.
fn is_open_on_nodes(service: &ServiceFacts) -> bool {
    let managed = service.annotations.get(key::FIREWALL_MANAGED.name());
    let managed = managed.and_then(|text| bool::parse(text).ok());
    service.service_type == ServiceType::NodePort && managed.unwrap_or(true)
}

/// Whether packets of clients reach the Nodes by themselves. What cannot be read is the default: the service controller
/// reports it.
fn is_passed_through(service: &ServiceFacts, default_type: BalancerType) -> bool {
    let annotations = &service.annotations;
    let kind = asked_type(annotations, default_type).unwrap_or(default_type);
    let network = key::NETWORK.get(annotations).ok().flatten();
    let neutral = names::LB_INTERNAL.get(annotations).ok().flatten();
    let is_internal = match network {
        Some(network) => network == Network::Internal,
        None => neutral.unwrap_or(false),
    };
    service.service_type == ServiceType::LoadBalancer
        && kind == BalancerType::Network
        && !is_internal
}

/// The port that the load balancer checks.
fn health_port(service: &ServiceFacts) -> u16 {
    let annotations = &service.annotations;
    let ports = service.ports.iter();
    let ports = ports.map(|port| (port.protocol, port.port, port.node_port));
    let local = service
        .health_check_node_port
        .filter(|_| service.traffic_policy == TrafficPolicy::Local);
    if annotations.contains_key(key::OVERRIDE_HEALTH_CHECK.name()) {
        return checked_port(annotations, ports).unwrap_or(KUBE_PROXY_PORT);
    }
    let neutral = names::LB_HEALTH_CHECK_PORT.get(annotations);
    let neutral = neutral.ok().flatten();
    neutral.or(local).unwrap_or(KUBE_PROXY_PORT)
}

/// Everything may go out.
fn outbound() -> Vec<FirewallRule> {
    let rules = [("tcp", ALL_PORTS), ("udp", ALL_PORTS), ("icmp", "")];
    let rules = rules.map(|(protocol, ports)| FirewallRule {
        protocol: protocol.to_owned(),
        ports: ports.to_owned(),
        sources: None,
        destinations: Some(anywhere()),
    });
    rules.into()
}

/// In the one spelling in which rules are compared: the API shows `0` where `all` was sent.
fn comparable(rules: &[FirewallRule]) -> BTreeSet<(&str, &str, BTreeSet<&String>)> {
    let rules = rules.iter().map(|rule| {
        let ports = rule.ports.as_str();
        let ports = if ports == "0" || ports == ALL_PORTS {
            ""
        } else {
            ports
        };
        let peers = rule.sources.iter().chain(&rule.destinations);
        let peers = peers.flat_map(|peers| peers.addresses.iter().chain(&peers.load_balancer_uids));
        (rule.protocol.as_str(), ports, peers.collect())
    });
    rules.collect()
}

fn is_same(desired: &FirewallSettings, have: &FirewallSettings) -> bool {
    let tags = |settings: &FirewallSettings| settings.tags.iter().cloned().collect::<BTreeSet<_>>();
    comparable(&desired.inbound_rules) == comparable(&have.inbound_rules)
        && comparable(&desired.outbound_rules) == comparable(&have.outbound_rules)
        && tags(desired) == tags(have)
}
