//! The ports of a Service as listeners.

use cloudkeel_api::{HealthCheckPolicy, Listener, Problem, Problems, Protocol};

use super::health::Wishes;
use crate::view::{PortView, ServiceView};

/// The listeners, in the order of the ports. One that makes no sense is noted and left out.
pub(super) fn read(
    service: &ServiceView,
    wishes: &Wishes,
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
                name: port.name.clone(),
                protocol,
                port: number,
                node_port,
                app_protocol: port.app_protocol.clone(),
                health_check: wishes.check(service, protocol, policy),
            });
        }
    }
    listeners
}

fn protocol(key: String, port: &PortView) -> Result<Protocol, Problem> {
    match port.protocol.as_str() {
        "TCP" => Ok(Protocol::Tcp),
        "UDP" => Ok(Protocol::Udp),
        "SCTP" => Ok(Protocol::Sctp),
        other => Err(Problem::unexpected(key, other, "`TCP`, `UDP` or `SCTP`")),
    }
}

fn node_port(key: String, service: &ServiceView, port: &PortView) -> Result<Option<u16>, Problem> {
    match port.node_port {
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
