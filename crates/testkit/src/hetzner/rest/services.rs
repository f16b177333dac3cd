//! Services of balancers.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    HealthCheck, HealthCheckHttp, Http, LoadBalancer, LoadBalancerType, Scene, Service,
};

/// A service as somebody wishes it. What is not said is as before, or the default.
#[derive(Deserialize)]
pub(super) struct ServiceWish {
    protocol: Option<String>,
    listen_port: Option<i64>,
    destination_port: Option<i64>,
    proxyprotocol: Option<bool>,
    http: Option<HttpWish>,
    health_check: Option<HealthCheckWish>,
}

#[derive(Deserialize)]
struct HttpWish {
    cookie_name: Option<String>,
    cookie_lifetime: Option<u32>,
    certificates: Option<Vec<u64>>,
    redirect_http: Option<bool>,
    sticky_sessions: Option<bool>,
    timeout_idle: Option<u32>,
}

#[derive(Deserialize)]
struct HealthCheckWish {
    protocol: Option<String>,
    port: Option<i64>,
    interval: Option<u32>,
    timeout: Option<u32>,
    retries: Option<u32>,
    http: Option<HealthCheckHttpWish>,
}

#[derive(Deserialize)]
struct HealthCheckHttpWish {
    domain: Option<String>,
    path: Option<String>,
    response: Option<String>,
    status_codes: Option<Vec<String>>,
    tls: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Port {
    listen_port: u16,
}

impl Scene<'_> {
    pub(super) fn add_service(
        &mut self,
        balancer: &LoadBalancer,
        wish: ServiceWish,
    ) -> Result<Action, Refusal> {
        let service = self.new_service(balancer, wish)?;
        Ok(self.alter(balancer, "add_service", |balancer| {
            balancer.services.push(service);
        }))
    }

    pub(super) fn new_service(
        &self,
        balancer: &LoadBalancer,
        wish: ServiceWish,
    ) -> Result<Service, Refusal> {
        let protocol = protocol("protocol", wish.protocol.as_deref().unwrap_or_default())?;
        let (listen, destination) = match protocol {
            "http" => (Some(80), Some(80)),
            "https" => (Some(443), Some(80)),
            _ => (None, None),
        };
        let listen_port = port("listen_port", wish.listen_port, listen)?;
        let destination_port = port("destination_port", wish.destination_port, destination)?;
        let base = Service {
            protocol: protocol.to_owned(),
            listen_port,
            destination_port,
            proxyprotocol: false,
            http: None,
            health_check: HealthCheck {
                protocol: if protocol == "tcp" { "tcp" } else { "http" }.to_owned(),
                port: destination_port,
                interval: 15,
                timeout: 10,
                retries: 3,
                http: None,
            },
        };
        let service = base.changed(wish)?;
        if balancer
            .services
            .iter()
            .any(|other| other.listen_port == listen_port)
        {
            let message = format!("port {listen_port} is already used");
            return Err(Refusal::new("source_port_already_used", message));
        }
        let kind = self.type_of(balancer)?;
        if balancer.services.len() >= kind.max_services {
            let message = format!("{} has at most {} services", kind.name, kind.max_services);
            return Err(Refusal::new("resource_limit_exceeded", message));
        }
        self.check_certificates(balancer, &service, kind)?;
        Ok(service)
    }

    pub(super) fn update_service(
        &mut self,
        balancer: &LoadBalancer,
        wish: ServiceWish,
    ) -> Result<Action, Refusal> {
        let listen_port = port("listen_port", wish.listen_port, None)?;
        let mut services = balancer.services.iter();
        let found = services.find(|service| service.listen_port == listen_port);
        let found = found.ok_or_else(|| Refusal::not_found("service", listen_port))?;
        let service = found.clone().changed(wish)?;
        self.check_certificates(balancer, &service, self.type_of(balancer)?)?;
        Ok(self.alter(balancer, "update_service", move |balancer| {
            let services = balancer.services.iter_mut();
            for old in services.filter(|old| old.listen_port == listen_port) {
                old.clone_from(&service);
            }
        }))
    }

    pub(super) fn delete_service(
        &mut self,
        balancer: &LoadBalancer,
        gone: &Port,
    ) -> Result<Action, Refusal> {
        let port = gone.listen_port;
        if !balancer
            .services
            .iter()
            .any(|service| service.listen_port == port)
        {
            return Err(Refusal::not_found("service", port));
        }
        Ok(self.alter(balancer, "delete_service", move |balancer| {
            balancer
                .services
                .retain(|service| service.listen_port != port);
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
        for id in mine.clone() {
            if self.project.certificates.get(*id).is_none() {
                return Err(Refusal::not_found("certificate", id));
            }
        }
        if service.protocol == "https" && mine.clone().next().is_none() {
            let message = "https needs at least one certificate";
            return Err(Refusal::invalid("http.certificates", message));
        }
        let mut all = balancer.certificates();
        all.extend(mine.copied());
        if all.len() > kind.max_assigned_certificates {
            let most = kind.max_assigned_certificates;
            let message = format!("{} has at most {most} certificates", kind.name);
            return Err(Refusal::new("resource_limit_exceeded", message));
        }
        Ok(())
    }
}

impl LoadBalancer {
    /// The certificates of all its services.
    pub(super) fn certificates(&self) -> BTreeSet<u64> {
        let https = self
            .services
            .iter()
            .filter_map(|service| service.http.as_ref());
        https
            .flat_map(|http| http.certificates.iter().copied())
            .collect()
    }
}

impl Service {
    /// The service as wished, the rest as it was.
    fn changed(mut self, wish: ServiceWish) -> Result<Self, Refusal> {
        if let Some(wished) = &wish.protocol {
            protocol("protocol", wished)?.clone_into(&mut self.protocol);
        }
        if wish.destination_port.is_some() {
            self.destination_port = port("destination_port", wish.destination_port, None)?;
        }
        self.proxyprotocol = wish.proxyprotocol.unwrap_or(self.proxyprotocol);
        self.http = match self.protocol.as_str() {
            "tcp" => None,
            _ => Some(self.http.unwrap_or_default().changed(wish.http)),
        };
        if let Some(wish) = wish.health_check {
            self.health_check = self.health_check.changed(wish)?;
        } else if self.health_check.protocol != "tcp" && self.health_check.http.is_none() {
            self.health_check.http = Some(HealthCheckHttp::default());
        }
        Ok(self)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            cookie_name: "HCLBSTICKY".to_owned(),
            cookie_lifetime: 300,
            certificates: Vec::new(),
            redirect_http: false,
            sticky_sessions: false,
            timeout_idle: 60,
        }
    }
}

impl Http {
    fn changed(mut self, wish: Option<HttpWish>) -> Self {
        let Some(wish) = wish else { return self };
        self.cookie_name = wish.cookie_name.unwrap_or(self.cookie_name);
        self.cookie_lifetime = wish.cookie_lifetime.unwrap_or(self.cookie_lifetime);
        self.certificates = wish.certificates.unwrap_or(self.certificates);
        self.redirect_http = wish.redirect_http.unwrap_or(self.redirect_http);
        self.sticky_sessions = wish.sticky_sessions.unwrap_or(self.sticky_sessions);
        self.timeout_idle = wish.timeout_idle.unwrap_or(self.timeout_idle);
        self
    }
}

impl Default for HealthCheckHttp {
    fn default() -> Self {
        Self {
            domain: String::new(),
            path: "/".to_owned(),
            response: String::new(),
            status_codes: vec!["2??".to_owned(), "3??".to_owned()],
            tls: false,
        }
    }
}

impl HealthCheck {
    fn changed(mut self, wish: HealthCheckWish) -> Result<Self, Refusal> {
        if let Some(wished) = &wish.protocol {
            protocol("health_check.protocol", wished)?.clone_into(&mut self.protocol);
        }
        if wish.port.is_some() {
            self.port = port("health_check.port", wish.port, None)?;
        }
        self.interval = within(
            "health_check.interval",
            wish.interval,
            self.interval,
            3..=60,
        )?;
        self.timeout = within("health_check.timeout", wish.timeout, self.timeout, 1..=60)?;
        self.retries = within("health_check.retries", wish.retries, self.retries, 1..=5)?;
        self.http = match self.protocol.as_str() {
            "tcp" => None,
            _ => Some(self.http.unwrap_or_default().changed(wish.http)),
        };
        Ok(self)
    }
}

impl HealthCheckHttp {
    fn changed(mut self, wish: Option<HealthCheckHttpWish>) -> Self {
        let Some(wish) = wish else { return self };
        // Names of hosts are kept in lower case.
        self.domain = wish
            .domain
            .map_or(self.domain, |domain| domain.to_lowercase());
        self.path = wish.path.unwrap_or(self.path);
        self.response = wish.response.unwrap_or(self.response);
        self.status_codes = wish.status_codes.unwrap_or(self.status_codes);
        self.tls = wish.tls.unwrap_or(self.tls);
        self
    }
}

fn protocol<'a>(field: &str, text: &'a str) -> Result<&'a str, Refusal> {
    match text {
        "tcp" | "http" | "https" => Ok(text),
        _ => Err(Refusal::invalid(
            field,
            format!("{text:?} is none of tcp, http, https"),
        )),
    }
}

fn port(field: &str, wish: Option<i64>, default: Option<u16>) -> Result<u16, Refusal> {
    let port = match wish {
        Some(number) => u16::try_from(number).ok().filter(|port| *port > 0),
        None => default,
    };
    port.ok_or_else(|| Refusal::invalid(field, "must be a port from 1 to 65535"))
}

fn within(
    field: &str,
    wish: Option<u32>,
    have: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, Refusal> {
    match wish {
        Some(number) if !range.contains(&number) => {
            let message = format!("must be from {} to {}", range.start(), range.end());
            Err(Refusal::invalid(field, message))
        }
        Some(number) => Ok(number),
        None => Ok(have),
    }
}
