//! Calls that change balancers as a whole.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    LOCATIONS, Labels, LoadBalancer, LoadBalancerType, Location, Project, PublicAddresses, Scene,
    edit, find_location,
};
use super::body::{IdOrName, read};
use super::names::{Update, check_new};
use super::places::PlaceWish;
use super::render::static_name;
use super::servers::Protection;
use super::services::ServiceWish;
use super::targets::TargetWish;
use super::{Answer, Call};

#[derive(Deserialize)]
struct NewBalancer {
    name: String,
    load_balancer_type: IdOrName,
    location: Option<IdOrName>,
    network_zone: Option<String>,
    #[serde(default)]
    labels: Labels,
    algorithm: Option<Algorithm>,
    public_interface: Option<bool>,
    network: Option<u64>,
    #[serde(default)]
    services: Vec<ServiceWish>,
    #[serde(default)]
    targets: Vec<TargetWish>,
}

#[derive(Deserialize)]
struct Algorithm {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ChangeType {
    load_balancer_type: IdOrName,
}

#[derive(Deserialize)]
struct DnsPtr {
    ip: IpAddr,
    dns_ptr: Option<String>,
}

impl Scene<'_> {
    pub(super) fn change_balancer(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        if call.operation == Operation::CreateLoadBalancer {
            return self.create_balancer(read(call.body)?);
        }
        let id = call.id("load balancer")?;
        let found = self.project.balancers.get(id);
        let found = found.ok_or_else(|| Refusal::not_found("load balancer", id))?;
        let balancer = found.as_ref().clone();
        if call.operation == Operation::UpdateLoadBalancer {
            let update: Update = read(call.body)?;
            update.apply(&mut self.project.balancers, id, self.now)?;
            let changed = self.project.balancers.get(id);
            return self.show("load balancer", id, changed, Self::render_balancer);
        }
        self.project.check_unlocked(("load_balancer", id))?;
        let action = match call.operation {
            Operation::DeleteLoadBalancer => return self.delete_balancer(&balancer),
            Operation::AddService => self.add_service(&balancer, read(call.body)?)?,
            Operation::UpdateService => self.update_service(&balancer, read(call.body)?)?,
            Operation::DeleteService => self.delete_service(&balancer, &read(call.body)?)?,
            Operation::AddTarget => self.add_target(&balancer, &read(call.body)?)?,
            Operation::RemoveTarget => self.remove_target(&balancer, &read(call.body)?)?,
            Operation::ChangeType => self.change_type(&balancer, &read(call.body)?)?,
            Operation::AttachLoadBalancer => self.attach_balancer(&balancer, &read(call.body)?)?,
            Operation::DetachLoadBalancer => self.detach_balancer(&balancer, &read(call.body)?)?,
            Operation::ChangeDnsPtr => self.change_dns_ptr(&balancer, read(call.body)?)?,
            Operation::ChangeAlgorithm => {
                let Algorithm { kind } = check_algorithm("type", read(call.body)?)?;
                self.alter(&balancer, "change_algorithm", |balancer| {
                    balancer.algorithm = kind;
                })
            }
            Operation::ChangeProtection => {
                let wanted: Protection = read(call.body)?;
                self.alter(&balancer, "change_protection", move |balancer| {
                    balancer.protected = wanted.delete.unwrap_or(balancer.protected);
                })
            }
            Operation::EnablePublicInterface => {
                let change = |balancer: &mut LoadBalancer| balancer.public_interface = true;
                self.alter(&balancer, "enable_public_interface", change)
            }
            _ => {
                balancer.check_can_go_private()?;
                let change = |balancer: &mut LoadBalancer| balancer.public_interface = false;
                self.alter(&balancer, "disable_public_interface", change)
            }
        };
        Ok(self.began(&action))
    }

    /// Begins work that changes nothing but the balancer.
    pub(super) fn alter(
        &mut self,
        balancer: &LoadBalancer,
        command: &'static str,
        change: impl FnOnce(&mut LoadBalancer) + Send + 'static,
    ) -> Action {
        let id = balancer.id;
        let work = self.work(command, vec![("load_balancer", id)]);
        let effect = move |project: &mut Project, now| {
            edit(&mut project.balancers, id, now, change);
        };
        self.project.begin(work, effect, None)
    }

    fn create_balancer(&mut self, new: NewBalancer) -> Result<Answer, Refusal> {
        check_new(&self.project.balancers, &new.name, &new.labels)?;
        if self.project.balancers.count() >= self.settings.limits.load_balancers {
            let message = "load balancer limit exceeded";
            return Err(Refusal::new("resource_limit_exceeded", message));
        }
        let algorithm = new
            .algorithm
            .map(|wish| check_algorithm("algorithm.type", wish));
        let mut balancer = LoadBalancer {
            kind: self.orderable_type(&new.load_balancer_type)?.id,
            location: place(new.location.as_ref(), new.network_zone.as_deref())?,
            id: self.counters.id(),
            name: new.name,
            labels: new.labels,
            algorithm: algorithm
                .transpose()?
                .map_or_else(|| "round_robin".to_owned(), |algorithm| algorithm.kind),
            public: None,
            public_interface: new.public_interface.unwrap_or(true),
            private_net: None,
            services: Vec::new(),
            targets: Vec::new(),
            created: self.now.time,
            protected: false,
        };
        if let Some(network) = new.network {
            let wish = PlaceWish::anywhere_in(network);
            let place = self.find_place(&wish, balancer.location.network_zone)?;
            balancer.private_net = Some(place);
        }
        for service in new.services {
            let service = self.new_service(&balancer, service)?;
            balancer.services.push(service);
        }
        for target in &new.targets {
            let target = self.new_target(&balancer, target)?;
            balancer.targets.push(target);
        }
        Ok(self.build_balancer(balancer))
    }

    /// A balancer has its addresses when it is built.
    fn build_balancer(&mut self, balancer: LoadBalancer) -> Answer {
        let id = balancer.id;
        let (ipv4, ipv6) = (self.counters.ipv4(), self.counters.ipv6().network());
        let ipv6 = std::net::Ipv6Addr::from(u128::from(ipv6) | 1);
        let public = PublicAddresses {
            ipv4,
            ipv6,
            ipv4_ptr: static_name(ipv4.into()),
            ipv6_ptr: static_name(ipv6.into()),
        };
        self.project.balancers.put(id, balancer, self.now.instant);
        let work = self.work("create_load_balancer", vec![("load_balancer", id)]);
        let build = move |project: &mut Project, now| {
            edit(&mut project.balancers, id, now, |balancer| {
                balancer.public = Some(public);
            });
        };
        let action = self.project.begin(work, build, None);
        let balancer = self
            .project
            .balancers
            .get(id)
            .map(|built| self.render_balancer(built));
        Answer::created(json!({
            "load_balancer": balancer,
            "action": action.wire(self.now.instant),
        }))
    }

    fn orderable_type(&self, wish: &IdOrName) -> Result<&LoadBalancerType, Refusal> {
        let id = wish.0.parse().ok();
        let mut types = self.balancer_types.iter();
        let found = types.find(|kind| kind.name == wish.0 || Some(kind.id) == id);
        let kind = found.ok_or_else(|| {
            Refusal::invalid("load_balancer_type", format!("unknown type {wish}"))
        })?;
        match kind.deprecation {
            Some((_, gone)) if gone <= self.now.time => Err(Refusal::new(
                "resource_unavailable",
                format!("load balancer type {} can no longer be ordered", kind.name),
            )),
            _ => Ok(kind),
        }
    }

    fn delete_balancer(&mut self, balancer: &LoadBalancer) -> Result<Answer, Refusal> {
        if balancer.protected {
            let message = "load balancer deletion is protected";
            return Err(Refusal::new("protected", message));
        }
        self.project.balancers.remove(balancer.id, self.now.instant);
        Ok(Answer::nothing())
    }

    fn change_type(
        &mut self,
        balancer: &LoadBalancer,
        wish: &ChangeType,
    ) -> Result<Action, Refusal> {
        let kind = *self.orderable_type(&wish.load_balancer_type)?;
        if balancer.services.len() > kind.max_services
            || balancer.targets.len() > kind.max_targets
            || balancer.certificates().len() > kind.max_assigned_certificates
        {
            let message = format!("the load balancer has more than {} allows", kind.name);
            return Err(Refusal::new("invalid_load_balancer_type", message));
        }
        Ok(
            self.alter(balancer, "change_load_balancer_type", move |balancer| {
                balancer.kind = kind.id;
            }),
        )
    }

    fn attach_balancer(
        &mut self,
        balancer: &LoadBalancer,
        wish: &PlaceWish,
    ) -> Result<Action, Refusal> {
        if balancer.private_net.is_some() {
            let message = "load balancer is already attached to a network";
            return Err(Refusal::new("load_balancer_already_attached", message));
        }
        let (network, ip) = self.find_place(wish, balancer.location.network_zone)?;
        let id = balancer.id;
        let resources = vec![("load_balancer", id), ("network", network)];
        let mut work = self.work("attach_to_network", resources);
        work.place = Some((network, ip));
        let attach = move |project: &mut Project, now| {
            edit(&mut project.balancers, id, now, |balancer| {
                balancer.private_net = Some((network, ip));
            });
        };
        Ok(self.project.begin(work, attach, None))
    }

    fn detach_balancer(
        &mut self,
        balancer: &LoadBalancer,
        wish: &PlaceWish,
    ) -> Result<Action, Refusal> {
        let (id, network) = (balancer.id, wish.network);
        if balancer
            .private_net
            .is_none_or(|(there, _)| there != network)
        {
            let message = "load balancer is not attached to this network";
            return Err(Refusal::new(
                "load_balancer_not_attached_to_network",
                message,
            ));
        }
        let resources = vec![("load_balancer", id), ("network", network)];
        let work = self.work("detach_from_network", resources);
        let detach = move |project: &mut Project, now| {
            edit(&mut project.balancers, id, now, |balancer| {
                balancer.private_net = None;
            });
        };
        Ok(self.project.begin(work, detach, None))
    }

    fn change_dns_ptr(&mut self, balancer: &LoadBalancer, wish: DnsPtr) -> Result<Action, Refusal> {
        let has = |public: &PublicAddresses| {
            wish.ip == IpAddr::V4(public.ipv4) || wish.ip == IpAddr::V6(public.ipv6)
        };
        if !balancer.public.as_ref().is_some_and(has) {
            return Err(Refusal::not_found("IP", wish.ip));
        }
        let name = wish.dns_ptr.unwrap_or_else(|| static_name(wish.ip));
        Ok(self.alter(balancer, "change_dns_ptr", move |balancer| {
            if let Some(public) = &mut balancer.public {
                match wish.ip {
                    IpAddr::V4(_) => public.ipv4_ptr = name,
                    IpAddr::V6(_) => public.ipv6_ptr = name,
                }
            }
        }))
    }
}

impl LoadBalancer {
    fn check_can_go_private(&self) -> Result<(), Refusal> {
        if self.private_net.is_none() {
            let message = "load balancer is not attached to a network";
            return Err(Refusal::new(
                "load_balancer_not_attached_to_network",
                message,
            ));
        }
        if self.targets.iter().any(|target| !target.use_private_ip) {
            let message = "load balancer has targets that use their public IP";
            return Err(Refusal::new("targets_without_use_private_ip", message));
        }
        Ok(())
    }
}

fn check_algorithm(field: &str, algorithm: Algorithm) -> Result<Algorithm, Refusal> {
    match algorithm.kind.as_str() {
        "round_robin" | "least_connections" => Ok(algorithm),
        other => Err(Refusal::invalid(
            field,
            format!("unknown algorithm {other:?}"),
        )),
    }
}

/// Either a location, or any of a zone.
fn place(location: Option<&IdOrName>, zone: Option<&str>) -> Result<&'static Location, Refusal> {
    match (location, zone) {
        (Some(_), Some(_)) | (None, None) => Err(Refusal::invalid(
            "location",
            "exactly one of location and network_zone must be given",
        )),
        (Some(wish), None) => find_location(&wish.0)
            .ok_or_else(|| Refusal::invalid("location", format!("unknown location {wish}"))),
        (None, Some(zone)) => {
            let mut places = LOCATIONS.iter();
            let found = places.find(|place| place.network_zone == zone);
            found.ok_or_else(|| Refusal::invalid("network_zone", format!("unknown zone {zone:?}")))
        }
    }
}
