//! From the ports of a Service to forwarding rules. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{Listener, LoadBalancerSpec, Protocol};

use super::desired::Reader;
use crate::annotations as key;
use crate::annotations::PortProtocol;
use crate::config::BalancerType;
use crate::wire::ForwardingRule;

/// The port that serves HTTPS without being named.
const HTTPS: u16 = 443;

/// A rule, or why there is none.
type Rule = Result<ForwardingRule, String>;

pub(super) fn of(
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    certificate: Option<&str>,
    reader: &mut Reader<'_>,
) -> Vec<ForwardingRule> {
    // What passes packets on serves no protocols.
    let is_regional = kind == BalancerType::Regional;
    let ports = is_regional.then(|| Ports::read(certificate, reader));
    let http3 = ports
        .as_ref()
        .and_then(|ports| ports.http3(&spec.listeners));
    let rules = spec.listeners.iter().map(|it| rule_of(it, ports.as_ref()));
    let rules = rules.chain(http3);
    let rules = rules.map(|rule| rule.map_err(|problem| reader.problems.push(problem)));
    rules.filter_map(Result::ok).collect()
}

/// What the API calls a protocol, if it serves it.
pub(crate) const fn transport(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Tcp => Some("tcp"),
        Protocol::Udp => Some("udp"),
        Protocol::Sctp => None,
    }
}

fn rule_of(listener: &Listener, ports: Option<&Ports<'_>>) -> Rule {
    let (port, protocol) = (listener.port, listener.protocol);
    match (ports, transport(protocol), listener.node_port) {
        (_, None, _) => Err(format!("port {port}: {protocol}: expected TCP or UDP")),
        (None, Some(transport), _) => Ok(plain(transport, port, port)),
        (Some(_), _, None) => Err(format!(
            "port {port}: it has no node port, which a REGIONAL load balancer needs: set \
             allocateLoadBalancerNodePorts to true"
        )),
        (Some(_), Some("udp"), Some(at)) => Ok(plain("udp", port, at)),
        (Some(ports), _, Some(at)) => {
            let named = ports.named.get(&port).copied();
            ports.rule(named.unwrap_or(ports.default), port, at)
        }
    }
}

fn plain(protocol: &str, entry_port: u16, target_port: u16) -> ForwardingRule {
    ForwardingRule {
        entry_port,
        entry_protocol: protocol.to_owned(),
        target_port,
        target_protocol: protocol.to_owned(),
        ..ForwardingRule::default()
    }
}

/// What annotations say about the protocols of ports.
struct Ports<'a> {
    default: PortProtocol,
    http3: Option<u16>,
    named: BTreeMap<u16, PortProtocol>,
    certificate: Option<&'a str>,
    passthrough: bool,
}

impl<'a> Ports<'a> {
    fn read(certificate: Option<&'a str>, reader: &mut Reader<'_>) -> Self {
        let passthrough = reader.lenient(&key::TLS_PASSTHROUGH).unwrap_or(false);
        let http = reader.get(&key::HTTP_PORTS).unwrap_or_default();
        let tls = reader.get(&key::TLS_PORTS).unwrap_or_default();
        let http2 = reader.get(&key::HTTP2_PORTS).unwrap_or_default();
        let has_tls = certificate.is_some() || passthrough;
        let is_default = has_tls && tls.is_empty() && !http2.contains(&HTTPS);
        let mut named = BTreeMap::new();
        for (ports, protocol) in [
            (http, PortProtocol::Http),
            (tls, PortProtocol::Https),
            (http2, PortProtocol::Http2),
        ] {
            for port in ports {
                if let Some(other) = named.insert(port, protocol) {
                    let (one, other) = (other.as_str(), protocol.as_str());
                    let problem = format!("port {port}: give it either {one} or {other}, not both");
                    reader.problems.push(problem);
                }
            }
        }
        named.extend(is_default.then_some((HTTPS, PortProtocol::Https)));
        Self {
            http3: reader.get(&key::HTTP3_PORT),
            default: reader.get(&key::PROTOCOL).unwrap_or(PortProtocol::Tcp),
            named,
            certificate,
            passthrough,
        }
    }

    /// TLS ends here with a certificate, or at the Nodes.
    fn rule(&self, protocol: PortProtocol, port: u16, node_port: u16) -> Rule {
        let rule = plain(protocol.as_str(), port, node_port);
        if matches!(protocol, PortProtocol::Tcp | PortProtocol::Http) {
            return Ok(rule);
        }
        match (self.certificate, self.passthrough) {
            (Some(certificate), false) => Ok(ForwardingRule {
                target_protocol: "http".to_owned(),
                certificate_id: certificate.to_owned(),
                ..rule
            }),
            (None, true) => Ok(ForwardingRule {
                tls_passthrough: true,
                ..rule
            }),
            (given, _) => {
                let (id, pass) = (key::CERTIFICATE_ID.name(), key::TLS_PASSTHROUGH.name());
                let given = given.map_or("none", |_| "both");
                let protocol = protocol.as_str();
                Err(format!(
                    "port {port}: {protocol}: expected either {id} (or -name) or {pass}, but {given} is given"
                ))
            }
        }
    }

    /// A rule more for a port that the Service has.
    fn http3(&self, listeners: &[Listener]) -> Option<Rule> {
        let port = self.http3?;
        let listener = listeners.iter().find(|listener| listener.port == port)?;
        let node_port = listener.node_port?;
        if self.certificate.is_none() || self.passthrough {
            let name = key::HTTP3_PORT.name();
            return Some(Err(format!(
                "{name}: \"{port}\": expected a certificate, and no passthrough"
            )));
        }
        Some(self.rule(PortProtocol::Http3, port, node_port))
    }
}
