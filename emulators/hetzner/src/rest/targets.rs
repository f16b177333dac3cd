//! Targets of balancers.

use std::net::{IpAddr, Ipv4Addr};

use cloudkeel_emulation::Answer;
use cloudkeel_emulation::selector::Selector;
use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::state::{Destination, LoadBalancer, ProjectContext, Server, Target};

/// A target as a request names it: its type, and what belongs to the type.
#[derive(Deserialize)]
pub(super) struct TargetRequest {
    #[serde(rename = "type")]
    kind: String,
    use_private_ip: Option<bool>,
    #[serde(flatten)]
    parts: Value,
}

impl TargetRequest {
    fn destination(&self) -> Result<Destination, Refusal> {
        let text = |path| self.parts.pointer(path).and_then(Value::as_str);
        let required = || Refusal::invalid(&self.kind, "is required for this type of target");
        match self.kind.as_str() {
            "server" => {
                let id = self.parts.pointer("/server/id").and_then(Value::as_u64);
                id.map(Destination::Server).ok_or_else(required)
            }
            "label_selector" => {
                let selector = text("/label_selector/selector").ok_or_else(required)?;
                Ok(Destination::LabelSelector(selector.to_owned()))
            }
            "ip" => {
                let ip = text("/ip/ip").ok_or_else(required)?;
                let parsed = ip.parse().map(Destination::Ip);
                parsed.map_err(|_| Refusal::invalid("ip", format!("{ip:?} is not an IP")))
            }
            kind => Err(Refusal::invalid("type", format!("unknown type {kind:?}"))),
        }
    }
}

impl ProjectContext<'_> {
    pub(super) fn add_target(
        &mut self,
        balancer: &LoadBalancer,
        request: &TargetRequest,
    ) -> Result<Answer, Refusal> {
        let target = self.new_target(balancer, request)?;
        let id = balancer.id;
        let mut resources = vec![("load_balancer", id)];
        if let Destination::Server(server) = target.to {
            resources.push(("server", server));
        }
        let job = self.job("add_target", resources);
        Ok(self.begin(job, move |project, at| {
            let exists = match target.to {
                Destination::Server(server) => project.servers.get(&server).is_some(),
                Destination::LabelSelector(_) | Destination::Ip(_) => true,
            };
            // A server that was removed meanwhile takes its target with it.
            if exists {
                let balancers = &mut project.balancers;
                balancers.edit(&id, at, |balancer| balancer.targets.push(target));
            }
        }))
    }

    pub(super) fn new_target(
        &self,
        balancer: &LoadBalancer,
        request: &TargetRequest,
    ) -> Result<Target, Refusal> {
        let target = Target {
            to: request.destination()?,
            use_private_ip: request.use_private_ip.unwrap_or(false),
        };
        if balancer.targets.iter().any(|have| have.to == target.to) {
            let message = "load balancer target is already defined";
            return Err(Refusal::new("target_already_defined", message));
        }
        match &target.to {
            Destination::Server(id) => {
                let server = self.project.servers.get(id);
                let server = server.ok_or_else(|| Refusal::not_found("server", id))?;
                check_server(balancer, server, target.use_private_ip)?;
            }
            Destination::LabelSelector(selector) => {
                let parsed = Selector::parse(selector);
                parsed.map_err(|why| Refusal::invalid("label_selector", why))?;
                check_attached(balancer, target.use_private_ip)?;
            }
            Destination::Ip(ip) => self.check_ip(balancer, *ip)?,
        }
        let kind = self.type_of(balancer)?;
        if balancer.targets.len() >= kind.max_targets {
            let message = format!("{} has at most {} targets", kind.name, kind.max_targets);
            return Err(Refusal::limit_exceeded(message));
        }
        Ok(target)
    }

    /// Addresses must be those of dedicated servers of the same owner, public or behind a vSwitch.
    fn check_ip(&self, balancer: &LoadBalancer, ip: IpAddr) -> Result<(), Refusal> {
        if let IpAddr::V4(private) = ip
            && private.is_private()
        {
            return self.check_private_ip(balancer, private);
        }
        let mut servers = self.project.servers.iter();
        if servers.any(|(_, server)| server.ipv4.map(IpAddr::V4) == Some(ip)) {
            let message = format!("{ip} belongs to a Hetzner Cloud resource");
            return Err(Refusal::new("cloud_resource_ip_not_allowed", message));
        }
        if !self.robot.owns(ip) {
            let message = format!("{ip} is not owned by the owner of the project");
            return Err(Refusal::new("ip_not_owned", message));
        }
        Ok(())
    }

    fn check_private_ip(&self, balancer: &LoadBalancer, ip: Ipv4Addr) -> Result<(), Refusal> {
        check_attached(balancer, true)?;
        let network = balancer.private_net;
        let network = network.and_then(|(id, _)| self.project.networks.get(&id));
        let subnets = network.iter().flat_map(|network| &network.subnets);
        let mut vswitches = subnets.filter(|subnet| subnet.kind == "vswitch").peekable();
        if vswitches.peek().is_none() {
            let message = "the network has no vSwitch subnet";
            return Err(Refusal::new("network_has_no_vswitch_subnet", message));
        }
        if !vswitches.any(|subnet| subnet.ip_range.contains(&ip)) {
            let message = format!("{ip} is not in the vSwitch subnet of the network");
            return Err(Refusal::new("ip_not_in_vswitch_subnet", message));
        }
        Ok(())
    }

    pub(super) fn remove_target(
        &mut self,
        balancer: &LoadBalancer,
        request: &TargetRequest,
    ) -> Result<Answer, Refusal> {
        let gone = request.destination()?;
        if !balancer.targets.iter().any(|target| target.to == gone) {
            return Err(Refusal::not_found(
                "load balancer target",
                format!("{gone:?}"),
            ));
        }
        Ok(self.alter(balancer, "remove_target", move |balancer| {
            balancer.targets.retain(|target| target.to != gone);
        }))
    }
}

pub(super) fn check_attached(balancer: &LoadBalancer, use_private_ip: bool) -> Result<(), Refusal> {
    if use_private_ip && balancer.private_net.is_none() {
        return Err(not_attached());
    }
    Ok(())
}

pub(super) fn not_attached() -> Refusal {
    let message = "load balancer is not attached to the network";
    Refusal::new("load_balancer_not_attached_to_network", message)
}

fn check_server(
    balancer: &LoadBalancer,
    server: &Server,
    use_private_ip: bool,
) -> Result<(), Refusal> {
    check_attached(balancer, use_private_ip)?;
    match balancer.private_net {
        Some((network, _)) if use_private_ip => match server.in_network(network) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                "server_not_attached_to_network",
                "server is not attached to the network of the load balancer",
            )),
        },
        _ if server.ipv4.is_none() => Err(Refusal::new(
            "missing_ipv4",
            "server does not have a public IPv4 address",
        )),
        _ => Ok(()),
    }
}
