//! What a Service asks for and cannot have. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{Affinity, CloudError, LoadBalancerSpec, Protocol, names};

use super::Facts;
use super::desired::{CheckAnnotations, Part, TRAFFIC_PORT, asked_kind};
use crate::annotations as key;
use crate::config::BalancerType;

/// What no balancer of this kind can do for the Service, and what cannot be changed any more.
pub(super) fn refusals(
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
        Some(_) if spec.listeners.iter().all(|port| port.node_port.is_none()) => {
            let message = "ports: none has a node port: set allocateLoadBalancerNodePorts to true";
            wrong.push((Part::Listeners, message.to_owned()));
        }
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
pub(super) fn misplaced(
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

/// What no check of this kind of balancer can be.
pub(super) fn wrong_check(kind: BalancerType, check: &CheckAnnotations) -> Option<(Part, String)> {
    let (protocols, expected): (&[&str], _) = match kind {
        BalancerType::Classic => (
            &["TCP", "HTTP", "HTTPS", "SSL"],
            "`TCP`, `HTTP`, `HTTPS` or `SSL`",
        ),
        BalancerType::Nlb => (&["TCP", "HTTP", "HTTPS"], "`TCP`, `HTTP` or `HTTPS`"),
    };
    let is_protocol = |text: &String| protocols.contains(&text.to_uppercase().as_str());
    let is_port = |text: &String| text == TRAFFIC_PORT || text.parse::<u16>().is_ok();
    let protocol = check.protocol.iter().filter(|text| !is_protocol(text));
    let protocol = protocol.map(|text| (key::HEALTH_PROTOCOL.name(), text, expected));
    let port = check.port.iter().filter(|text| !is_port(text));
    let port = port.map(|text| (key::HEALTH_PORT.name(), text, "a port or `traffic-port`"));
    let wrong = protocol.chain(port).next();
    wrong.map(|(name, text, expected)| {
        (
            Part::Health,
            format!("{name}: {text:?}: expected {expected}"),
        )
    })
}
