//! The neutral annotations of a Service.

use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    Algorithm, AnnotationKey, Features, Options, Problem, Problems, ProxyProtocol,
    is_dns_subdomain, names,
};

use super::annotation;
use crate::view::ServiceView;

const ALGORITHMS: [(&str, Algorithm); 3] = [
    ("round-robin", Algorithm::RoundRobin),
    ("least-connections", Algorithm::LeastConnections),
    ("source-ip", Algorithm::SourceIp),
];

const PROXY_PROTOCOLS: [(&str, Option<ProxyProtocol>); 3] = [
    ("v1", Some(ProxyProtocol::V1)),
    ("v2", Some(ProxyProtocol::V2)),
    ("off", None),
];

/// The neutral options; what cannot be read is noted.
pub(super) fn read(service: &ServiceView, problems: &mut Problems) -> Options {
    // The claim takes the ID as it is; here is where an empty one is reported.
    problems.note(filled(service, &names::ADOPT));
    let drain = annotation(&names::LB_DRAIN_SECONDS, service, problems);
    Options {
        name: problems.note(filled(service, &names::LB_NAME)).flatten(),
        internal: annotation(&names::LB_INTERNAL, service, problems),
        size: problems.note(filled(service, &names::LB_TYPE)).flatten(),
        algorithm: problems
            .note(choice(service, &names::LB_ALGORITHM, &ALGORITHMS))
            .flatten(),
        proxy_protocol: problems
            .note(choice(service, &names::LB_PROXY_PROTOCOL, &PROXY_PROTOCOLS))
            .flatten(),
        drain: drain.map(|seconds| Duration::from_secs(seconds.into())),
        hostname: problems.note(hostname(service)).flatten(),
    }
}

/// The wished-for address: the annotation, else the field. The API server does not check the field,
/// so it fails only on a cloud that uses it.
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
        Some(text) => Ok(Some(text.to_owned())),
    }
}

fn choice<T: Copy>(
    service: &ServiceView,
    key: &AnnotationKey<String>,
    choices: &[(&str, T)],
) -> Result<Option<T>, Problem> {
    let Some(text) = key.get(&service.annotations)? else {
        return Ok(None);
    };
    let found = choices.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let names: Vec<_> = choices
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        Problem::unexpected(key.name(), text, format!("one of {}", names.join(", ")))
    })
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
