//! The public access firewall: opens the ports of Services on the droplets with the configured tags.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, KeyValue as _, Priority, Protocol,
    ServiceFacts, ServiceType, TrafficPolicy, names,
};
use tokio::time::timeout;

use crate::annotations as key;
use crate::annotations::Network;
use crate::client::Api;
use crate::config::{BalancerType, FirewallSettings as Settings};
use crate::load_balancer::desired::asked_type;
use crate::load_balancer::health::{KUBE_PROXY_PORT, checked_port};
use crate::wire::{Firewall, FirewallSettings, InboundRule, OutboundRule, Peers};

/// Its name.
pub(crate) const NAME: &str = "digitalocean-firewall";
/// How often the firewall is read again, whatever happens to Services.
const RESYNC: Duration = Duration::from_mins(5);
const ANYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];
const ALL_PORTS: &str = "all";

/// The controller.
pub(crate) struct FirewallController {
    pub(crate) api: Api,
    pub(crate) settings: Settings,
    pub(crate) default_type: BalancerType,
}

#[async_trait]
impl BackgroundController for FirewallController {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_by_default(&self) -> bool {
        true
    }

    fn watches_services(&self) -> bool {
        true
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let mut known: Option<Firewall> = None;
        loop {
            let services = context.services.snapshot();
            let reconcile = self.reconcile(known.take(), &services);
            known = tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                firewall = reconcile => Some(firewall?),
            };
            let changed = timeout(RESYNC, context.services.changed());
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                changed = changed => if changed.is_err() {
                    // It is read again: another client may have changed it.
                    known = self.read(known).await?;
                },
            }
        }
    }
}

impl FirewallController {
    /// The firewall by its ID if that is known, else by its name.
    async fn read(&self, known: Option<Firewall>) -> Result<Option<Firewall>, CloudError> {
        if let Some(known) = known {
            match self.api.get(&known.id, Priority::Background).await {
                Err(error) if error.is_not_found() => {}
                read => return read.map(Some),
            }
        }
        let request = self.api.list::<Firewall>().priority(Priority::Background);
        let all: Vec<Firewall> = self.api.all(request).await?;
        let mut all = all.into_iter();
        Ok(all.find(|firewall| firewall.settings.name == self.settings.name))
    }

    /// Creates or changes the firewall if it differs. What is known of it saves the reading.
    async fn reconcile(
        &self,
        known: Option<Firewall>,
        services: &[ServiceFacts],
    ) -> Result<Firewall, CloudError> {
        let mut desired = FirewallSettings {
            name: self.settings.name.clone(),
            inbound_rules: inbound(services, self.default_type),
            outbound_rules: outbound(),
            tags: self.settings.tags.clone(),
            droplet_ids: Vec::new(),
        };
        let have = match known {
            Some(known) => Some(known),
            None => self.read(None).await?,
        };
        let Some(have) = have else {
            return self.api.create(&desired).await;
        };
        if comparable(&desired) == comparable(&have.settings) {
            return Ok(have);
        }
        desired.droplet_ids.clone_from(&have.settings.droplet_ids);
        match self.api.replace(&have.id, &desired).await {
            Err(error) if error.is_not_found() => self.api.create(&desired).await,
            changed => changed,
        }
    }
}

/// What opens for these Services, sorted by protocol and port. Pure.
fn inbound(services: &[ServiceFacts], default_type: BalancerType) -> Vec<InboundRule> {
    let mut open = BTreeMap::<(&str, String), BTreeSet<String>>::new();
    let mut add = |protocol: Protocol, port: u16, source: Option<&String>| {
        let protocol = match protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => return,
        };
        let sources = open.entry((protocol, port.to_string())).or_default();
        sources.extend(source.cloned());
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
    let rules = open
        .into_iter()
        .map(|((protocol, ports), balancers)| InboundRule {
            protocol: protocol.to_owned(),
            ports,
            sources: sources(balancers),
        });
    rules.collect()
}

/// From these load balancers, or from anywhere if a port is open to more than them.
fn sources(balancers: BTreeSet<String>) -> Peers {
    if balancers.is_empty() {
        return anywhere();
    }
    Peers {
        addresses: Vec::new(),
        load_balancer_uids: balancers.into_iter().collect(),
    }
}

fn anywhere() -> Peers {
    Peers {
        addresses: ANYWHERE.map(str::to_owned).to_vec(),
        load_balancer_uids: Vec::new(),
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
fn outbound() -> Vec<OutboundRule> {
    let rule = |protocol: &str, ports: &str| OutboundRule {
        protocol: protocol.to_owned(),
        ports: ports.to_owned(),
        destinations: anywhere(),
    };
    vec![
        rule("tcp", ALL_PORTS),
        rule("udp", ALL_PORTS),
        rule("icmp", ""),
    ]
}

type Rules = BTreeSet<(String, String, BTreeSet<String>)>;

/// In the one spelling in which two are compared: the API shows `0` where `all` was sent.
fn comparable(settings: &FirewallSettings) -> (Rules, Rules, BTreeSet<&String>) {
    let rule = |protocol: &String, ports: &String, peers: &Peers| {
        let ports = match ports.as_str() {
            "" | "0" | ALL_PORTS => String::new(),
            ports => ports.to_owned(),
        };
        let peers = peers.addresses.iter().chain(&peers.load_balancer_uids);
        (protocol.clone(), ports, peers.cloned().collect())
    };
    let inbound = settings.inbound_rules.iter();
    let outbound = settings.outbound_rules.iter();
    (
        inbound
            .map(|it| rule(&it.protocol, &it.ports, &it.sources))
            .collect(),
        outbound
            .map(|it| rule(&it.protocol, &it.ports, &it.destinations))
            .collect(),
        settings.tags.iter().collect(),
    )
}
