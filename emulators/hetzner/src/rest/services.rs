//! Services of balancers.

use std::collections::BTreeSet;

use cloudkeel_emulation::Answer;
use serde_json::{Value, json};

use super::body::parse;
use crate::refusal::Refusal;
use crate::state::{LoadBalancer, LoadBalancerType, ProjectContext, Service};

const PROTOCOLS: [&str; 3] = ["tcp", "http", "https"];

impl ProjectContext<'_> {
    pub(super) fn add_service(
        &mut self,
        balancer: &LoadBalancer,
        request: Value,
    ) -> Result<Answer, Refusal> {
        let service = self.new_service(balancer, request)?;
        Ok(self.alter(balancer, "add_service", |balancer| {
            balancer.services.push(service);
        }))
    }

    pub(super) fn new_service(
        &self,
        balancer: &LoadBalancer,
        request: Value,
    ) -> Result<Service, Refusal> {
        let (listen_port, destination_port) = match text_at(&request, "/protocol") {
            Some("http") => (json!(80), json!(80)),
            Some("https") => (json!(443), json!(80)),
            _ => (Value::Null, Value::Null),
        };
        let protocol = text_at(&request, "/protocol").unwrap_or_default();
        let health_protocol = if protocol == "tcp" { "tcp" } else { "http" };
        let port = request.get("destination_port");
        let port = port.filter(|port| !port.is_null());
        let base = json!({
            "protocol": protocol,
            "listen_port": listen_port,
            "destination_port": destination_port,
            "proxyprotocol": false,
            "health_check": {
                "protocol": health_protocol, "port": port.unwrap_or(&destination_port),
                "interval": 15, "timeout": 10, "retries": 3,
            },
        });
        let service = merged(base, request)?;
        let mut others = balancer.services.iter();
        if others.any(|other| other.listen_port == service.listen_port) {
            let message = format!("port {} is already used", service.listen_port);
            return Err(Refusal::new("source_port_already_used", message));
        }
        let kind = self.type_of(balancer)?;
        if balancer.services.len() >= kind.max_services {
            let message = format!("{} has at most {} services", kind.name, kind.max_services);
            return Err(Refusal::limit_exceeded(message));
        }
        self.check_certificates(balancer, &service, kind)?;
        Ok(service)
    }

    pub(super) fn update_service(
        &mut self,
        balancer: &LoadBalancer,
        request: Value,
    ) -> Result<Answer, Refusal> {
        let found = balancer.service_at(&request)?;
        let service = merged(json!(found), request)?;
        self.check_certificates(balancer, &service, self.type_of(balancer)?)?;
        Ok(self.alter(balancer, "update_service", move |balancer| {
            let mut services = balancer.services.iter_mut();
            let old = services.find(|old| old.listen_port == service.listen_port);
            if let Some(old) = old {
                *old = service;
            }
        }))
    }

    pub(super) fn delete_service(
        &mut self,
        balancer: &LoadBalancer,
        request: &Value,
    ) -> Result<Answer, Refusal> {
        let port = balancer.service_at(request)?.listen_port;
        Ok(self.alter(balancer, "delete_service", move |balancer| {
            let services = &mut balancer.services;
            services.retain(|service| service.listen_port != port);
        }))
    }

    pub(super) fn type_of(&self, balancer: &LoadBalancer) -> Result<&LoadBalancerType, Refusal> {
        let mut types = self.balancer_types.iter();
        let found = types.find(|kind| kind.id == balancer.kind);
        found.ok_or_else(|| Refusal::not_found("load balancer type", balancer.kind))
    }

    fn check_certificates(
        &self,
        balancer: &LoadBalancer,
        service: &Service,
        kind: &LoadBalancerType,
    ) -> Result<(), Refusal> {
        let mine = service.http.iter().flat_map(|http| &http.certificates);
        let known = &self.project.certificates;
        let mut all = mine.clone();
        if let Some(id) = all.find(|id| known.get(*id).is_none()) {
            return Err(Refusal::not_found("certificate", id));
        }
        if service.protocol == "https" && mine.clone().next().is_none() {
            let message = "https needs at least one certificate";
            return Err(Refusal::invalid("http.certificates", message));
        }
        let mut all = balancer.certificates();
        all.extend(mine.copied());
        let most = kind.max_assigned_certificates;
        if all.len() > most {
            let message = format!("{} has at most {most} certificates", kind.name);
            return Err(Refusal::limit_exceeded(message));
        }
        Ok(())
    }
}

impl LoadBalancer {
    /// The service of the port that a request names.
    fn service_at(&self, request: &Value) -> Result<&Service, Refusal> {
        let port = request.get("listen_port").unwrap_or(&Value::Null);
        let mut services = self.services.iter();
        let found = services.find(|service| json!(service.listen_port) == *port);
        found.ok_or_else(|| Refusal::not_found("service", port))
    }

    /// The certificates of all its services.
    pub(super) fn certificates(&self) -> BTreeSet<u64> {
        let services = self.services.iter();
        let https = services.filter_map(|service| service.http.as_ref());
        let ids = https.flat_map(|http| &http.certificates);
        ids.copied().collect()
    }
}

/// A service as a request changes it. What the request does not say is as before, or the default.
fn merged(mut base: Value, request: Value) -> Result<Service, Refusal> {
    let protocol = |path| text_at(&request, path).or_else(|| text_at(&base, path));
    let is_tcp = protocol("/protocol") == Some("tcp");
    let is_checked_by_tcp = protocol("/health_check/protocol") == Some("tcp");
    let http = json!({
        "cookie_name": "HCLBSTICKY", "cookie_lifetime": 300, "certificates": [],
        "redirect_http": false, "sticky_sessions": false, "timeout_idle": 60,
    });
    let check = json!({
        "domain": "", "path": "/", "response": "", "status_codes": ["2??", "3??"], "tls": false,
    });
    let mut defaults = json!({"http": http, "health_check": {"http": check}});
    merge(&mut defaults, base);
    base = defaults;
    merge(&mut base, request);
    let mut service: Service = parse(base)?;
    if is_tcp {
        service.http = None;
    }
    if is_checked_by_tcp {
        service.health_check.http = None;
    }
    if let Some(http) = &mut service.health_check.http {
        // Names of hosts are kept in lower case.
        http.domain = http.domain.to_lowercase();
    }
    service.check()?;
    Ok(service)
}

impl Service {
    fn check(&self) -> Result<(), Refusal> {
        let check = &self.health_check;
        for (field, protocol) in [
            ("protocol", &self.protocol),
            ("health_check.protocol", &check.protocol),
        ] {
            if !PROTOCOLS.contains(&protocol.as_str()) {
                let message = format!("{protocol:?} is none of tcp, http, https");
                return Err(Refusal::invalid(field, message));
            }
        }
        for (field, number, range) in [
            ("listen_port", u32::from(self.listen_port), 1..=65535),
            (
                "destination_port",
                u32::from(self.destination_port),
                1..=65535,
            ),
            ("health_check.port", u32::from(check.port), 1..=65535),
            ("health_check.interval", check.interval, 3..=60),
            ("health_check.timeout", check.timeout, 1..=60),
            ("health_check.retries", check.retries, 1..=5),
        ] {
            if !range.contains(&number) {
                let message = format!("must be from {} to {}", range.start(), range.end());
                return Err(Refusal::invalid(field, message));
            }
        }
        Ok(())
    }
}

fn text_at<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

/// Puts the fields of `new` into `into`. A field that is null says nothing.
fn merge(into: &mut Value, new: Value) {
    match (into, new) {
        (_, Value::Null) => {}
        (Value::Object(into), Value::Object(new)) => {
            for (field, value) in new {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (into, new) => *into = new,
    }
}
