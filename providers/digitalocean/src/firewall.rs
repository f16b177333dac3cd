//! The public access firewall: opens the ports of Services on the droplets with the configured tags.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Protocol, ServiceFacts, ServiceType, names};
use cloudkeel_toolkit::health::{KUBE_PROXY_PORT, kube_proxy_port};
use cloudkeel_toolkit::{Cause, KeptResource, OpenPorts, PortSource, Schedule, ServiceFollower};

use crate::annotations as key;
use crate::annotations::Network;
use crate::client::Api;
use crate::config::{BalancerType, FirewallSettings as Settings};
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
    pub(crate) firewall: KeptResource<Firewall>,
}

#[async_trait]
impl ServiceFollower for FirewallController {
    const NAME: &'static str = "digitalocean-firewall";

    fn schedule(&self) -> Schedule {
        Schedule::on_change_and_every(RESYNC)
    }

    /// Creates or changes the firewall if it differs.
    async fn reconcile(&self, services: &[ServiceFacts], cause: Cause) -> Result<(), CloudError> {
        let Settings { name, tags } = &self.settings;
        let is_ours = |firewall: &Firewall| firewall.settings.name == *name;
        let differing = |have: Option<&Firewall>| {
            let present = have.map(|have| &have.settings);
            let others = present.map(|present| present.droplet_ids.clone());
            let desired = FirewallSettings {
                name: name.clone(),
                inbound_rules: inbound(services, self.default_type),
                outbound_rules: outbound(),
                tags: tags.iter().cloned().collect(),
                droplet_ids: others.unwrap_or_default(),
            };
            let is_same = present.map(comparable) == Some(comparable(&desired));
            (!is_same).then_some(desired)
        };
        let firewall = &self.firewall;
        firewall
            .reconcile(&self.api, cause, is_ours, differing)
            .await
    }
}

/// What opens for these Services. Pure.
fn inbound(services: &[ServiceFacts], default_type: BalancerType) -> BTreeSet<FirewallRule> {
    let mut open = OpenPorts::default();
    for service in services.iter().filter(|service| !service.is_deleting) {
        if is_open_on_nodes(service) {
            open.open_node_ports(service);
        }
        if is_passed_through(service, default_type) {
            let id = service.annotations.get(key::LOAD_BALANCER_ID.name());
            open.open(Protocol::Tcp, health_port(service), id);
            open.open_service_ports(service);
        }
    }
    let rule = |((protocol, port), source): ((Protocol, u16), PortSource)| {
        Some(FirewallRule {
            protocol: transport(protocol)?.to_owned(),
            ports: port.to_string(),
            sources: Some(match source {
                PortSource::Anywhere => anywhere(),
                PortSource::Balancers(load_balancer_uids) => Peers {
                    load_balancer_uids,
                    ..Peers::default()
                },
            }),
            destinations: None,
        })
    };
    open.into_iter().filter_map(rule).collect()
}

fn anywhere() -> Peers {
    Peers {
        addresses: ["0.0.0.0/0", "::/0"].map(str::to_owned).into(),
        ..Peers::default()
    }
}

/// A `NodePort` Service, unless it says otherwise. A value that cannot be read says nothing.
fn is_open_on_nodes(service: &ServiceFacts) -> bool {
    let managed = key::FIREWALL_MANAGED.readable(&service.annotations);
    service.service_type == ServiceType::NodePort && managed.unwrap_or(true)
}

/// Whether packets of clients reach the Nodes by themselves. What cannot be read is the default: the service controller
/// reports it.
fn is_passed_through(service: &ServiceFacts, default_type: BalancerType) -> bool {
    let annotations = &service.annotations;
    let kind = key::TYPE.readable(annotations);
    let neutral = names::LB_INTERNAL.readable(annotations);
    let network = key::NETWORK.readable(annotations);
    service.has_balancer()
        && kind.unwrap_or(default_type) == BalancerType::Network
        && network.or(neutral.map(Network::of)) != Some(Network::Internal)
}

/// The port that the load balancer checks.
fn health_port(service: &ServiceFacts) -> u16 {
    let annotations = &service.annotations;
    if !annotations.contains_key(key::OVERRIDE_HEALTH_CHECK.name()) {
        return kube_proxy_port(service);
    }
    let ports = service.ports.iter();
    let ports = ports.map(|port| (port.protocol, port.port, port.node_port));
    checked_port(annotations, ports).unwrap_or(KUBE_PROXY_PORT)
}

/// Everything may go out.
fn outbound() -> BTreeSet<FirewallRule> {
    let rules = [("tcp", ALL_PORTS), ("udp", ALL_PORTS), ("icmp", "")];
    let rules = rules.map(|(protocol, ports)| FirewallRule {
        protocol: protocol.to_owned(),
        ports: ports.to_owned(),
        sources: None,
        destinations: Some(anywhere()),
    });
    rules.into()
}

/// In the one spelling in which two are compared: the API shows `0` where `all` was sent.
fn comparable(settings: &FirewallSettings) -> FirewallSettings {
    let mut same = settings.clone();
    for rules in [&mut same.inbound_rules, &mut same.outbound_rules] {
        for mut rule in std::mem::take(rules) {
            if ["0", ALL_PORTS].contains(&rule.ports.as_str()) {
                rule.ports.clear();
            }
            rules.insert(rule);
        }
    }
    same
}
