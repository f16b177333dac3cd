//! What a Service asks for, in the words of both kinds of balancers. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{
    Affinity, BalancerRef, CloudError, ErrorKind, HealthCheck, HealthProbe, Ingress, Listener,
    LoadBalancerSpec, Protocol, ProxyProtocol, TrafficPolicy, names,
};
use cloudkeel_toolkit::health::CheckLimits;
use cloudkeel_toolkit::{AnnotationReader, balancer_name};
use ipnet::IpNet;

use super::Facts;
use crate::annotations as key;
use crate::config::{BalancerType, ProbeMode};
use crate::wire::Tags;

/// The numbers of health checks that both APIs take.
pub(super) const LIMITS: CheckLimits = CheckLimits {
    interval: 5..=300,
    timeout: 2..=60,
    retries: 2..=10,
};

/// Everybody.
pub(super) const ANYWHERE: &str = "0.0.0.0/0";

/// The part of a balancer that something is about. What cannot be read leaves only that part as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Listeners,
    Groups,
    Attributes,
    Health,
    /// What stands for itself and holds nothing else back.
    Itself,
}

/// Which ports have the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TlsPorts {
    All,
    /// By number or name.
    These(Vec<String>),
}

/// Annotations of a health check. `None` is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CheckAnnotations {
    pub(super) protocol: Option<String>,
    pub(super) port: Option<String>,
    pub(super) path: Option<String>,
    pub(super) interval: Option<u32>,
    pub(super) timeout: Option<u32>,
    pub(super) healthy: Option<u32>,
    pub(super) unhealthy: Option<u32>,
}

/// What is logged where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AccessLog {
    pub(super) is_enabled: bool,
    pub(super) bucket: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) interval: Option<u32>,
}

/// TLS, and what targets speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) certificate: Option<String>,
    pub(super) ports: TlsPorts,
    pub(super) policy: Option<String>,
    pub(super) backend_protocol: Option<String>,
}

/// What is set of a balancer as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) access_log: AccessLog,
    pub(super) draining: bool,
    pub(super) draining_timeout: Option<u32>,
    pub(super) idle_timeout: u32,
    pub(super) cross_zone: bool,
}

/// Everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(super) kind: BalancerType,
    pub(super) name: String,
    pub(super) is_internal: bool,
    /// By ID or name; empty for those that are found by tags.
    pub(super) subnets: Vec<String>,
    /// All tags of the balancer.
    pub(super) tags: Tags,
    /// Networks of IPv4.
    pub(super) ranges: Vec<IpNet>,
    /// The ports that can be served: all of one protocol, each with a node port.
    pub(super) ports: Vec<Listener>,
    pub(super) tls: Tls,
    pub(super) groups: Vec<String>,
    pub(super) extra_groups: Vec<String>,
    pub(super) proxy_protocol: bool,
    pub(super) attributes: Attributes,
    pub(super) check: CheckAnnotations,
    pub(super) group_attributes: BTreeMap<String, String>,
    pub(super) eips: Vec<String>,
    pub(super) private_ips: Vec<String>,
    pub(super) hostname: Option<String>,
    pub(super) is_local: bool,
    /// What is wrong, and which part it is about.
    pub(super) wrong: Vec<(Part, String)>,
    /// What is asked for and cannot be done, for an Event.
    pub(super) unsupported: Vec<String>,
}

/// The kind of balancer that a Service has or asks for: the hostname that is published decides, because a kind cannot
/// be changed. `ImplementedElsewhere` if another controller has the Service.
pub(super) fn kind_of(
    balancer_ref: &BalancerRef,
    facts: &Facts,
) -> Result<BalancerType, CloudError> {
    let asked = asked_kind(balancer_ref, facts)?;
    Ok(published_kind(balancer_ref, &facts.region).unwrap_or(asked))
}

fn asked_kind(balancer_ref: &BalancerRef, facts: &Facts) -> Result<BalancerType, CloudError> {
    match balancer_ref
        .annotations
        .get(key::TYPE.name())
        .map(String::as_str)
    {
        Some("external" | "nlb-ip") => Err(CloudError::new(
            "observe load balancer",
            ErrorKind::ImplementedElsewhere,
            "the AWS Load Balancer Controller has this Service",
        )),
        Some("nlb") => Ok(BalancerType::Nlb),
        None => Ok(facts.default_type),
        Some(_) => Ok(BalancerType::Classic),
    }
}

/// `x.<region>.elb.amazonaws.com` is classic, `x.elb.<region>.amazonaws.com` is not.
fn published_kind(balancer_ref: &BalancerRef, region: &str) -> Option<BalancerType> {
    let hostname = balancer_ref
        .ingress
        .iter()
        .find_map(|ingress| match ingress {
            Ingress::Hostname(name) => Some(name),
            Ingress::Ip { .. } => None,
        })?;
    if hostname.contains(&format!(".{region}.elb.")) {
        return Some(BalancerType::Classic);
    }
    let is_network = hostname.contains(&format!(".elb.{region}."));
    is_network.then_some(BalancerType::Nlb)
}

impl Desired {
    /// What the Service says in AWS's words, else in neutral ones.
    pub(super) fn of(spec: &LoadBalancerSpec, facts: &Facts) -> Result<Self, CloudError> {
        let balancer_ref = &spec.balancer_ref;
        let kind = kind_of(balancer_ref, facts)?;
        let mut wrong = refusals(spec, kind, facts)?;
        let options = &spec.options;
        let mut reader = AnnotationReader::new(&balancer_ref.annotations, Part::Itself);
        let internal = reader.text(&key::INTERNAL).map(|text| text != "false");
        let mut tags = reader.get(&key::ADDITIONAL_TAGS).unwrap_or_default().0;
        tags.extend(facts.cluster.of_service(&balancer_ref.service));
        let subnets = reader.get(&key::SUBNETS).unwrap_or_default();
        let eips = reader.get(&key::EIP_ALLOCATIONS).unwrap_or_default();
        let private_ips = reader.get(&key::PRIVATE_IPV4).unwrap_or_default();
        let tls = tls(reader.about(Part::Listeners));
        let proxy = reader.text(&key::PROXY_PROTOCOL);
        let group_attributes = reader
            .get(&key::TARGET_GROUP_ATTRIBUTES)
            .unwrap_or_default();
        reader.about(Part::Groups);
        let groups = reader.get(&key::SECURITY_GROUPS).unwrap_or_default();
        let extra_groups = reader.get(&key::EXTRA_SECURITY_GROUPS).unwrap_or_default();
        let attributes = attributes(reader.about(Part::Attributes));
        let check = check_annotations(&mut reader);
        let unread = reader.into_unread();
        let parts = [
            Part::Listeners,
            Part::Groups,
            Part::Attributes,
            Part::Health,
            Part::Itself,
        ];
        let unread_parts = parts.into_iter().filter(|part| unread.concerns(*part));
        // One message names them all.
        let mut messages = Some(unread.messages().collect::<Vec<_>>().join("; "));
        wrong.extend(unread_parts.map(|part| (part, messages.take().unwrap_or_default())));
        wrong.extend(misplaced(
            kind,
            proxy.as_ref(),
            &extra_groups,
            &group_attributes,
            spec,
        ));
        let neutral_proxy = options.proxy_protocol.flatten().is_some();
        let (ports, ranges) = (served_ports(spec, kind), ranges(spec, &mut wrong));
        Ok(Self {
            kind,
            name: balancer_ref.service.default_balancer_name(),
            is_internal: internal.or(options.internal).unwrap_or_default(),
            subnets,
            tags,
            ranges,
            ports,
            tls,
            groups,
            extra_groups,
            proxy_protocol: proxy.is_some() || neutral_proxy,
            attributes,
            check,
            group_attributes,
            eips,
            private_ips,
            hostname: options.hostname.clone(),
            is_local: spec.traffic_policy == TrafficPolicy::Local,
            wrong,
            unsupported: unsupported(spec),
        })
    }

    /// Whether something wrong is about this part.
    pub(super) fn concerns(&self, part: Part) -> bool {
        self.wrong.iter().any(|(wrong, _)| *wrong == part)
    }

    /// Nothing is made by guessing.
    pub(super) fn check_readable(&self) -> Result<(), CloudError> {
        if self.wrong.is_empty() {
            return Ok(());
        }
        let messages: Vec<_> = self.messages().collect();
        Err(CloudError::invalid("read Service", messages.join("; ")))
    }

    /// Everything that is wrong, in words.
    pub(super) fn messages(&self) -> impl Iterator<Item = &str> {
        let messages = self.wrong.iter().map(|(_, message)| message.as_str());
        messages.filter(|message| !message.is_empty())
    }

    /// Whether a port has the certificate.
    pub(super) fn is_tls(&self, port: &Listener) -> bool {
        let is_named = |named: &String| {
            let name = port.name.as_deref().unwrap_or_default();
            *named == port.port.to_string()
                || (!name.is_empty() && named.eq_ignore_ascii_case(name))
        };
        self.tls.certificate.is_some()
            && match &self.tls.ports {
                TlsPorts::All => true,
                TlsPorts::These(ports) => ports.iter().any(is_named),
            }
    }
}

/// What no balancer of this kind can do for the Service, and what cannot be changed any more.
fn refusals(
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    facts: &Facts,
) -> Result<Vec<(Part, String)>, CloudError> {
    let mut wrong = Vec::new();
    if kind != asked_kind(&spec.balancer_ref, facts)? {
        let message = format!(
            "{}: a load balancer that is there cannot become another kind: delete the Service first",
            key::TYPE.name()
        );
        wrong.push((Part::Itself, message));
    }
    if spec.affinity != Affinity::None {
        let message =
            "sessionAffinity: expected None, because AWS has no affinity by client address";
        wrong.push((Part::Itself, message.to_owned()));
    }
    if let Some(address) = spec.address {
        let message = format!("loadBalancerIP {address}: AWS chooses addresses itself");
        wrong.push((Part::Itself, message));
    }
    if spec.balancer_ref.adopt.is_some() {
        let message = format!(
            "{}: AWS's tags do not name a Service by its UID, so no other load balancer can be taken over",
            names::ADOPT.name()
        );
        return Err(CloudError::invalid("observe load balancer", message));
    }
    let protocols: Vec<_> = spec.listeners.iter().map(|port| port.protocol).collect();
    let first = protocols.first().copied();
    let is_served = |protocol: Protocol| match kind {
        BalancerType::Classic => protocol == Protocol::Tcp,
        BalancerType::Nlb => protocol != Protocol::Sctp,
    };
    match first {
        None => wrong.push((Part::Listeners, "the Service has no port".to_owned())),
        Some(first) if protocols.iter().any(|other| *other != first) => {
            let message = "ports: TCP and UDP on one load balancer are not supported";
            wrong.push((Part::Listeners, message.to_owned()));
        }
        Some(first) if !is_served(first) => {
            let kind = kind.as_str();
            let message = format!("ports: a {kind} load balancer does not serve {first}");
            wrong.push((Part::Listeners, message));
        }
        Some(_) => {}
    }
    Ok(wrong)
}

/// Annotations that the other kind of balancer has, or with a value that there is not.
fn misplaced(
    kind: BalancerType,
    proxy: Option<&String>,
    extra_groups: &[String],
    attributes: &BTreeMap<String, String>,
    spec: &LoadBalancerSpec,
) -> Vec<(Part, String)> {
    let mut wrong = Vec::new();
    if let Some(text) = proxy.filter(|text| *text != "*") {
        let message = format!("{}: {text:?}: expected `*`", key::PROXY_PROTOCOL.name());
        wrong.push((Part::Listeners, message));
    }
    if kind == BalancerType::Nlb && !extra_groups.is_empty() {
        let name = key::EXTRA_SECURITY_GROUPS.name();
        wrong.push((
            Part::Groups,
            format!("{name}: network load balancers have none"),
        ));
    }
    let name = key::TARGET_GROUP_ATTRIBUTES.name();
    if kind == BalancerType::Classic && !attributes.is_empty() {
        wrong.push((
            Part::Listeners,
            format!("{name}: classic load balancers have none"),
        ));
    }
    let is_udp = spec
        .listeners
        .iter()
        .any(|port| port.protocol == Protocol::Udp);
    for (attribute, value) in attributes {
        let expected = match (attribute.as_str(), value.as_str()) {
            ("preserve_client_ip.enabled", "false") if is_udp => "`true` for UDP",
            ("preserve_client_ip.enabled" | "proxy_protocol_v2.enabled", "true" | "false") => {
                continue;
            }
            ("preserve_client_ip.enabled" | "proxy_protocol_v2.enabled", _) => "`true` or `false`",
            _ => "`preserve_client_ip.enabled` or `proxy_protocol_v2.enabled`",
        };
        let message = format!("{name}: \"{attribute}={value}\": expected {expected}");
        wrong.push((Part::Listeners, message));
    }
    wrong
}

fn served_ports(spec: &LoadBalancerSpec, kind: BalancerType) -> Vec<Listener> {
    let first = spec.listeners.first().map(|port| port.protocol);
    let served = spec.listeners.iter();
    let served = served.filter(|port| port.node_port.is_some() && Some(port.protocol) == first);
    let served = served.filter(|port| kind == BalancerType::Nlb || port.protocol == Protocol::Tcp);
    served.cloned().collect()
}

/// Security groups hold networks of IPv4 here, as in the Go CCM.
fn ranges(spec: &LoadBalancerSpec, wrong: &mut Vec<(Part, String)>) -> Vec<IpNet> {
    let (v4, v6): (Vec<_>, Vec<_>) = spec
        .source_ranges
        .iter()
        .map(IpNet::trunc)
        .partition(|range| matches!(range, IpNet::V4(_)));
    if !v6.is_empty() {
        let texts: Vec<_> = v6.iter().map(ToString::to_string).collect();
        let message = format!(
            "source range {}: expected networks of IPv4",
            texts.join(", ")
        );
        wrong.push((Part::Groups, message));
    }
    if v4.is_empty() && v6.is_empty() {
        return ANYWHERE.parse().into_iter().collect();
    }
    v4
}

fn unsupported(spec: &LoadBalancerSpec) -> Vec<String> {
    let options = &spec.options;
    let mut unsupported = LIMITS.out_of_range(spec);
    if options.name.is_some() {
        let name = balancer_name(spec);
        unsupported.push(format!(
            "be named {name:?}: the UID of the Service names them"
        ));
    }
    if options.algorithm.is_some() {
        unsupported.push("spread connections by another algorithm".to_owned());
    }
    if options.size.is_some() {
        unsupported.push("have a size".to_owned());
    }
    if options.proxy_protocol == Some(Some(ProxyProtocol::V2)) {
        unsupported.push("speak version 2 of the PROXY protocol by this option".to_owned());
    }
    unsupported
}

type Reader<'a> = AnnotationReader<'a, Part>;

fn tls(reader: &mut Reader<'_>) -> Tls {
    let is_all = |ports: &Vec<String>| ports.is_empty() || ports.iter().any(|port| port == "*");
    let ports = reader.get(&key::SSL_PORTS).filter(|ports| !is_all(ports));
    let backend_protocol = reader.text(&key::BACKEND_PROTOCOL);
    Tls {
        certificate: reader.text(&key::SSL_CERT),
        ports: ports.map_or(TlsPorts::All, TlsPorts::These),
        policy: reader.text(&key::SSL_NEGOTIATION_POLICY),
        backend_protocol: backend_protocol.map(|text| text.to_lowercase()),
    }
}

fn attributes(reader: &mut Reader<'_>) -> Attributes {
    Attributes {
        access_log: access_log(reader),
        draining: reader.get(&key::DRAINING_ENABLED).unwrap_or_default(),
        draining_timeout: reader.get(&key::DRAINING_TIMEOUT),
        idle_timeout: reader.get(&key::IDLE_TIMEOUT).unwrap_or(60),
        cross_zone: reader.get(&key::CROSS_ZONE).unwrap_or_default(),
    }
}

fn access_log(reader: &mut Reader<'_>) -> AccessLog {
    AccessLog {
        is_enabled: reader.get(&key::ACCESS_LOG_ENABLED).unwrap_or_default(),
        bucket: reader.text(&key::ACCESS_LOG_BUCKET),
        prefix: reader.text(&key::ACCESS_LOG_PREFIX),
        interval: reader.get(&key::ACCESS_LOG_INTERVAL),
    }
}

fn check_annotations(reader: &mut Reader<'_>) -> CheckAnnotations {
    reader.about(Part::Health);
    CheckAnnotations {
        protocol: reader.text(&key::HEALTH_PROTOCOL),
        port: reader.text(&key::HEALTH_PORT),
        path: reader.text(&key::HEALTH_PATH),
        interval: reader.get(&key::HEALTH_INTERVAL),
        timeout: reader.get(&key::HEALTH_TIMEOUT),
        healthy: reader.get(&key::HEALTHY_THRESHOLD),
        unhealthy: reader.get(&key::UNHEALTHY_THRESHOLD),
    }
}

/// The protocol and path of a neutral check.
pub(super) fn probe_of(check: &HealthCheck) -> (&'static str, Option<&str>) {
    match &check.probe {
        HealthProbe::Http { path } => ("HTTP", Some(path)),
        HealthProbe::Https { path } => ("HTTPS", Some(path)),
        HealthProbe::Tcp | HealthProbe::UdpConnect | HealthProbe::Sctp => ("TCP", None),
    }
}

/// Whether kube-proxy's endpoint is asked in place of the Service.
pub(super) fn is_shared(facts: &Facts, desired: &Desired) -> bool {
    facts.probe_mode == Some(ProbeMode::Shared) && !desired.is_local
}
