//! The ports of a Service, with what all of them have in common. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    Affinity, Algorithm, CloudError, HealthCheck, HealthProbe, IpFamily, Listener as Port,
    LoadBalancerSpec, Protocol, ProxyProtocol, TargetState,
};
use cloudkeel_toolkit::address_of;
use ipnet::IpNet;

use super::{DesiredListener, FORWARDED_FOR, OPERATION, Reader, family_of, source_ranges};
use crate::annotations as key;
use crate::config::BalancerSettings;
use crate::load_balancer::capabilities::Capabilities;
use crate::load_balancer::owner::part_name;
use crate::wire::balancer::{
    ListenerSettings, MemberSettings, MonitorSettings, Persistence, PoolSettings,
};

/// The targets, by address.
pub(super) struct Targets {
    pub(super) members: Vec<(IpAddr, String, bool)>,
    pub(super) unreachable: Vec<String>,
}

impl Targets {
    pub(super) fn of(spec: &LoadBalancerSpec) -> Self {
        let mut targets = Self {
            members: Vec::new(),
            unreachable: Vec::new(),
        };
        let family = family_of(spec);
        for (name, target) in &*spec.targets {
            let ip = address_of(&target.node, &[family]).filter(|ip| IpFamily::of(*ip) == family);
            let Some(ip) = ip else {
                targets
                    .unreachable
                    .push(format!("Node {name} has no {family} address"));
                continue;
            };
            let drains = target.state == TargetState::Draining;
            targets.members.push((ip, name.clone(), drains));
        }
        targets
    }
}

/// What all ports of a Service have in common.
pub(super) struct Common {
    can: Capabilities,
    pub(super) proxy: Option<ProxyProtocol>,
    forwarded_for: bool,
    pub(super) tls_container: Option<String>,
    method: String,
    connection_limit: i32,
    timeouts: Option<[u32; 4]>,
    allowed_cidrs: Option<BTreeSet<IpNet>>,
    affinity: Affinity,
    monitor: Option<bool>,
    monitor_numbers: [Option<u32>; 4],
    monitor_defaults: [u32; 4],
    serial: bool,
}

impl Common {
    pub(super) fn read(
        reader: &mut Reader<'_>,
        spec: &LoadBalancerSpec,
        defaults: &BalancerSettings,
        can: Capabilities,
    ) -> Result<Self, CloudError> {
        let proxy = match reader.get(&key::PROXY_PROTOCOL).as_deref() {
            None => spec.options.proxy_protocol.flatten(),
            Some("true" | "v1") => Some(ProxyProtocol::V1),
            Some("v2") => Some(ProxyProtocol::V2),
            Some(_) => None,
        };
        let forwarded_for = reader.lenient(&key::X_FORWARDED_FOR).unwrap_or(false);
        if proxy.is_some() && forwarded_for {
            let (one, other) = (key::PROXY_PROTOCOL.name(), key::X_FORWARDED_FOR.name());
            let message = format!("{one} and {other} exclude each other: take one of them away");
            return Err(CloudError::invalid(OPERATION, message));
        }
        let method = reader.text(&key::LB_METHOD);
        let neutral = spec.options.algorithm.map(|algorithm| match algorithm {
            Algorithm::RoundRobin => "ROUND_ROBIN",
            Algorithm::LeastConnections => "LEAST_CONNECTIONS",
            Algorithm::SourceIp => "SOURCE_IP",
        });
        let timeouts = [
            &key::TIMEOUT_CLIENT_DATA,
            &key::TIMEOUT_MEMBER_CONNECT,
            &key::TIMEOUT_MEMBER_DATA,
            &key::TIMEOUT_TCP_INSPECT,
        ];
        let usual = [50_000, 5_000, 50_000, 0];
        let mut timeout = timeouts
            .into_iter()
            .zip(usual)
            .map(|(key, usual)| reader.lenient(key).unwrap_or(usual));
        let timeouts = std::array::from_fn(|_| timeout.next().unwrap_or_default());
        drop(timeout);
        let numbers = [
            &key::HEALTH_MONITOR_DELAY,
            &key::HEALTH_MONITOR_TIMEOUT,
            &key::HEALTH_MONITOR_MAX_RETRIES,
            &key::HEALTH_MONITOR_MAX_RETRIES_DOWN,
        ];
        Ok(Self {
            can,
            proxy,
            forwarded_for,
            tls_container: reader.text_or(
                &key::DEFAULT_TLS_CONTAINER_REF,
                defaults.tls_container.as_ref(),
            ),
            method: method
                .or_else(|| neutral.map(str::to_owned))
                .unwrap_or_else(|| defaults.method.clone()),
            connection_limit: reader.lenient(&key::CONNECTION_LIMIT).unwrap_or(-1),
            timeouts: can.timeouts.then_some(timeouts),
            allowed_cidrs: can.allowed_cidrs.then(|| source_ranges(spec)),
            affinity: spec.affinity,
            monitor: reader
                .lenient(&key::ENABLE_HEALTH_MONITOR)
                .or(defaults.create_monitor.then_some(true)),
            monitor_numbers: numbers.map(|key| reader.lenient(key)),
            monitor_defaults: [
                seconds(defaults.monitor_delay),
                seconds(defaults.monitor_timeout),
                defaults.monitor_max_retries,
                defaults.monitor_max_retries_down,
            ],
            serial: defaults.serial,
        })
    }

    pub(super) fn listener(
        &self,
        index: usize,
        port: &Port,
        name: &str,
        targets: &Targets,
        subnet: Option<&String>,
    ) -> DesiredListener {
        let monitor = self.monitor(port);
        let settings = self.settings(port);
        let pool_protocol = match self.proxy {
            Some(ProxyProtocol::V1) => "PROXY".to_owned(),
            Some(ProxyProtocol::V2) => "PROXYV2".to_owned(),
            None if settings.protocol == "TERMINATED_HTTPS" => "HTTP".to_owned(),
            None => settings.protocol.clone(),
        };
        let monitor_port = port.health_check.port;
        let monitor_port =
            monitor_port.filter(|_| monitor.is_some() && !self.can.is_ovn && !self.serial);
        let member = |(address, node, drains): &(IpAddr, String, bool)| {
            port.node_port.map(|protocol_port| MemberSettings {
                address: *address,
                protocol_port,
                name: node.clone(),
                subnet_id: subnet.cloned(),
                monitor_port,
                weight: (*drains && !self.can.is_ovn).then_some(0),
            })
        };
        DesiredListener {
            name: part_name("listener", index, name),
            pool_name: part_name("pool", index, name),
            pool: PoolSettings {
                protocol: pool_protocol,
                lb_algorithm: self.method.clone(),
                session_persistence: match self.affinity {
                    Affinity::None => None,
                    Affinity::ClientIp { .. } => Some(Persistence {
                        kind: "SOURCE_IP".to_owned(),
                    }),
                },
            },
            members: targets.members.iter().filter_map(member).collect(),
            monitor_name: part_name("monitor", index, name),
            monitor,
            settings,
        }
    }

    fn settings(&self, port: &Port) -> ListenerSettings {
        let is_tcp = port.protocol == Protocol::Tcp;
        let protocol = match &self.tls_container {
            Some(_) if is_tcp => "TERMINATED_HTTPS".to_owned(),
            _ if self.forwarded_for && is_tcp => "HTTP".to_owned(),
            _ => port.protocol.to_string(),
        };
        let header = BTreeMap::from([(FORWARDED_FOR.to_owned(), "true".to_owned())]);
        let timeout = |place: usize| {
            self.timeouts
                .and_then(|timeouts| timeouts.get(place).copied())
        };
        ListenerSettings {
            protocol,
            protocol_port: port.port,
            connection_limit: Some(self.connection_limit),
            timeout_client_data: timeout(0),
            timeout_member_connect: timeout(1),
            timeout_member_data: timeout(2),
            timeout_tcp_inspect: timeout(3),
            allowed_cidrs: self.allowed_cidrs.clone(),
            insert_headers: (self.forwarded_for && is_tcp).then_some(header),
            default_tls_container_ref: self.tls_container.clone().filter(|_| is_tcp),
        }
    }

    /// The monitor of a port. A check that the Service asks for by neutral annotations needs no other setting.
    fn monitor(&self, port: &Port) -> Option<MonitorSettings> {
        let check = &port.health_check;
        if !self
            .monitor
            .unwrap_or_else(|| is_asked_for(check, port.protocol))
        {
            return None;
        }
        let (kind, path) = self.probe(check, port.protocol);
        let neutral = [
            check.interval.map(seconds),
            check.timeout.map(seconds),
            check.healthy_threshold,
            check.unhealthy_threshold,
        ];
        let own = self
            .monitor_numbers
            .into_iter()
            .zip(neutral)
            .zip(self.monitor_defaults);
        let mut numbers = own.map(|((own, neutral), default)| own.or(neutral).unwrap_or(default));
        let mut next = || numbers.next().unwrap_or_default();
        let by_http = |text: &str| path.is_some().then(|| text.to_owned());
        Some(MonitorSettings {
            kind: kind.to_owned(),
            delay: next(),
            timeout: next(),
            max_retries: next(),
            max_retries_down: next(),
            http_method: by_http("GET"),
            expected_codes: by_http("200"),
            url_path: path.map(str::to_owned),
        })
    }

    /// The type of a check and its path. What this Octavia cannot do is checked by a connection.
    fn probe<'a>(
        &self,
        check: &'a HealthCheck,
        protocol: Protocol,
    ) -> (&'static str, Option<&'a str>) {
        let plain = match protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP-CONNECT",
            Protocol::Sctp => "SCTP",
        };
        let by_http = match protocol {
            Protocol::Udp => self.can.udp_by_http,
            Protocol::Tcp | Protocol::Sctp => !self.can.is_ovn,
        };
        match &check.probe {
            HealthProbe::Http { path } if by_http => ("HTTP", Some(path)),
            HealthProbe::Https { path } if by_http => ("HTTPS", Some(path)),
            HealthProbe::Tcp => {
                if protocol == Protocol::Udp {
                    (plain, None)
                } else {
                    ("TCP", None)
                }
            }
            HealthProbe::Sctp => ("SCTP", None),
            _ => (plain, None),
        }
    }
}

/// Whether a check is more than what every port gets.
fn is_asked_for(check: &HealthCheck, protocol: Protocol) -> bool {
    let probe = match protocol {
        Protocol::Tcp => HealthProbe::Tcp,
        Protocol::Udp => HealthProbe::UdpConnect,
        Protocol::Sctp => HealthProbe::Sctp,
    };
    *check
        != HealthCheck {
            probe,
            ..HealthCheck::tcp()
        }
        && *check != HealthCheck::tcp()
}

/// Whole seconds, as the Go CCM sends them; at least one.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)
}
