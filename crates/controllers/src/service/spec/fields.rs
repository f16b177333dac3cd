//! Reads the fields and the `cloudkeel.dev` annotations of a Service: ports, options, address and source ranges.
//! Collects what is invalid.

use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    AnnotationKey, Features, HealthCheckPolicy, Listener, Options, Problem, Problems, Protocol,
    ProxyProtocolChoice, is_dns_subdomain, names,
};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::ServicePort;

use super::annotation;
use super::health::CheckOptions;
use crate::node::addresses::parse_ip;
use crate::view::ServiceView;
use crate::wellknown::SOURCE_RANGES_ANNOTATION;

/// No cloud has longer names and IDs.
const LONGEST_TEXT: usize = 1024;

/// The listeners, in the order of the ports. One that makes no sense is noted and left out.
pub(super) fn listeners(
    service: &ServiceView,
    checks: &CheckOptions,
    policy: &HealthCheckPolicy,
    problems: &mut Problems,
) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for (index, port) in service.ports.iter().enumerate() {
        let place = |field: &str| format!("spec.ports[{index}].{field}");
        let protocol = problems.note(protocol(place("protocol"), port));
        let number_read = problems.note(number(place("port"), port.port));
        let node_port = problems.note(node_port(place("nodePort"), service, port));
        if let (Some(protocol), Some(number), Some(node_port)) = (protocol, number_read, node_port)
        {
            listeners.push(Listener {
                name: port.name.clone().filter(|name| !name.is_empty()),
                protocol,
                port: number,
                node_port,
                app_protocol: port.app_protocol.clone(),
                health_check: checks.check(service, protocol, policy),
            });
        }
    }
    listeners
}

fn protocol(key: String, port: &ServicePort) -> Result<Protocol, Problem> {
    match port.protocol.as_deref().unwrap_or("TCP") {
        "TCP" => Ok(Protocol::Tcp),
        "UDP" => Ok(Protocol::Udp),
        "SCTP" => Ok(Protocol::Sctp),
        other => Err(Problem::unexpected(key, other, "`TCP`, `UDP` or `SCTP`")),
    }
}

fn node_port(
    key: String,
    service: &ServiceView,
    port: &ServicePort,
) -> Result<Option<u16>, Problem> {
    match port.node_port.filter(|port| *port != 0) {
        Some(port) => number(key, port).map(Some),
        None if !service.allocates_node_ports => Ok(None),
        None => Err(Problem::new(
            key,
            "is missing, although the Service allocates node ports",
        )),
    }
}

/// A port number of the API, which has them as signed integers.
pub(super) fn number(key: impl Into<String>, port: i32) -> Result<u16, Problem> {
    u16::try_from(port)
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| Problem::unexpected(key, port.to_string(), "a port from 1 to 65535"))
}

/// The neutral options; what cannot be read is noted.
pub(super) fn options(
    service: &ServiceView,
    features: Features,
    problems: &mut Problems,
) -> Options {
    // The `BalancerRef` has the ID; an empty one is reported here.
    problems.note(filled(service, &names::ADOPT));
    let drain = annotation(&names::LB_DRAIN_SECONDS, service, problems);
    let proxy_protocol = annotation(&names::LB_PROXY_PROTOCOL, service, problems);
    // Others read these; what is wrong with them is reported here.
    annotation(&names::LB_DRIFT, service, problems);
    annotation(&names::LB_RETAIN, service, problems);
    if annotation(&names::LB_EXCLUSIVE, service, problems) == Some(false) && !features.shared {
        let why = "this cloud's load balancers cannot be shared with other clients: remove it";
        problems.push(Problem::new(names::LB_EXCLUSIVE.name(), why));
    }
    Options {
        name: problems.note(filled(service, &names::LB_NAME)).flatten(),
        internal: annotation(&names::LB_INTERNAL, service, problems),
        size: problems.note(filled(service, &names::LB_TYPE)).flatten(),
        algorithm: annotation(&names::LB_ALGORITHM, service, problems),
        proxy_protocol: proxy_protocol.map(ProxyProtocolChoice::version),
        drain: drain.map(|seconds| Duration::from_secs(seconds.into())),
        hostname: problems.note(hostname(service)).flatten(),
        ip_mode: annotation(&names::LB_IP_MODE, service, problems),
        keeps_draining: false,
    }
}

/// The address asked for: the annotation, else the field. The API server does not check the field, so a bad one
/// fails only on a cloud that uses it.
pub(super) fn address(
    service: &ServiceView,
    features: Features,
    problems: &mut Problems,
) -> Option<IpAddr> {
    if let Some(ip) = annotation(&names::LB_IP, service, problems) {
        return Some(ip);
    }
    let text = service.load_balancer_ip.as_deref()?;
    let parsed = text.parse().ok();
    if parsed.is_none() && features.chosen_address {
        problems.push(Problem::unexpected(
            "spec.loadBalancerIP",
            text,
            "an IPv4 or IPv6 address",
        ));
    }
    parsed
}

fn filled(service: &ServiceView, key: &AnnotationKey<String>) -> Result<Option<String>, Problem> {
    let value = key.get(&service.annotations)?;
    match value.as_deref().map(str::trim) {
        None => Ok(None),
        Some("") => Err(Problem::unexpected(key.name(), "", "some text")),
        Some(text) if text.len() > LONGEST_TEXT || text.contains(char::is_control) => {
            let expected = "at most 1024 bytes, without line breaks and control characters";
            Err(Problem::unexpected(key.name(), text, expected))
        }
        Some(text) => Ok(Some(text.to_owned())),
    }
}

/// The API server refuses a status with anything but a lower-case DNS name.
fn hostname(service: &ServiceView) -> Result<Option<String>, Problem> {
    let key = names::LB_HOSTNAME;
    let Some(name) = key.get(&service.annotations)? else {
        return Ok(None);
    };
    if name.parse::<IpAddr>().is_err() && is_dns_subdomain(&name) {
        Ok(Some(name))
    } else {
        let expected = "a lower-case DNS name such as `web.example.com`";
        Err(Problem::unexpected(key.name(), name, expected))
    }
}

/// The source ranges: the field if it has any, else the annotation. Every network once, in its order,
/// without host bits; empty means any source.
pub(super) fn source_ranges(service: &ServiceView, problems: &mut Problems) -> Vec<IpNet> {
    let field = "spec.loadBalancerSourceRanges";
    let given: Vec<(&str, &str)> = if service.source_ranges.is_empty() {
        annotated_ranges(service)
            .map(|text| (SOURCE_RANGES_ANNOTATION, text))
            .collect()
    } else {
        let texts = service.source_ranges.iter();
        texts.map(|text| (field, text.as_str())).collect()
    };
    let mut ranges = Vec::new();
    for (key, text) in given {
        match parse_network(text.trim()) {
            Some(range) if ranges.contains(&range) => {}
            Some(range) => ranges.push(range),
            None => problems.push(Problem::unexpected(
                key,
                text,
                "a network such as `10.0.0.0/24`",
            )),
        }
    }
    ranges
}

/// What the annotation lists; nothing if it is blank.
fn annotated_ranges(service: &ServiceView) -> impl Iterator<Item = &str> {
    let text = service.annotations.get(SOURCE_RANGES_ANNOTATION);
    let text = text.map(|text| text.trim()).filter(|text| !text.is_empty());
    text.into_iter().flat_map(|text| text.split(','))
}

/// Reads a network as the Go framework does, which takes leading zeros and drops host bits.
fn parse_network(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(length) {
        return None;
    }
    let range = IpNet::new(parse_ip(address)?, length.parse().ok()?).ok()?;
    Some(range.trunc())
}
