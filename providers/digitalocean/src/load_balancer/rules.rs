//! From the ports of a Service to forwarding rules. Pure.

use cloudkeel_api::{Listener, LoadBalancerSpec};

use super::desired::{Reader, transport};
use crate::annotations as key;
use crate::annotations::PortProtocol;
use crate::config::BalancerType;
use crate::wire::ForwardingRule;

/// The port that serves HTTPS without being named.
const HTTPS: u16 = 443;

pub(super) fn of(
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    certificate: Option<&str>,
    reader: &mut Reader<'_>,
    problems: &mut Vec<String>,
) -> Vec<ForwardingRule> {
    let http3 = reader.get(&key::HTTP3_PORT);
    let ports = Ports::read(certificate, reader, problems);
    let mut rules = Vec::new();
    for listener in &spec.listeners {
        let Some(transport) = transport(listener.protocol) else {
            let (port, protocol) = (listener.port, listener.protocol);
            problems.push(format!("port {port}: {protocol}: expected TCP or UDP"));
            continue;
        };
        match (kind, transport, listener.node_port) {
            (BalancerType::Network, transport, _) => {
                rules.push(plain(transport, listener.port, listener.port));
            }
            (BalancerType::Regional, _, None) => {
                let port = listener.port;
                problems.push(format!(
                    "port {port}: it has no node port, which a REGIONAL load balancer needs: set \
                     allocateLoadBalancerNodePorts to true"
                ));
            }
            (BalancerType::Regional, "udp", Some(node_port)) => {
                rules.push(plain("udp", listener.port, node_port));
            }
            (BalancerType::Regional, _, Some(node_port)) => {
                let protocol = ports.protocol(listener.port);
                rules.extend(ports.rule(protocol, listener.port, node_port, problems));
            }
        }
    }
    if let Some(port) = http3.filter(|_| kind == BalancerType::Regional) {
        rules.extend(ports.http3(port, &spec.listeners, problems));
    }
    rules
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
    named: Vec<(u16, PortProtocol)>,
    certificate: Option<&'a str>,
    passthrough: bool,
}

impl<'a> Ports<'a> {
    fn read(
        certificate: Option<&'a str>,
        reader: &mut Reader<'_>,
        problems: &mut Vec<String>,
    ) -> Self {
        let passthrough = reader.lenient(&key::TLS_PASSTHROUGH).unwrap_or(false);
        let http = reader.get(&key::HTTP_PORTS).unwrap_or_default();
        let mut tls = reader.get(&key::TLS_PORTS).unwrap_or_default();
        let http2 = reader.get(&key::HTTP2_PORTS).unwrap_or_default();
        let has_tls = certificate.is_some() || passthrough;
        if has_tls && tls.is_empty() && !http2.contains(&HTTPS) {
            tls.push(HTTPS);
        }
        let lists = [
            (http, PortProtocol::Http),
            (tls, PortProtocol::Https),
            (http2, PortProtocol::Http2),
        ];
        let named = lists.into_iter().flat_map(|(ports, protocol)| {
            let ports = ports.into_iter();
            ports.map(move |port| (port, protocol))
        });
        let named: Vec<_> = named.collect();
        for (at, (port, protocol)) in named.iter().enumerate() {
            let mut others = named.iter().skip(at + 1);
            if let Some((_, other)) = others.find(|(other, _)| other == port) {
                let (one, other) = (protocol.as_str(), other.as_str());
                problems.push(format!(
                    "port {port}: give it either {one} or {other}, not both"
                ));
            }
        }
        Self {
            default: reader.get(&key::PROTOCOL).unwrap_or(PortProtocol::Tcp),
            named,
            certificate,
            passthrough,
        }
    }

    fn protocol(&self, port: u16) -> PortProtocol {
        let named = self.named.iter().find(|(named, _)| *named == port);
        named.map_or(self.default, |(_, protocol)| *protocol)
    }

    /// TLS ends here with a certificate, or at the Nodes.
    fn rule(
        &self,
        protocol: PortProtocol,
        port: u16,
        node_port: u16,
        problems: &mut Vec<String>,
    ) -> Option<ForwardingRule> {
        let rule = plain(protocol.as_str(), port, node_port);
        if matches!(protocol, PortProtocol::Tcp | PortProtocol::Http) {
            return Some(rule);
        }
        match (self.certificate, self.passthrough) {
            (Some(certificate), false) => Some(ForwardingRule {
                target_protocol: "http".to_owned(),
                certificate_id: certificate.to_owned(),
                ..rule
            }),
            (None, true) => Some(ForwardingRule {
                tls_passthrough: true,
                ..rule
            }),
            (certificate, _) => {
                let given = if certificate.is_some() {
                    "both"
                } else {
                    "none"
                };
                let (id, pass) = (key::CERTIFICATE_ID.name(), key::TLS_PASSTHROUGH.name());
                let protocol = protocol.as_str();
                problems.push(format!(
                    "port {port}: {protocol}: expected either {id} (or -name) or {pass}, but {given} is given"
                ));
                None
            }
        }
    }

    /// A rule more for a port that the Service has.
    fn http3(
        &self,
        port: u16,
        listeners: &[Listener],
        problems: &mut Vec<String>,
    ) -> Option<ForwardingRule> {
        let name = key::HTTP3_PORT.name();
        let mut listeners = listeners.iter();
        let node_port = listeners
            .find(|listener| listener.port == port)?
            .node_port?;
        let (Some(_), false) = (self.certificate, self.passthrough) else {
            problems.push(format!(
                "{name}: \"{port}\": expected a certificate, and no passthrough"
            ));
            return None;
        };
        self.rule(PortProtocol::Http3, port, node_port, problems)
    }
}
