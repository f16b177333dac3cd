//! Calls that change networks.

use ipnet::Ipv4Net;
use serde::Deserialize;
use serde_json::json;

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{Labels, Network, Project, Scene, Server, Subnet, edit, first_address};
use super::body::{range, read};
use super::names::{Update, check_new};
use super::routes::RouteWish;
use super::servers::Protection;
use super::{Answer, Call};

#[derive(Deserialize)]
struct NewNetwork {
    name: String,
    ip_range: String,
    #[serde(default)]
    subnets: Vec<NewSubnet>,
    #[serde(default)]
    routes: Vec<RouteWish>,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    expose_routes_to_vswitch: bool,
}

#[derive(Deserialize)]
struct NewSubnet {
    #[serde(rename = "type")]
    kind: String,
    ip_range: Option<String>,
    network_zone: String,
    vswitch_id: Option<u64>,
}

#[derive(Deserialize)]
struct Range {
    ip_range: String,
}

impl Scene<'_> {
    pub(super) fn change_network(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        if call.operation == Operation::CreateNetwork {
            return self.create_network(read(call.body)?);
        }
        let id = call.id("network")?;
        let found = self.project.networks.get(id);
        let network = found
            .ok_or_else(|| Refusal::not_found("network", id))?
            .as_ref()
            .clone();
        if call.operation == Operation::UpdateNetwork {
            let update: Update = read(call.body)?;
            update.apply(&mut self.project.networks, id, self.now)?;
            let changed = self.project.networks.get(id);
            return self.show("network", id, changed, Self::render_network);
        }
        self.project.check_unlocked(("network", id))?;
        let action = match call.operation {
            Operation::DeleteNetwork => return self.delete_network(&network),
            Operation::AddSubnet => self.add_subnet(&network, read(call.body)?)?,
            Operation::DeleteSubnet => self.delete_subnet(&network, &read(call.body)?)?,
            Operation::AddRoute => self.add_route(&network, &read(call.body)?)?,
            Operation::DeleteRoute => self.delete_route(&network, &read(call.body)?)?,
            Operation::ChangeIpRange => self.change_ip_range(&network, &read(call.body)?)?,
            _ => {
                let wanted: Protection = read(call.body)?;
                let work = self.work("change_protection", vec![("network", id)]);
                let protect = move |project: &mut Project, now| {
                    edit(&mut project.networks, id, now, |network| {
                        network.protected = wanted.delete.unwrap_or(network.protected);
                    });
                };
                self.project.begin(work, protect, None)
            }
        };
        Ok(self.began(&action))
    }

    fn create_network(&mut self, new: NewNetwork) -> Result<Answer, Refusal> {
        check_new(&self.project.networks, &new.name, &new.labels)?;
        if self.project.networks.count() >= self.settings.limits.networks {
            return Err(Refusal::new(
                "resource_limit_exceeded",
                "network limit exceeded",
            ));
        }
        let ip_range = range("ip_range", &new.ip_range)?;
        if !is_private(ip_range) || ip_range.prefix_len() > 24 {
            let message = "must be private and of /24 or more";
            return Err(Refusal::invalid("ip_range", message));
        }
        let mut network = Network {
            id: self.counters.id(),
            name: new.name,
            ip_range,
            subnets: Vec::new(),
            routes: Vec::new(),
            labels: new.labels,
            created: self.now.time,
            protected: false,
            expose_routes_to_vswitch: new.expose_routes_to_vswitch,
        };
        for subnet in new.subnets {
            let subnet = network.subnet(subnet)?;
            network.subnets.push(subnet);
        }
        for route in &new.routes {
            let route = network.new_route(route, self.settings.limits.routes)?;
            network.routes.push(route);
        }
        let rendered = self.render_network(&network);
        self.project
            .networks
            .put(network.id, network, self.now.instant);
        Ok(Answer::created(json!({"network": rendered})))
    }

    /// Whoever is in the network is taken out.
    fn delete_network(&mut self, network: &Network) -> Result<Answer, Refusal> {
        if network.protected {
            return Err(Refusal::new("protected", "network deletion is protected"));
        }
        let (id, now) = (network.id, self.now);
        let servers: Vec<u64> = self.project.servers.iter().map(|(id, _)| id).collect();
        for server in servers {
            edit(&mut self.project.servers, server, now, |server| {
                server.private_net.retain(|net| net.network != id);
            });
        }
        let balancers: Vec<u64> = self.project.balancers.iter().map(|(id, _)| id).collect();
        for balancer in balancers {
            edit(&mut self.project.balancers, balancer, now, |balancer| {
                balancer.private_net = balancer.private_net.filter(|(there, _)| *there != id);
            });
        }
        self.project.networks.remove(id, now.instant);
        Ok(Answer::nothing())
    }

    fn add_subnet(&mut self, network: &Network, new: NewSubnet) -> Result<Action, Refusal> {
        let (id, subnet) = (network.id, network.subnet(new)?);
        let work = self.work("add_subnet", vec![("network", id)]);
        let add = move |project: &mut Project, now| {
            edit(&mut project.networks, id, now, |network| {
                network.subnets.push(subnet);
            });
        };
        Ok(self.project.begin(work, add, None))
    }

    fn delete_subnet(&mut self, network: &Network, gone: &Range) -> Result<Action, Refusal> {
        let (id, gone) = (network.id, range("ip_range", &gone.ip_range)?);
        if !network.subnets.iter().any(|subnet| subnet.ip_range == gone) {
            return Err(Refusal::not_found("subnet", gone));
        }
        let servers = &self.project.servers;
        let lives_there = |server: &Server| {
            let net = server.in_network(id);
            net.is_some_and(|net| gone.contains(&net.ip))
        };
        if servers.iter().any(|(_, server)| lives_there(server)) {
            return Err(Refusal::new(
                "resource_in_use",
                "servers are attached to this subnet",
            ));
        }
        let work = self.work("delete_subnet", vec![("network", id)]);
        let delete = move |project: &mut Project, now| {
            edit(&mut project.networks, id, now, |network| {
                network.subnets.retain(|subnet| subnet.ip_range != gone);
            });
        };
        Ok(self.project.begin(work, delete, None))
    }

    fn change_ip_range(&mut self, network: &Network, wanted: &Range) -> Result<Action, Refusal> {
        let (id, wanted) = (network.id, range("ip_range", &wanted.ip_range)?);
        if !wanted.contains(&network.ip_range) || wanted.network() != network.ip_range.network() {
            return Err(Refusal::invalid("ip_range", "can only be extended"));
        }
        let work = self.work("change_ip_range", vec![("network", id)]);
        let change = move |project: &mut Project, now| {
            edit(&mut project.networks, id, now, |network| {
                network.ip_range = wanted;
            });
        };
        Ok(self.project.begin(work, change, None))
    }
}

impl Network {
    /// A subnet that is good for this network.
    fn subnet(&self, new: NewSubnet) -> Result<Subnet, Refusal> {
        if !["cloud", "server", "vswitch"].contains(&new.kind.as_str()) {
            return Err(Refusal::invalid(
                "type",
                format!("unknown type {:?}", new.kind),
            ));
        }
        let ip_range = if let Some(text) = &new.ip_range {
            range("ip_range", text)?
        } else {
            let candidates = self.ip_range.subnets(24).ok().into_iter().flatten();
            let mut free = candidates.filter(|range| !self.overlaps_subnet(*range));
            free.next()
                .ok_or_else(|| Refusal::invalid("ip_range", "no subnet is left"))?
        };
        if !self.ip_range.contains(&ip_range) {
            return Err(Refusal::invalid("ip_range", "is not inside the network"));
        }
        if self.overlaps_subnet(ip_range) {
            return Err(Refusal::invalid("ip_range", "overlaps with another subnet"));
        }
        Ok(Subnet {
            gateway: first_address(self.ip_range),
            kind: new.kind,
            ip_range,
            network_zone: new.network_zone,
            vswitch_id: new.vswitch_id,
        })
    }

    pub(super) fn overlaps_subnet(&self, range: Ipv4Net) -> bool {
        self.subnets
            .iter()
            .any(|subnet| overlap(subnet.ip_range, range))
    }
}

pub(super) fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b) || b.contains(&a)
}

/// Whether all of it is private by RFC 1918.
pub(super) fn is_private(range: Ipv4Net) -> bool {
    let private = [
        ([10, 0, 0, 0], 8),
        ([172, 16, 0, 0], 12),
        ([192, 168, 0, 0], 16),
    ];
    let mut private = private
        .map(|(ip, length)| Ipv4Net::new_assert(ip.into(), length))
        .into_iter();
    private.any(|private| private.contains(&range))
}
