//! Calls that change balancers as a whole.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::jobs::RunsJobs as _;
use cloudkeel_emulation::list::Labels;
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{IdOrName, address, range, read};
use super::names::{check_free, check_labels, check_new};
use super::render::static_name;
use super::targets::{TargetRequest, check_attached, not_attached};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{
    AddressRequest, LOCATIONS, LoadBalancer, LoadBalancerType, Location, ProjectContext,
    PublicAddresses, find_location,
};

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
    services: Vec<Value>,
    #[serde(default)]
    targets: Vec<TargetRequest>,
}

#[derive(Deserialize)]
struct Algorithm {
    #[serde(rename = "type")]
    kind: String,
}

impl Algorithm {
    fn check(self, field: &str) -> Result<String, Refusal> {
        match self.kind.as_str() {
            "round_robin" | "least_connections" => Ok(self.kind),
            other => {
                let message = format!("unknown algorithm {other:?}");
                Err(Refusal::invalid(field, message))
            }
        }
    }
}

/// New names and labels. What is not said stays; labels are replaced as a whole.
#[derive(Deserialize)]
struct Update {
    name: Option<String>,
    labels: Option<Labels>,
}

#[derive(Deserialize)]
struct TypeRequest {
    load_balancer_type: IdOrName,
}

#[derive(Deserialize)]
struct AttachRequest {
    network: u64,
    ip: Option<String>,
    ip_range: Option<String>,
}

#[derive(Deserialize)]
struct DnsPtr {
    ip: IpAddr,
    dns_ptr: Option<String>,
}

impl ProjectContext<'_> {
    pub(super) fn change_balancer(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        if call.operation == Operation::CreateLoadBalancer {
            return self.create_balancer(read(call)?);
        }
        let balancer: LoadBalancer = self.find(call)?;
        if call.operation == Operation::UpdateLoadBalancer {
            return self.update_balancer(&balancer, read(call)?);
        }
        self.check_unlocked("load_balancer", balancer.id)?;
        match call.operation {
            Operation::DeleteLoadBalancer => self.delete_balancer(&balancer),
            Operation::AddService => self.add_service(&balancer, read(call)?),
            Operation::UpdateService => self.update_service(&balancer, read(call)?),
            Operation::DeleteService => self.delete_service(&balancer, &read(call)?),
            Operation::AddTarget => self.add_target(&balancer, &read(call)?),
            Operation::RemoveTarget => self.remove_target(&balancer, &read(call)?),
            Operation::ChangeType => self.change_type(&balancer, &read(call)?),
            Operation::AttachLoadBalancer => self.attach_balancer(&balancer, &read(call)?),
            Operation::DetachLoadBalancer => self.detach_balancer(&balancer, &read(call)?),
            Operation::ChangeDnsPtr => self.change_dns_ptr(&balancer, read(call)?),
            Operation::ChangeAlgorithm => {
                let algorithm = read::<Algorithm>(call)?.check("type")?;
                Ok(self.alter(&balancer, "change_algorithm", |balancer| {
                    balancer.algorithm = algorithm;
                }))
            }
            Operation::EnablePublicInterface => {
                let change = |balancer: &mut LoadBalancer| balancer.public_interface = true;
                Ok(self.alter(&balancer, "enable_public_interface", change))
            }
            _ => {
                balancer.check_can_go_private()?;
                let change = |balancer: &mut LoadBalancer| balancer.public_interface = false;
                Ok(self.alter(&balancer, "disable_public_interface", change))
            }
        }
    }

    /// Begins an action that changes nothing but the balancer.
    pub(super) fn alter(
        &mut self,
        balancer: &LoadBalancer,
        command: &'static str,
        change: impl FnOnce(&mut LoadBalancer) + Send + 'static,
    ) -> Answer {
        let id = balancer.id;
        let job = self.job(command, vec![("load_balancer", id)]);
        self.begin(job, move |project, at| {
            project.balancers.edit(&id, at, change);
        })
    }

    pub(crate) fn create_plain_balancer(
        &mut self,
        name: &str,
        labels: Labels,
    ) -> Result<(), Refusal> {
        let place = json!({"name": name, "load_balancer_type": "lb11", "location": "fsn1"});
        let new = serde_json::from_value(place);
        let new: NewBalancer = new.map_err(|error| Refusal::invalid("name", error.to_string()))?;
        self.create_balancer(NewBalancer { labels, ..new })
            .map(drop)
    }

    fn create_balancer(&mut self, new: NewBalancer) -> Result<Answer, Refusal> {
        check_new(&self.project.balancers, &new.name, &new.labels)?;
        if self.project.balancers.count() >= self.settings.limits.load_balancers {
            return Err(Refusal::limit_exceeded("load balancer limit exceeded"));
        }
        let algorithm = new.algorithm.map(|wanted| wanted.check("algorithm.type"));
        let mut balancer = LoadBalancer {
            kind: self.orderable_type(&new.load_balancer_type)?.id,
            location: location_of(new.location.as_ref(), new.network_zone.as_deref())?,
            id: self.counters.ids.number(),
            name: new.name,
            labels: new.labels,
            algorithm: algorithm.unwrap_or_else(|| Ok("round_robin".to_owned()))?,
            public: None,
            public_interface: new.public_interface.unwrap_or(true),
            private_net: None,
            services: Vec::new(),
            targets: Vec::new(),
            created: self.clock.time_at(self.now),
            protected: false,
        };
        if let Some(network) = new.network {
            let request = AttachRequest {
                network,
                ip: None,
                ip_range: None,
            };
            balancer.private_net = Some((network, self.find_address(&balancer, &request)?));
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
        let ipv6 = Ipv6Addr::from(u128::from(ipv6) | 1);
        let public = PublicAddresses {
            ipv4,
            ipv6,
            ipv4_ptr: static_name(ipv4.into()),
            ipv6_ptr: static_name(ipv6.into()),
        };
        self.project.balancers.put(id, balancer, self.now);
        let job = self.job("create_load_balancer", vec![("load_balancer", id)]);
        let job = self.project.begin(job, self.now, move |project, at| {
            project.balancers.edit(&id, at, |balancer| {
                balancer.public = Some(public);
            });
        });
        let built = self.project.balancers.get(&id);
        let body = json!({
            "load_balancer": built.map(|balancer| self.render_balancer(balancer)),
            "action": job.map(|job| self.action(&job)),
        });
        Answer::json(StatusCode::CREATED, &body)
    }

    fn update_balancer(
        &mut self,
        balancer: &LoadBalancer,
        update: Update,
    ) -> Result<Answer, Refusal> {
        if let Some(labels) = &update.labels {
            check_labels(labels)?;
        }
        if let Some(name) = &update.name {
            check_free(&self.project.balancers, name, Some(balancer.id))?;
        }
        let balancers = &mut self.project.balancers;
        balancers.edit(&balancer.id, self.now, |balancer| {
            balancer.name = update.name.unwrap_or_else(|| balancer.name.clone());
            balancer.labels = update.labels.unwrap_or_else(|| balancer.labels.clone());
        });
        let changed = self.project.balancers.get(&balancer.id);
        let shown = changed.map(|balancer| self.render_balancer(balancer));
        let body = json!({"load_balancer": shown});
        Ok(Answer::json(StatusCode::OK, &body))
    }

    fn orderable_type(&self, wanted: &IdOrName) -> Result<&LoadBalancerType, Refusal> {
        let wanted = wanted.text();
        let id = wanted.parse().ok();
        let mut types = self.balancer_types.iter();
        let found = types.find(|kind| kind.name == wanted || Some(kind.id) == id);
        let kind = found.ok_or_else(|| {
            Refusal::invalid("load_balancer_type", format!("unknown type {wanted}"))
        })?;
        match kind.deprecation {
            Some((_, gone)) if gone <= self.clock.time_at(self.now) => Err(Refusal::new(
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
        self.project.balancers.remove(&balancer.id, self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn change_type(
        &mut self,
        balancer: &LoadBalancer,
        request: &TypeRequest,
    ) -> Result<Answer, Refusal> {
        let kind = *self.orderable_type(&request.load_balancer_type)?;
        if balancer.services.len() > kind.max_services
            || balancer.targets.len() > kind.max_targets
            || balancer.certificates().len() > kind.max_assigned_certificates
        {
            let message = format!("the load balancer has more than {} allows", kind.name);
            return Err(Refusal::new("invalid_load_balancer_type", message));
        }
        let change = move |balancer: &mut LoadBalancer| balancer.kind = kind.id;
        Ok(self.alter(balancer, "change_load_balancer_type", change))
    }

    /// An address for a balancer in the network of a request.
    fn find_address(
        &self,
        balancer: &LoadBalancer,
        request: &AttachRequest,
    ) -> Result<Ipv4Addr, Refusal> {
        let network = self.project.networks.get(&request.network);
        let network = network.ok_or_else(|| Refusal::not_found("network", request.network))?;
        let ip = request.ip.as_deref().map(|ip| address("ip", ip));
        let ip_range = request.ip_range.as_deref();
        let request = AddressRequest {
            zone: balancer.location.network_zone,
            ip: ip.transpose()?,
            ip_range: ip_range.map(|text| range("ip_range", text)).transpose()?,
        };
        self.project.find_address(network, request)
    }

    fn attach_balancer(
        &mut self,
        balancer: &LoadBalancer,
        request: &AttachRequest,
    ) -> Result<Answer, Refusal> {
        if balancer.private_net.is_some() {
            let message = "load balancer is already attached to a network";
            return Err(Refusal::new("load_balancer_already_attached", message));
        }
        let (id, network) = (balancer.id, request.network);
        let ip = self.find_address(balancer, request)?;
        let resources = vec![("load_balancer", id), ("network", network)];
        let job = self.job("attach_to_network", resources);
        let action = job.id;
        self.project.reserved.insert(action, (network, ip));
        let job = self.project.begin_with(job, self.now, move |project, end| {
            project.reserved.remove(&action);
            if end.error.is_none() {
                project.balancers.edit(&id, end.at, |balancer| {
                    balancer.private_net = Some((network, ip));
                });
            }
        });
        let action = job.map(|job| self.action(&job));
        Ok(Answer::json(
            StatusCode::CREATED,
            &json!({"action": action}),
        ))
    }

    fn detach_balancer(
        &mut self,
        balancer: &LoadBalancer,
        request: &AttachRequest,
    ) -> Result<Answer, Refusal> {
        let (id, network) = (balancer.id, request.network);
        if balancer
            .private_net
            .is_none_or(|(there, _)| there != network)
        {
            return Err(not_attached());
        }
        let resources = vec![("load_balancer", id), ("network", network)];
        let job = self.job("detach_from_network", resources);
        Ok(self.begin(job, move |project, at| {
            project.balancers.edit(&id, at, |balancer| {
                balancer.private_net = None;
            });
        }))
    }

    fn change_dns_ptr(
        &mut self,
        balancer: &LoadBalancer,
        request: DnsPtr,
    ) -> Result<Answer, Refusal> {
        let has = |public: &PublicAddresses| {
            request.ip == IpAddr::V4(public.ipv4) || request.ip == IpAddr::V6(public.ipv6)
        };
        if !balancer.public.as_ref().is_some_and(has) {
            return Err(Refusal::not_found("IP", request.ip));
        }
        let name = request.dns_ptr.unwrap_or_else(|| static_name(request.ip));
        Ok(self.alter(balancer, "change_dns_ptr", move |balancer| {
            if let Some(public) = &mut balancer.public {
                match request.ip {
                    IpAddr::V4(_) => public.ipv4_ptr = name,
                    IpAddr::V6(_) => public.ipv6_ptr = name,
                }
            }
        }))
    }
}

impl LoadBalancer {
    fn check_can_go_private(&self) -> Result<(), Refusal> {
        check_attached(self, true)?;
        if self.targets.iter().any(|target| !target.use_private_ip) {
            let message = "load balancer has targets that use their public IP";
            return Err(Refusal::new("targets_without_use_private_ip", message));
        }
        Ok(())
    }
}

/// Either a location, or any of a zone.
fn location_of(
    location: Option<&IdOrName>,
    zone: Option<&str>,
) -> Result<&'static Location, Refusal> {
    match (location, zone) {
        (Some(_), Some(_)) | (None, None) => Err(Refusal::invalid(
            "location",
            "exactly one of location and network_zone must be given",
        )),
        (Some(wanted), None) => {
            let wanted = wanted.text();
            find_location(&wanted)
                .ok_or_else(|| Refusal::invalid("location", format!("unknown location {wanted}")))
        }
        (None, Some(zone)) => {
            let mut locations = LOCATIONS.iter();
            let found = locations.find(|location| location.network_zone == zone);
            found.ok_or_else(|| Refusal::invalid("network_zone", format!("unknown zone {zone:?}")))
        }
    }
}
