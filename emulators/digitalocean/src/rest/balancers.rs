//! Calls that change load balancers.

use cloudkeel_emulation::Answer;
use cloudkeel_emulation::history::View;
use http::StatusCode;
use serde::Deserialize;

use super::tags::check_tag;
use super::{Performed, one, shown};
use crate::DigitalOceanCloud;
use crate::refusal::Refusal;
use crate::resources::{
    BalancerFirewall, ForwardingRule, HealthCheck, LoadBalancer, REGIONS, StickySessions,
};
use crate::state::{AccountContext, activate};

/// All settings of a load balancer. What is not given is the default, also in an update.
#[derive(Deserialize)]
pub(super) struct BalancerRequest {
    #[serde(default)]
    name: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    forwarding_rules: Vec<ForwardingRule>,
    #[serde(default)]
    health_check: Option<HealthCheck>,
    #[serde(default)]
    sticky_sessions: Option<StickySessions>,
    #[serde(default)]
    droplet_ids: Option<Vec<u64>>,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    size: String,
    #[serde(default)]
    size_unit: u32,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    redirect_http_to_https: bool,
    #[serde(default)]
    enable_proxy_protocol: bool,
    #[serde(default)]
    enable_backend_keepalive: bool,
    #[serde(default)]
    vpc_uuid: String,
    #[serde(default)]
    subnet_uuid: String,
    #[serde(default)]
    ip: String,
    #[serde(default)]
    disable_lets_encrypt_dns_records: bool,
    #[serde(default)]
    http_idle_timeout_seconds: Option<u32>,
    #[serde(default)]
    firewall: Option<BalancerFirewall>,
    #[serde(default)]
    network: String,
    #[serde(default)]
    network_stack: String,
    #[serde(default)]
    project_id: String,
    #[serde(default)]
    validate_only: bool,
}

/// The old names of sizes, and how many nodes each is.
const SIZES: [(&str, u32); 3] = [("lb-small", 1), ("lb-medium", 3), ("lb-large", 6)];

fn one_of(field: &str, value: String, allowed: &[&str]) -> Result<String, Refusal> {
    if value.is_empty() {
        return Ok(allowed.first().copied().unwrap_or_default().to_owned());
    }
    if !allowed.contains(&value.as_str()) {
        return Err(Refusal::invalid(format!("{field} {value:?} is invalid")));
    }
    Ok(value)
}

fn size_of(request: &BalancerRequest) -> Result<u32, Refusal> {
    if request.size.is_empty() {
        return match request.size_unit {
            0 => Ok(1),
            units @ 1..=100 => Ok(units),
            _ => Err(Refusal::invalid("size_unit must be between 1 and 100")),
        };
    }
    if request.size_unit > 0 {
        return Err(Refusal::invalid(
            "only one of size and size_unit can be specified",
        ));
    }
    let found = SIZES.iter().find(|(name, _)| *name == request.size);
    let found = found.ok_or_else(|| Refusal::invalid("size is invalid"))?;
    Ok(found.1)
}

impl AccountContext<'_> {
    pub(super) fn create_balancer(&mut self, request: BalancerRequest) -> Performed {
        if self.account.balancers.count() >= self.settings.load_balancers {
            let message = "creating this load balancer will exceed your load balancer limit";
            return Err(Refusal::invalid(message));
        }
        let (ip, validate_only) = (request.ip.clone(), request.validate_only);
        let mut balancer = self.built(String::new(), request)?;
        if validate_only {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        }
        balancer.id = self.counters.ids.uuid();
        balancer.ip = ip;
        "new".clone_into(&mut balancer.status);
        balancer.resized = Some(self.now);
        let created = self.keep(balancer);
        Ok(shown(StatusCode::ACCEPTED, "load_balancer", &created))
    }

    /// Everything is replaced but what cannot change.
    pub(super) fn update_balancer(&mut self, id: &str, request: BalancerRequest) -> Performed {
        let have = self.account.balancers.get(id);
        let have = LoadBalancer::clone(have.ok_or_else(Refusal::not_found)?);
        if have.busy_until.is_some() || have.status == "new" {
            return Err(Refusal::busy());
        }
        let validate_only = request.validate_only;
        let mut balancer = self.built(id.to_owned(), request)?;
        for (field, before, after) in [
            ("type", &have.kind, &balancer.kind),
            ("network", &have.network, &balancer.network),
            (
                "network_stack",
                &have.network_stack,
                &balancer.network_stack,
            ),
        ] {
            if before != after {
                let message = format!("{field} cannot be updated after creating the load balancer");
                return Err(Refusal::invalid(message));
            }
        }
        balancer.resized = have.resized;
        if balancer.size_unit != have.size_unit {
            let earliest = have.resized.map(|at| at + self.settings.resize_after);
            if earliest.is_some_and(|earliest| self.now < earliest) {
                let message = "load balancers can be resized once per hour";
                return Err(Refusal::invalid(message));
            }
            balancer.resized = Some(self.now);
        }
        if validate_only {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        }
        balancer.status = have.status;
        balancer.ip = have.ip;
        balancer.ipv6 = have.ipv6;
        balancer.created_at = have.created_at;
        balancer.vpc_uuid = have.vpc_uuid;
        balancer.subnet_uuid = have.subnet_uuid;
        let updated = self.keep(balancer);
        Ok(one("load_balancer", &updated))
    }

    pub(super) fn delete_balancer(&mut self, id: &str) -> Performed {
        let found = self.account.balancers.get(id);
        found.ok_or_else(Refusal::not_found)?;
        self.account.balancers.remove(&id.to_owned(), self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Keeps a load balancer that works on its change for a while.
    fn keep(&mut self, mut balancer: LoadBalancer) -> LoadBalancer {
        let (id, busy) = (balancer.id.clone(), self.settings.balancer_duration);
        if busy.is_zero() {
            activate(&mut balancer, self.counters);
        } else {
            balancer.busy_until = Some(self.now + busy);
        }
        self.account.tags.extend(balancer.tags.iter().cloned());
        let balancers = &mut self.account.balancers;
        balancers.put(id, balancer.clone(), self.now);
        balancer
    }

    /// A load balancer with these settings, or what is wrong with them.
    fn built(&self, id: String, request: BalancerRequest) -> Result<LoadBalancer, Refusal> {
        let mut others = self.account.balancers.values(View::Now);
        if others.any(|other| other.name == request.name && other.id != id) {
            return Err(Refusal::invalid("name is not unique"));
        }
        self.check(&request)?;
        let region = REGIONS.iter().find(|region| region.slug == request.region);
        let region = *region.ok_or_else(|| Refusal::invalid("region is invalid"))?;
        let size_unit = size_of(&request)?;
        let size = SIZES.iter().find(|(_, units)| *units == size_unit);
        let external = ["EXTERNAL", "INTERNAL"];
        let or = |given: String, default: &str| match given.as_str() {
            "" => default.to_owned(),
            _ => given,
        };
        Ok(LoadBalancer {
            id,
            name: request.name,
            ip: String::new(),
            ipv6: String::new(),
            size: size.map_or_else(String::new, |(name, _)| (*name).to_owned()),
            size_unit,
            kind: one_of("type", request.kind, &["REGIONAL", "REGIONAL_NETWORK"])?,
            algorithm: "round_robin".to_owned(),
            status: "active".to_owned(),
            created_at: self.time(),
            forwarding_rules: request.forwarding_rules,
            health_check: request.health_check.unwrap_or_default(),
            sticky_sessions: request.sticky_sessions.unwrap_or_default(),
            region,
            tag: request.tag,
            droplet_ids: request.droplet_ids.unwrap_or_default(),
            tags: request.tags.unwrap_or_default(),
            redirect_http_to_https: request.redirect_http_to_https,
            enable_proxy_protocol: request.enable_proxy_protocol,
            enable_backend_keepalive: request.enable_backend_keepalive,
            vpc_uuid: or(request.vpc_uuid, DigitalOceanCloud::VPC),
            subnet_uuid: request.subnet_uuid,
            disable_lets_encrypt_dns_records: request.disable_lets_encrypt_dns_records,
            http_idle_timeout_seconds: request.http_idle_timeout_seconds.unwrap_or(60),
            firewall: request.firewall.unwrap_or_default(),
            network: one_of("network", request.network, &external)?,
            network_stack: one_of(
                "network_stack",
                request.network_stack,
                &["IPV4", "DUALSTACK"],
            )?,
            project_id: or(request.project_id, &self.account.uuid),
            busy_until: None,
            resized: None,
        })
    }

    fn check(&self, request: &BalancerRequest) -> Result<(), Refusal> {
        if request.name.is_empty() || request.name.len() > 255 {
            return Err(Refusal::invalid("name must be 1 to 255 characters long"));
        }
        if request.forwarding_rules.is_empty() {
            let message = "forwarding rules must have at least one entry";
            return Err(Refusal::invalid(message));
        }
        let droplets = request.droplet_ids.iter().flatten();
        let missing = droplets.filter(|id| self.account.droplets.get(id).is_none());
        let missing: Vec<_> = missing.map(ToString::to_string).collect();
        if !missing.is_empty() {
            let message = format!("droplets {} could not be found", missing.join(", "));
            return Err(Refusal::invalid(message));
        }
        let tags = request.tags.iter().flatten();
        tags.into_iter().try_for_each(|tag| check_tag(tag))?;
        let is_network = request.kind == "REGIONAL_NETWORK";
        for rule in &request.forwarding_rules {
            self.check_rule(rule, is_network)?;
        }
        let keys = |rule: &ForwardingRule| (rule.entry_port, transport(rule));
        let mut seen: Vec<_> = request.forwarding_rules.iter().map(keys).collect();
        seen.sort_unstable();
        if seen.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            return Err(Refusal::invalid("forwarding rules must be unique"));
        }
        Ok(())
    }

    fn check_rule(&self, rule: &ForwardingRule, is_network: bool) -> Result<(), Refusal> {
        let protocol = rule.entry_protocol.as_str();
        let known: &[&str] = if is_network {
            &["tcp", "udp"]
        } else {
            &["tcp", "udp", "http", "https", "http2", "http3"]
        };
        if !known.contains(&protocol) {
            let message = format!("entry protocol {protocol:?} is invalid");
            return Err(Refusal::invalid(message));
        }
        if rule.entry_port == 0 || (50_053..=50_055).contains(&rule.entry_port) {
            let message = format!("entry port {} is reserved", rule.entry_port);
            return Err(Refusal::invalid(message));
        }
        let id = &rule.certificate_id;
        let is_known = id.is_empty() || self.account.certificates.get(id.as_str()).is_some();
        let needs_one = matches!(protocol, "https" | "http2" | "http3") && !rule.tls_passthrough;
        if !is_known || (needs_one && id.is_empty()) {
            let message = format!("certificate {id:?} could not be found");
            return Err(Refusal::invalid(message));
        }
        Ok(())
    }

    /// An active load balancer with one port and no droplets.
    pub(crate) fn add_plain_balancer(&mut self, name: &str, tags: &[String]) -> String {
        let [region, ..] = REGIONS;
        let request = serde_json::json!({
            "name": name, "region": region.slug, "tags": tags, "type": "REGIONAL_NETWORK",
            "network_stack": "DUALSTACK",
            "forwarding_rules": [{
                "entry_protocol": "tcp", "entry_port": 1, "target_protocol": "tcp", "target_port": 1,
            }],
        });
        let built = serde_json::from_value(request);
        let built = built.map_err(|error| Refusal::invalid(error.to_string()));
        let built = built.and_then(|request| self.built(String::new(), request));
        let Ok(mut balancer) = built else {
            return String::new();
        };
        balancer.id = self.counters.ids.uuid();
        "new".clone_into(&mut balancer.status);
        activate(&mut balancer, self.counters);
        let (id, now) = (balancer.id.clone(), self.now);
        self.account.tags.extend(balancer.tags.iter().cloned());
        self.account.balancers.put(id.clone(), balancer, now);
        id
    }
}

/// UDP and HTTP/3 share no port with themselves, nor does everything else.
fn transport(rule: &ForwardingRule) -> bool {
    matches!(rule.entry_protocol.as_str(), "udp" | "http3")
}
