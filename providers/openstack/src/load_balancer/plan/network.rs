//! The floating IP and the security group.

use cloudkeel_api::BalancerRef;
use serde::Serialize;
use serde_json::{Value, json};

use crate::load_balancer::Facts;
use crate::load_balancer::find::written_id;
use crate::load_balancer::floating_ip::{self, Floating};
use crate::load_balancer::keeps_floating_ip;
use crate::load_balancer::observe::Observed;
use crate::load_balancer::security_group::{self, is_same_traffic};
use crate::load_balancer::step::{Call, Kind, Part, Step};
use crate::wire::network::{FloatingIp, Port, Traffic};

#[derive(Serialize)]
struct RuleBody<'a> {
    #[serde(flatten)]
    traffic: &'a Traffic,
    security_group_id: &'a str,
}

pub(super) fn floating_steps(floating: &Floating) -> Option<Step> {
    Some(match floating {
        Floating::Delete(ip) => delete_floating_ip(ip),
        Floating::Detach(ip) => {
            let description = floating_ip::TEXT.without_owner(&ip.description);
            let description = description.unwrap_or(&ip.description);
            let body = json!({"port_id": null, "description": description});
            change_floating_ip("detach", ip, &body)
        }
        Floating::Attach(ip, port) => change_floating_ip("attach", ip, &json!({"port_id": port})),
        Floating::Describe(ip, text) => describe_floating_ip(ip, text),
        Floating::Create(new) => {
            let network = new.first().map(|new| new.floating_network_id.as_str());
            let network = network.unwrap_or_default();
            let text = format!("create a floating IP in network {network}");
            Step::new(Part::FloatingIp, Call::CreateFloatingIp(new.clone()), text)
        }
        Floating::Settled
        | Floating::NoNetwork
        | Floating::NotNeeded
        | Floating::Unavailable(_) => return None,
    })
}

fn change_floating_ip(verb: &str, ip: &FloatingIp, body: &Value) -> Step {
    let text = format!("{verb} floating IP {}", ip.floating_ip_address);
    Step::update(Part::FloatingIp, Kind::FloatingIp, &ip.id, body, text)
}

fn describe_floating_ip(ip: &FloatingIp, text: &str) -> Step {
    change_floating_ip("describe", ip, &json!({"description": text}))
}

fn delete_floating_ip(ip: &FloatingIp) -> Step {
    let text = format!("delete floating IP {}", ip.floating_ip_address);
    Step::delete(Part::FloatingIp, Kind::FloatingIp, &ip.id, text)
}

/// One that stays without its Service names no owner any more.
pub(super) fn keep_floating_ip(ip: &FloatingIp) -> Option<Step> {
    let text = floating_ip::TEXT.without_owner(&ip.description)?;
    Some(describe_floating_ip(ip, text))
}

/// One that was made for a Service that goes. In doubt it stays: an address that is gone does not come back. What a Service
/// asked for is not known of one that left nothing but its labels, so then the floating IP has to name it.
pub(super) fn leave_floating_ip(
    ip: &FloatingIp,
    balancer_ref: &BalancerRef,
    facts: &Facts,
) -> Option<Step> {
    let is_known = written_id(balancer_ref).is_some() || !balancer_ref.ingress.is_empty();
    let names_it =
        ip.description == floating_ip::TEXT.owned(balancer_ref, facts.cluster.as_deref());
    if (is_known || names_it) && !keeps_floating_ip(balancer_ref) {
        return Some(delete_floating_ip(ip));
    }
    keep_floating_ip(ip)
}

/// The security group of a load balancer that stays without its Service names no owner any more.
pub(super) fn release_group(have: &Observed) -> Option<Step> {
    let group = have.groups.present.as_ref()?;
    let description = security_group::TEXT.without_owner(&group.description)?;
    let (part, text) = (
        Part::SecurityGroup,
        format!("release security group {}", group.name),
    );
    let body = json!({"description": description});
    Some(Step::update(
        part,
        Kind::SecurityGroup,
        &group.id,
        &body,
        text,
    ))
}

/// The security group: made before the load balancer needs it, and deleted when no port has it any more.
pub(super) fn group_steps(have: &Observed) -> Vec<Step> {
    let part = Part::SecurityGroup;
    let groups = &have.groups;
    match (&groups.wanted, &groups.present) {
        (None, None) => Vec::new(),
        (Some(wanted), None) => {
            let body = json!({"name": wanted.name, "description": wanted.description});
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
                    &groups,
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
                    &groups,
                    format!("take security group {} from port {}", present.name, port.id),
                )
            });
            let text = format!("delete security group {}", present.name);
            let delete = Step::delete(part, Kind::SecurityGroup, &present.id, text);
            detach.chain([delete]).collect()
        }
    }
}

fn port_groups(port: &Port, security_groups: &[&String], text: String) -> Step {
    let call = Call::Update {
        kind: Kind::Port,
        id: port.id.clone(),
        revision: port.revision_number,
        body: json!({"security_groups": security_groups}),
    };
    Step::new(Part::SecurityGroup, call, text)
}
