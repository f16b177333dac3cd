//! What a Service asks for: its annotations, else its class, else the configured defaults, else the neutral options.
//! Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudkeel_api::{
    Affinity, Algorithm, CloudError, HealthCheck, HealthProbe, IpFamily, Listener as Port,
    LoadBalancerSpec, Protocol, ProxyProtocol, TargetState,
};
use cloudkeel_toolkit::{AnnotationReader, Unread, address_of};
use ipnet::IpNet;

use super::capabilities::Capabilities;
use super::owner::{part_name, service_name};
use crate::annotations as key;
use crate::config::{BalancerSettings, ClassSettings, Config};
use crate::wire::balancer::{
    ListenerSettings, MemberSettings, MonitorSettings, NewListener, NewMonitor, NewPool,
    Persistence, PoolSettings,
};

const OPERATION: &str = "read Service";
const FORWARDED_FOR: &str = "X-Forwarded-For";

type Reader<'a> = AnnotationReader<'a, ()>;

/// Everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The name by which the Go CCM tags what is the Service's.
    pub(super) service_name: String,
    /// The name of a load balancer that is the Service's own.
    pub(super) name: String,
    pub(super) is_internal: bool,
    pub(super) network: Networks,
    pub(super) port_id: Option<String>,
    pub(super) address: Option<IpAddr>,
    pub(super) keep_floating_ip: bool,
    pub(super) flavor: Option<String>,
    pub(super) availability_zone: Option<String>,
    pub(super) tls_container: Option<String>,
    pub(super) is_proxied: bool,
    pub(super) hostname: Option<String>,
    pub(super) family: IpFamily,
    pub(super) listeners: Vec<DesiredListener>,
    /// Nodes that cannot be reached, and why.
    pub(super) unreachable: Vec<String>,
    /// Events: their reasons and messages.
    pub(super) notices: Vec<(&'static str, String)>,
}

/// Where the load balancer, its targets and its floating IP are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Networks {
    pub(super) subnet: Option<String>,
    pub(super) network: Option<String>,
    pub(super) member_subnet: Option<String>,
    pub(super) floating_network: Option<String>,
    pub(super) floating_subnet: Option<String>,
    pub(super) floating_subnet_name: Option<String>,
    pub(super) floating_subnet_tags: Option<String>,
}

/// One port of the Service with its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesiredListener {
    pub(super) name: String,
    pub(super) settings: ListenerSettings,
    pub(super) pool_name: String,
    pub(super) pool: PoolSettings,
    pub(super) members: Vec<MemberSettings>,
    pub(super) monitor_name: String,
    pub(super) monitor: Option<MonitorSettings>,
}

impl DesiredListener {
    /// The listener alone.
    pub(super) fn new_listener(&self, tags: Vec<String>) -> NewListener {
        NewListener {
            name: self.name.clone(),
            loadbalancer_id: None,
            tags,
            settings: self.settings.clone(),
            default_pool: None,
        }
    }

    /// Its pool alone.
    pub(super) fn new_pool(&self) -> NewPool {
        NewPool {
            name: self.pool_name.clone(),
            listener_id: None,
            settings: self.pool.clone(),
            members: Vec::new(),
            healthmonitor: None,
        }
    }

    /// Its monitor, if there is to be one.
    pub(super) fn new_monitor(&self) -> Option<NewMonitor> {
        self.monitor.clone().map(|settings| NewMonitor {
            name: self.monitor_name.clone(),
            pool_id: None,
            settings,
        })
    }

    /// Everything in one piece.
    pub(super) fn whole(&self, tags: Vec<String>) -> NewListener {
        let pool = NewPool {
            members: self.members.clone(),
            healthmonitor: self.new_monitor(),
            ..self.new_pool()
        };
        NewListener {
            default_pool: Some(pool),
            ..self.new_listener(tags)
        }
    }
}

impl Desired {
    /// Reads what a Service asks for. Everything that is wrong is reported at once.
    pub(crate) fn of(
        spec: &LoadBalancerSpec,
        config: &Config,
        can: Capabilities,
    ) -> Result<Self, CloudError> {
        let annotations = &spec.balancer_ref.annotations;
        let defaults = &config.load_balancers;
        let mut reader = Reader::new(annotations, ());
        let class = class_of(&mut reader, config)?;
        let network = networks(&mut reader, class, defaults);
        let is_internal = defaults.internal
            || reader
                .lenient(&key::INTERNAL)
                .or(spec.options.internal)
                .unwrap_or(false);
        let common = Common::read(&mut reader, spec, defaults, can)?;
        let service_name = service_name(&spec.balancer_ref);
        let targets = Targets::of(spec);
        let member_subnet = network.member_subnet.clone().filter(|_| !defaults.serial);
        let listener = |(index, port): (usize, &Port)| {
            common.listener(index, port, &service_name, &targets, member_subnet.as_ref())
        };
        let listeners = spec.listeners.iter().enumerate().map(listener).collect();
        let hostname = reader
            .text(&key::HOSTNAME)
            .or_else(|| spec.options.hostname.clone());
        let flavor = reader.text_or(&key::FLAVOR_ID, defaults.flavor.as_ref());
        let flavor = spec
            .options
            .size
            .clone()
            .filter(|_| !annotations.contains_key(key::FLAVOR_ID.name()))
            .or(flavor);
        let zone = reader.text_or(&key::AVAILABILITY_ZONE, defaults.availability_zone.as_ref());
        let port_id = reader.text(&key::PORT_ID);
        let keep_floating_ip = reader.lenient(&key::KEEP_FLOATINGIP).unwrap_or(false);
        let mut notices = notices(spec, can, flavor.as_ref(), zone.as_ref());
        notices.extend(
            reader
                .unsupported
                .drain(..)
                .map(|what| ("UnsupportedOption", format!("cannot {what}"))),
        );
        let unread: Unread<()> = reader.into_unread();
        unread.check()?;
        Ok(Self {
            name: spec
                .options
                .name
                .clone()
                .unwrap_or_else(|| service_name.clone()),
            service_name,
            is_internal,
            network,
            port_id,
            address: spec.address,
            keep_floating_ip,
            flavor: flavor.filter(|_| can.flavors),
            availability_zone: zone.filter(|_| can.availability_zones),
            tls_container: common.tls_container.clone(),
            is_proxied: common.proxy.is_some(),
            hostname,
            family: family_of(spec),
            listeners,
            unreachable: targets.unreachable,
            notices,
        })
    }
}

impl Desired {
    /// Targets are in the subnet of the load balancer if nothing else is said.
    pub(super) fn fill_subnet(&mut self, subnet: Option<&String>, is_serial: bool) {
        if self.network.member_subnet.is_some() || is_serial {
            return;
        }
        let members = self
            .listeners
            .iter_mut()
            .flat_map(|listener| &mut listener.members);
        members.for_each(|member| member.subnet_id = subnet.cloned());
    }
}

fn notices(
    spec: &LoadBalancerSpec,
    can: Capabilities,
    flavor: Option<&String>,
    zone: Option<&String>,
) -> Vec<(&'static str, String)> {
    let mut notices = Vec::new();
    if !can.allowed_cidrs && !spec.source_ranges.is_empty() {
        let message =
            "this Octavia cannot restrict listeners to source ranges: all clients may connect";
        notices.push(("LoadBalancerSourceRangesIgnored", message.to_owned()));
    }
    if let Some(zone) = zone.filter(|_| !can.availability_zones) {
        let message = format!("this Octavia has no availability zones: {zone:?} is ignored");
        notices.push(("LoadBalancerAvailabilityZonesIgnored", message));
    }
    if let Some(flavor) = flavor.filter(|_| !can.flavors) {
        let message = format!("this Octavia has no flavors: {flavor:?} is ignored");
        notices.push(("LoadBalancerFlavorIgnored", message));
    }
    notices
}

pub(super) fn family_of(spec: &LoadBalancerSpec) -> IpFamily {
    spec.families.first().copied().unwrap_or(IpFamily::V4)
}

fn class_of<'a>(
    reader: &mut Reader<'_>,
    config: &'a Config,
) -> Result<Option<&'a ClassSettings>, CloudError> {
    let Some(name) = reader.text(&key::CLASS) else {
        return Ok(None);
    };
    config.classes.get(&name).map(Some).ok_or_else(|| {
        let known: Vec<_> = config.classes.keys().map(String::as_str).collect();
        let message = format!(
            "{}: {name:?}: expected a class of the configuration, which has [{}]",
            key::CLASS.name(),
            known.join(", ")
        );
        CloudError::invalid(OPERATION, message)
    })
}

fn networks(
    reader: &mut Reader<'_>,
    class: Option<&ClassSettings>,
    defaults: &BalancerSettings,
) -> Networks {
    let configured = &defaults.networks;
    let of_class =
        |get: fn(&ClassSettings) -> &Option<String>| class.and_then(|class| get(class).clone());
    let subnet = reader
        .text(&key::SUBNET_ID)
        .or_else(|| of_class(|c| &c.subnet));
    let network = reader
        .text(&key::NETWORK_ID)
        .or_else(|| of_class(|c| &c.network));
    let member = reader
        .text(&key::MEMBER_SUBNET_ID)
        .or_else(|| of_class(|c| &c.member_subnet));
    let member = member.or_else(|| configured.member_subnet.clone());
    // A class wins over the annotation where floating IPs are concerned.
    let mut floating =
        |get: fn(&ClassSettings) -> &Option<String>, key, default: &Option<String>| {
            of_class(get).or_else(|| reader.text_or(key, default.as_ref()))
        };
    Networks {
        floating_network: floating(
            |c| &c.floating_network,
            &key::FLOATING_NETWORK_ID,
            &configured.floating_network,
        ),
        floating_subnet: floating(
            |c| &c.floating_subnet,
            &key::FLOATING_SUBNET_ID,
            &configured.floating_subnet,
        ),
        floating_subnet_name: floating(
            |c| &c.floating_subnet_name,
            &key::FLOATING_SUBNET,
            &configured.floating_subnet_name,
        ),
        floating_subnet_tags: floating(
            |c| &c.floating_subnet_tags,
            &key::FLOATING_SUBNET_TAGS,
            &configured.floating_subnet_tags,
        ),
        subnet: subnet.or_else(|| configured.subnet.clone()),
        network: network.or_else(|| configured.network.clone()),
        member_subnet: member.or_else(|| configured.subnet.clone()),
    }
}

/// The targets, by address.
struct Targets {
    members: Vec<(IpAddr, String, bool)>,
    unreachable: Vec<String>,
}

impl Targets {
    fn of(spec: &LoadBalancerSpec) -> Self {
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
struct Common {
    can: Capabilities,
    proxy: Option<ProxyProtocol>,
    forwarded_for: bool,
    tls_container: Option<String>,
    method: String,
    connection_limit: i32,
    timeouts: Option<[u32; 4]>,
    allowed_cidrs: Option<Vec<IpNet>>,
    affinity: Affinity,
    monitor: Option<bool>,
    monitor_numbers: [Option<u32>; 4],
    monitor_defaults: [u32; 4],
    serial: bool,
}

impl Common {
    fn read(
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

    fn listener(
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

/// Source ranges as networks; without any, all of the family.
pub(super) fn source_ranges(spec: &LoadBalancerSpec) -> Vec<IpNet> {
    if !spec.source_ranges.is_empty() {
        return spec.source_ranges.iter().map(IpNet::trunc).collect();
    }
    let all = match family_of(spec) {
        IpFamily::V4 => "0.0.0.0/0",
        IpFamily::V6 => "::/0",
    };
    all.parse().into_iter().collect()
}

/// Whole seconds, as the Go CCM sends them; at least one.
fn seconds(duration: std::time::Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)
}
