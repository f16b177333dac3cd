//! Services of a balancer as they should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{self as api, HealthProbe, LoadBalancerSpec, Protocol};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::desired::{Desired, DesiredCheck, DesiredHttp};
use super::limits;
use super::marks::Aspect;
use crate::annotations::ServiceProtocol;
use crate::wire;

/// A service. What is `None` is left as it is, or is the cloud's own default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedService {
    pub(super) protocol: ServiceProtocol,
    pub(super) listen_port: u16,
    pub(super) destination_port: u16,
    pub(super) proxy_protocol: Option<bool>,
    pub(super) http: WantedHttp,
    pub(super) check: WantedCheck,
}

/// What only HTTP services have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WantedHttp {
    pub(super) options: DesiredHttp,
    pub(super) certificates: Option<BTreeSet<u64>>,
}

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedCheck {
    pub(super) protocol: ServiceProtocol,
    pub(super) port: u16,
    pub(super) interval: Option<u64>,
    pub(super) timeout: Option<u64>,
    pub(super) retries: Option<u32>,
    pub(super) domain: Option<String>,
    pub(super) path: Option<String>,
    pub(super) tls: Option<bool>,
    pub(super) status_codes: Option<Vec<String>>,
}

/// The ports that the cloud cannot serve.
pub(super) fn unsupported(spec: &LoadBalancerSpec) -> Vec<&api::Listener> {
    let listeners = spec.listeners.iter();
    listeners.filter(|l| l.protocol != Protocol::Tcp).collect()
}

/// The TCP ports that lead nowhere, and what to do about it.
pub(super) fn without_node_port(spec: &LoadBalancerSpec) -> impl Iterator<Item = String> + '_ {
    let listeners = spec.listeners.iter();
    let nowhere = listeners.filter(|l| l.protocol == Protocol::Tcp && l.node_port.is_none());
    nowhere.map(|listener| {
        format!(
            "port {} has no node port: set allocateLoadBalancerNodePorts to true",
            listener.port
        )
    })
}

/// One service for each TCP port that has a node port. `certificates` are those of HTTPS services, if any
/// are wanted; `usual` is what goes back to the cloud's own values unless it is asked for.
pub(super) fn wanted(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    certificates: Option<&BTreeSet<u64>>,
    usual: &BTreeSet<Aspect>,
) -> Vec<WantedService> {
    let listeners = spec.listeners.iter();
    let listeners = listeners.filter(|listener| listener.protocol == Protocol::Tcp);
    let off = usual.contains(&Aspect::Proxy).then_some(false);
    listeners
        .filter_map(|listener| {
            let destination_port = listener.node_port?;
            let mut check = check(asked, listener, destination_port);
            if usual.contains(&Aspect::Check) {
                check = check.or_usual();
            }
            Some(WantedService {
                protocol: asked.protocol,
                listen_port: listener.port,
                destination_port,
                proxy_protocol: asked.proxy_protocol.or(off),
                http: http(asked, certificates),
                check,
            })
        })
        .collect()
}

fn http(asked: &Desired, certificates: Option<&BTreeSet<u64>>) -> WantedHttp {
    if asked.protocol == ServiceProtocol::Tcp {
        return WantedHttp::default();
    }
    let secure = asked.protocol == ServiceProtocol::Https;
    WantedHttp {
        options: asked.http.clone(),
        certificates: certificates.filter(|_| secure).cloned(),
    }
}

/// The usual check is a connection to the node port, also of HTTP services and for the policy `Local`.
fn check(asked: &Desired, listener: &api::Listener, node_port: u16) -> WantedCheck {
    let neutral = neutral_check(&listener.health_check, node_port);
    let own = &asked.check;
    if !own.is_custom() {
        return neutral;
    }
    let protocol = own.protocol.unwrap_or(match neutral.protocol {
        ServiceProtocol::Tcp => asked.protocol,
        explicit => explicit,
    });
    let details = match protocol {
        ServiceProtocol::Tcp => DesiredCheck::default(),
        ServiceProtocol::Http | ServiceProtocol::Https => own.clone(),
    };
    let neutral_path = neutral.path.filter(|_| protocol != ServiceProtocol::Tcp);
    WantedCheck {
        protocol,
        port: own.port.unwrap_or(neutral.port),
        interval: own.interval.or(neutral.interval),
        timeout: own.timeout.or(neutral.timeout),
        retries: own.retries.or(neutral.retries),
        domain: details.domain,
        path: details.path.or(neutral_path),
        tls: details.tls,
        status_codes: details.status_codes,
    }
}

fn neutral_check(check: &api::HealthCheck, node_port: u16) -> WantedCheck {
    let (protocol, path) = match &check.probe {
        HealthProbe::Http { path } => (ServiceProtocol::Http, Some(path.clone())),
        HealthProbe::Https { path } => (ServiceProtocol::Https, Some(path.clone())),
        // The cloud knows no other.
        HealthProbe::Tcp | HealthProbe::UdpConnect | HealthProbe::Sctp => {
            (ServiceProtocol::Tcp, None)
        }
    };
    WantedCheck {
        protocol,
        port: check.port.unwrap_or(node_port),
        interval: check
            .interval
            .map(|interval| limits::rounded(interval, &limits::INTERVAL)),
        timeout: check
            .timeout
            .map(|timeout| limits::rounded(timeout, &limits::TIMEOUT)),
        retries: check.unhealthy_threshold.map(limits::clamped),
        domain: None,
        path,
        tls: None,
        status_codes: None,
    }
}

/// Whether what is asked for is so already. What is not asked for does not matter.
fn is<T: PartialEq>(wanted: Option<&T>, have: Option<&T>) -> bool {
    wanted.is_none() || wanted == have
}

impl WantedService {
    /// Whether the service is as it should be.
    pub(super) fn is_met_by(&self, have: &wire::Service) -> bool {
        let no_http = wire::ServiceHttp::default();
        self.protocol.as_str() == have.protocol
            && self.listen_port == have.listen_port
            && self.destination_port == have.destination_port
            && is(self.proxy_protocol.as_ref(), Some(&have.proxyprotocol))
            && self.http.is_met_by(have.http.as_ref().unwrap_or(&no_http))
            && self.check.is_met_by(&have.health_check)
    }

    /// What the cloud is sent. Only what is asked for is said.
    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        put(&mut body, "protocol", Some(self.protocol.as_str()));
        put(&mut body, "listen_port", Some(self.listen_port));
        put(&mut body, "destination_port", Some(self.destination_port));
        put(&mut body, "proxyprotocol", self.proxy_protocol);
        let http = self.http.body();
        put(&mut body, "http", (!http.is_empty()).then_some(http));
        put(&mut body, "health_check", Some(self.check.body()));
        Value::Object(body)
    }
}

impl WantedHttp {
    fn is_met_by(&self, have: &wire::ServiceHttp) -> bool {
        let certificates: BTreeSet<u64> = have.certificates.iter().copied().collect();
        let want = &self.options;
        is(want.cookie_name.as_ref(), have.cookie_name.as_ref())
            && is(want.cookie_lifetime.as_ref(), have.cookie_lifetime.as_ref())
            && is(want.timeout_idle.as_ref(), have.timeout_idle.as_ref())
            && is(want.redirect_http.as_ref(), Some(&have.redirect_http))
            && is(want.sticky_sessions.as_ref(), Some(&have.sticky_sessions))
            && is(self.certificates.as_ref(), Some(&certificates))
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        let want = &self.options;
        put(&mut body, "cookie_name", want.cookie_name.as_ref());
        put(&mut body, "cookie_lifetime", want.cookie_lifetime);
        put(&mut body, "timeout_idle", want.timeout_idle);
        put(&mut body, "redirect_http", want.redirect_http);
        put(&mut body, "sticky_sessions", want.sticky_sessions);
        put(&mut body, "certificates", self.certificates.as_ref());
        body
    }
}

impl WantedCheck {
    /// With the cloud's own numbers in place of what is not asked for.
    fn or_usual(mut self) -> Self {
        self.interval.get_or_insert(limits::USUAL_INTERVAL);
        self.timeout.get_or_insert(limits::USUAL_TIMEOUT);
        self.retries.get_or_insert(limits::USUAL_RETRIES);
        if self.protocol != ServiceProtocol::Tcp {
            self.path
                .get_or_insert_with(|| limits::USUAL_PATH.to_owned());
        }
        self
    }

    fn is_met_by(&self, have: &wire::ServiceCheck) -> bool {
        let no_http = wire::ServiceCheckHttp::default();
        let http = have.http.as_ref().unwrap_or(&no_http);
        self.protocol.as_str() == have.protocol
            && self.port == have.port
            && is(self.interval.as_ref(), have.interval.as_ref())
            && is(self.timeout.as_ref(), have.timeout.as_ref())
            && is(self.retries.as_ref(), have.retries.as_ref())
            && is(self.domain.as_ref(), http.domain.as_ref())
            && is(self.path.as_ref(), http.path.as_ref())
            && is(self.tls.as_ref(), Some(&http.tls.unwrap_or_default()))
            && is(self.status_codes.as_ref(), http.status_codes.as_ref())
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        put(&mut body, "protocol", Some(self.protocol.as_str()));
        put(&mut body, "port", Some(self.port));
        put(&mut body, "interval", self.interval);
        put(&mut body, "timeout", self.timeout);
        put(&mut body, "retries", self.retries);
        if self.protocol != ServiceProtocol::Tcp {
            let mut http = Map::new();
            put(&mut http, "domain", self.domain.as_ref());
            put(&mut http, "path", self.path.as_ref());
            put(&mut http, "tls", self.tls);
            put(&mut http, "status_codes", self.status_codes.as_ref());
            put(&mut body, "http", Some(http));
        }
        body
    }
}

fn put<T: Serialize>(body: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), json!(value));
    }
}
