//! The floating IP and the security group.

use cloudkeel_toolkit::json;
use serde::Serialize;

use crate::load_balancer::floating_ip::Floating;
use crate::load_balancer::observe::Observed;
use crate::load_balancer::security_group::is_same_traffic;
use crate::load_balancer::step::{Call, Kind, Part, Step};
use crate::wire::network::{FloatingIp, Port, Traffic};

/// Which port a floating IP leads to; `null` is none.
#[derive(Serialize)]
struct PortPatch<'a> {
    port_id: Option<&'a str>,
}

#[derive(Serialize)]
struct GroupBody<'a> {
    name: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct RuleBody<'a> {
    #[serde(flatten)]
    traffic: &'a Traffic,
    security_group_id: &'a str,
}

/// The security groups of a port.
#[derive(Serialize)]
struct GroupsPatch<'a> {
    security_groups: Vec<&'a String>,
}

pub(super) fn floating_steps(floating: &Floating) -> Option<Step> {
    let part = Part::FloatingIp;
    Some(match floating {
        Floating::Delete(ip) => delete_floating_ip(ip),
        Floating::Detach(ip) => detach(&ip.id, &ip.floating_ip_address.to_string()),
        Floating::Attach { id, ip, port } => {
            let body = PortPatch {
                port_id: Some(port),
            };
            Step::update(
                part,
                Kind::FloatingIp,
                id,
                &body,
                format!("attach floating IP {ip}"),
            )
        }
        Floating::Create(new) => {
            let network = new
                .first()
                .map_or("", |new| new.floating_network_id.as_str());
            let text = format!("create a floating IP in network {network}");
            Step::new(part, Call::CreateFloatingIp(new.clone()), text)
        }
        Floating::Settled
        | Floating::NoNetwork
        | Floating::NotNeeded
        | Floating::Unavailable(_) => return None,
    })
}

fn detach(id: &str, ip: &str) -> Step {
    let body = PortPatch { port_id: None };
    Step::update(
        Part::FloatingIp,
        Kind::FloatingIp,
        id,
        &body,
        format!("detach floating IP {ip}"),
    )
}

pub(super) fn delete_floating_ip(ip: &FloatingIp) -> Step {
    let text = format!("delete floating IP {}", ip.floating_ip_address);
    Step::delete(Part::FloatingIp, Kind::FloatingIp, &ip.id, text)
}

/// The security group: made before the load balancer needs it, and deleted when no port has it any more.
pub(super) fn group_steps(have: &Observed) -> Vec<Step> {
    let part = Part::SecurityGroup;
    let groups = &have.groups;
    match (&groups.wanted, &groups.present) {
        (None, None) => Vec::new(),
        (Some(wanted), None) => {
            let body = GroupBody {
                name: &wanted.name,
                description: &wanted.description,
            };
            vec![Step::create(
                part,
                Kind::SecurityGroup,
                &body,
                format!("create security group {}", wanted.name),
            )]
        }
        (Some(wanted), Some(present)) => {
            let rules = &present.security_group_rules;
            let is_there = |want: &_| rules.iter().any(|is| is_same_traffic(want, &is.traffic));
            let is_wanted = |is: &_| wanted.rules.iter().any(|want| is_same_traffic(want, is));
            let add = wanted
                .rules
                .iter()
                .filter(|want| !is_there(want))
                .map(|want| {
                    let body = RuleBody {
                        traffic: want,
                        security_group_id: &present.id,
                    };
                    let port = want.port_range_min.unwrap_or_default();
                    Step::create(
                        part,
                        Kind::Rule,
                        &body,
                        format!("let load balancers reach port {port} of Nodes"),
                    )
                });
            let remove = rules.iter().filter(|is| !is_wanted(&is.traffic));
            let remove = remove
                .map(|is| Step::delete(part, Kind::Rule, &is.id, format!("delete rule {}", is.id)));
            let attach = wanted.ports.iter().map(|port| {
                let groups: Vec<_> = port.security_groups.iter().chain([&present.id]).collect();
                port_groups(
                    port,
                    groups,
                    format!("add security group {} to port {}", present.name, port.id),
                )
            });
            add.chain(remove).chain(attach).collect()
        }
        (None, Some(present)) => {
            let detach = groups.attached.iter().map(|port| {
                let groups: Vec<_> = port
                    .security_groups
                    .iter()
                    .filter(|id| **id != present.id)
                    .collect();
                port_groups(
                    port,
                    groups,
                    format!("take security group {} from port {}", present.name, port.id),
                )
            });
            let text = format!("delete security group {}", present.name);
            let delete = Step::delete(part, Kind::SecurityGroup, &present.id, text);
            detach.chain([delete]).collect()
        }
    }
}

fn port_groups(port: &Port, security_groups: Vec<&String>, text: String) -> Step {
    let call = Call::Update {
        kind: Kind::Port,
        id: port.id.clone(),
        revision: port.revision_number,
        body: json::whole(&GroupsPatch { security_groups }),
    };
    Step::new(Part::SecurityGroup, call, text)
}
