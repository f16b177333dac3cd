//! The steps to a network load balancer. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::CloudError;
use cloudkeel_toolkit::TargetBatch;

use super::Facts;
use super::desired::{Desired, Part};
use super::groups::{ROOM, Rules, balancer_rules, diff};
use super::nlb::{
    Mapping, attributes, clients_of_nodes, group_name, has_old_check, is_rule_of, mappings,
    node_rules,
};
use super::observe::{GroupState, NetworkState, Observed};
use super::security::{self, rule_steps};
use super::step::Step;
use crate::annotations as key;
use crate::client::Call;
use crate::wire::SecurityGroup;
use crate::wire::network::{ALL_ZONES, NetworkListener, TargetGroup};

const ABOUT: &str = "[k8s] Managed SecurityGroup for LoadBalancer";

/// Stands for the ARN of a target group that an earlier call of the same step makes.
const NEW_GROUP: &str = "$TargetGroupArn";

/// As many targets as one call takes.
const BATCH: usize = 100;

/// The steps to a network balancer.
pub(super) fn plan(
    desired: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match &have.network {
        None => create(desired, have, facts).map(|step| vec![step]),
        Some(network) => Ok(update(desired, network, have, facts)),
    }
}

/// Whether a plan depends on the target groups that are not the balancer's: a port gets a new one, or a rule by which Nodes let
/// checks in goes.
pub(super) fn needs_others(have: &Observed, facts: &Facts) -> bool {
    let (Some(desired), Some(network)) = (&have.desired, &have.network) else {
        return false;
    };
    let mappings = mappings(desired, &have.service, have.targets.target_type, facts);
    let is_served = |mapping: &Mapping| {
        let mut groups = network.groups.iter();
        groups.any(|group| fits(&group.group, mapping))
    };
    let subnets = have.subnets.as_deref().unwrap_or_default();
    let is_old =
        |group: &SecurityGroup| has_old_check(&desired.name, &mappings, subnets, &group.rules);
    !mappings.iter().all(is_served) || have.groups.iter().any(is_old)
}

fn create(desired: &Desired, have: &Observed, facts: &Facts) -> Result<Step, CloudError> {
    let invalid = |why: String| CloudError::invalid("create load balancer", why);
    desired.check_readable()?;
    let subnets = have.subnets.clone().map_err(invalid)?;
    for (given, name) in [
        (&desired.eips, key::EIP_ALLOCATIONS.name()),
        (&desired.private_ips, key::PRIVATE_IPV4.name()),
    ] {
        if !given.is_empty() && given.len() != subnets.len() {
            let (count, wanted) = (given.len(), subnets.len());
            let message =
                format!("{name}: {count} are given: expected one for each of {wanted} subnets");
            return Err(invalid(message));
        }
    }
    let scheme = if desired.is_internal {
        "internal"
    } else {
        "internet-facing"
    };
    let (groups, mut calls) = groups(desired, have, facts);
    let places = subnets.iter().enumerate();
    let call = Call::elbv2("CreateLoadBalancer")
        .set("Name", &desired.name)
        .set("Type", "network")
        .set("Scheme", scheme)
        .list("SecurityGroups", groups)
        .tags("Tags", &desired.tags)
        .each("SubnetMappings", places, |(place, subnet)| {
            let mut fields = vec![("SubnetId", subnet.id.clone())];
            let eip = desired.eips.get(place).cloned();
            fields.extend(eip.map(|id| ("AllocationId", id)));
            let ip = desired.private_ips.get(place).cloned();
            fields.extend(ip.map(|ip| ("PrivateIPv4Address", ip)));
            fields
        });
    calls.push(call);
    Ok(Step::create(
        format!("create network load balancer {}", desired.name),
        calls,
    ))
}

/// The security groups of a balancer: none unless they are managed.
fn groups(desired: &Desired, have: &Observed, facts: &Facts) -> (Vec<String>, Vec<Call>) {
    if !facts.manages_nlb_groups {
        return (Vec::new(), Vec::new());
    }
    if !desired.groups.is_empty() {
        return (desired.groups.clone(), Vec::new());
    }
    let name = group_name(&have.service, &facts.cluster_name);
    if let Some(own) = security::named(&have.groups, &name) {
        return (vec![own.id.clone()], Vec::new());
    }
    let calls = security::create_group(desired, facts, (&name, ABOUT), &own_rules(desired));
    (vec![security::NEW.to_owned()], calls)
}

fn own_rules(desired: &Desired) -> Rules {
    let ports: Vec<_> = desired.ports.iter().map(|port| port.port).collect();
    let is_udp = desired
        .ports
        .iter()
        .any(|port| port.protocol == cloudkeel_api::Protocol::Udp);
    balancer_rules(if is_udp { "udp" } else { "tcp" }, &ports, &desired.ranges)
}

fn update(desired: &Desired, network: &NetworkState, have: &Observed, facts: &Facts) -> Vec<Step> {
    let mut steps = Vec::new();
    let target_type = have.targets.target_type;
    let mappings = mappings(desired, &have.service, target_type, facts);
    let is_known = !desired.concerns(Part::Listeners) && !desired.concerns(Part::Health);
    if is_known {
        steps.extend(change_listeners(desired, &mappings, network, have));
    } else {
        let groups = network.groups.iter();
        steps.extend(groups.flat_map(|group| change_targets(group, have)));
    }
    if !desired.concerns(Part::Groups) {
        steps.extend(change_groups(desired, network, have, facts));
        if !facts.disable_ingress && is_known {
            steps.extend(change_node_rules(desired, &mappings, have));
        }
    }
    let wanted = attributes(desired);
    let differ = wanted
        .iter()
        .filter(|(key, value)| network.attributes.get(*key) != Some(value));
    let differ: Vec<_> = differ.collect();
    if !desired.concerns(Part::Attributes) && !differ.is_empty() {
        let call = Call::elbv2("ModifyLoadBalancerAttributes");
        let call = call.set("LoadBalancerArn", &network.balancer.arn);
        steps.push(Step::change(
            "set attributes",
            call.tags("Attributes", differ),
        ));
    }
    steps
}

/// Whether a group can serve a port as it is: what of it cannot be changed has to be right.
fn fits(group: &TargetGroup, mapping: &Mapping) -> bool {
    group.target_type == mapping.target_type.as_str()
        && group.port == mapping.node_port
        && group.protocol == mapping.traffic_protocol
        && group.check.protocol == mapping.check.protocol
        && group.check.interval == mapping.check.interval
}

/// Each port with its group; then what is left over.
fn change_listeners(
    desired: &Desired,
    mappings: &[Mapping],
    network: &NetworkState,
    have: &Observed,
) -> Vec<Step> {
    // A new group may need the name of one that was left over.
    let mut steps: Vec<_> = have.leftovers.iter().map(delete_group).collect();
    let mut used = Vec::new();
    for mapping in mappings {
        let listener = network
            .listeners
            .iter()
            .find(|listener| listener.port == mapping.port);
        let is_of_listener = |group: &&GroupState| {
            let of_listener = listener.and_then(|listener| listener.group.as_ref());
            of_listener == Some(&group.group.arn)
        };
        let fitting = || {
            network
                .groups
                .iter()
                .filter(|group| fits(&group.group, mapping))
        };
        let group = fitting().find(is_of_listener);
        let is_free = |group: &&GroupState| !used.contains(&group.group.arn);
        let group = group.or_else(|| fitting().find(is_free));
        match group {
            Some(group) => {
                used.push(group.group.arn.clone());
                steps.extend(change_targets(group, have));
                steps.extend(change_check(group, mapping));
                steps.extend(change_group_attributes(desired, group));
                steps.extend(change_listener(
                    network,
                    listener,
                    mapping,
                    &group.group.arn,
                ));
            }
            None => steps.push(serve_anew(desired, network, listener, mapping, have)),
        }
    }
    let is_wanted = |port: u16| mappings.iter().any(|mapping| mapping.port == port);
    for listener in network
        .listeners
        .iter()
        .filter(|listener| !is_wanted(listener.port))
    {
        let call = Call::elbv2("DeleteListener").set("ListenerArn", &listener.arn);
        steps.push(Step::remove(
            format!("delete listener on {}", listener.port),
            call,
        ));
    }
    let groups = network.groups.iter().map(|group| &group.group);
    let unused = groups.filter(|group| !used.contains(&group.arn));
    steps.extend(unused.map(delete_group));
    steps
}

pub(super) fn delete_group(group: &TargetGroup) -> Step {
    let call = Call::elbv2("DeleteTargetGroup").set("TargetGroupArn", &group.arn);
    Step::remove(format!("delete target group {}", group.name), call)
}

/// Points a listener at a group, or makes it.
fn listener_call(
    network: &NetworkState,
    listener: Option<&NetworkListener>,
    mapping: &Mapping,
    group: &str,
) -> Call {
    let call = match listener {
        Some(listener) => Call::elbv2("ModifyListener").set("ListenerArn", &listener.arn),
        None => Call::elbv2("CreateListener").set("LoadBalancerArn", &network.balancer.arn),
    };
    let call = call
        .set("Port", mapping.port)
        .set("Protocol", mapping.protocol)
        .set_some("SslPolicy", mapping.tls_policy.as_ref())
        .set_some(
            "Certificates.member.1.CertificateArn",
            mapping.certificate.as_ref(),
        )
        .set("DefaultActions.member.1.Type", "forward")
        .set("DefaultActions.member.1.TargetGroupArn", group);
    match listener {
        Some(_) => call,
        None => call.tags("Tags", &network.wanted_tags),
    }
}

fn change_listener(
    network: &NetworkState,
    listener: Option<&NetworkListener>,
    mapping: &Mapping,
    group: &str,
) -> Option<Step> {
    let is_met = |have: &NetworkListener| {
        let same = |want: &Option<String>, have: &Option<String>| want.is_none() || want == have;
        have.protocol == mapping.protocol
            && have.group.as_deref() == Some(group)
            && same(&mapping.certificate, &have.certificate)
            && same(&mapping.tls_policy, &have.ssl_policy)
    };
    if listener.is_some_and(is_met) {
        return None;
    }
    let call = listener_call(network, listener, mapping, group);
    let text = format!("serve {} port {}", mapping.protocol, mapping.port);
    Some(Step::change(text, call))
}

/// A new group with its targets, and the listener that leads to it.
fn serve_anew(
    desired: &Desired,
    network: &NetworkState,
    listener: Option<&NetworkListener>,
    mapping: &Mapping,
    have: &Observed,
) -> Step {
    let check = &mapping.check;
    let create = Call::elbv2("CreateTargetGroup")
        .set("Name", &mapping.group_name)
        .set("Protocol", mapping.traffic_protocol)
        .set("Port", mapping.node_port)
        .set("TargetType", mapping.target_type.as_str())
        .set("VpcId", &network.vpc)
        .set("HealthCheckProtocol", &check.protocol)
        .set("HealthCheckPort", &check.port)
        .set_some("HealthCheckPath", check.path.as_ref())
        .set("HealthCheckIntervalSeconds", check.interval)
        .set_some("HealthCheckTimeoutSeconds", mapping.timeout)
        .set("HealthyThresholdCount", check.healthy)
        .set("UnhealthyThresholdCount", check.unhealthy)
        .tags("Tags", &network.wanted_tags);
    let mut calls = vec![create];
    if !desired.group_attributes.is_empty() {
        let call = Call::elbv2("ModifyTargetGroupAttributes").set("TargetGroupArn", NEW_GROUP);
        calls.push(call.tags("Attributes", &desired.group_attributes));
    }
    for batch in have.targets.diff([]).batches(BATCH) {
        if let TargetBatch::Add(ids) = batch {
            calls.push(register(NEW_GROUP, &ids, have));
        }
    }
    calls.push(listener_call(network, listener, mapping, NEW_GROUP));
    let text = format!(
        "serve {} port {} by target group {}",
        mapping.protocol, mapping.port, mapping.group_name
    );
    Step::create(text, calls)
}

/// Targets outside the VPC get traffic from all zones.
fn targets_call(
    action: &'static str,
    group: &str,
    ids: &[String],
    is_outside: impl Fn(&String) -> bool,
) -> Call {
    let call = Call::elbv2(action).set("TargetGroupArn", group);
    call.each("Targets", ids, |id| {
        let zone = is_outside(id).then(|| ("AvailabilityZone", ALL_ZONES.to_owned()));
        [("Id", id.clone())].into_iter().chain(zone).collect()
    })
}

/// What is on its way out is not a target any more. A group of another type is left as it is until it is replaced.
fn change_targets(group: &GroupState, have: &Observed) -> Vec<Step> {
    let TargetGroup { arn, name, .. } = &group.group;
    if group.group.target_type != have.targets.target_type.as_str() {
        return Vec::new();
    }
    let present = &group.targets;
    let diff = have.targets.diff(present.iter().map(|it| it.id.clone()));
    let steps = diff.batches(BATCH).into_iter().map(|batch| match batch {
        TargetBatch::Add(ids) => {
            let text = format!("register {} in {name}", ids.join(", "));
            Step::add(text, register(arn, &ids, have))
        }
        TargetBatch::Remove(ids) => {
            let text = format!("deregister {} from {name}", ids.join(", "));
            let is_outside =
                |id: &String| present.iter().any(|it| it.id == *id && it.is_for_all_zones);
            Step::remove(
                text,
                targets_call("DeregisterTargets", arn, &ids, is_outside),
            )
        }
    });
    steps.collect()
}

fn register(group: &str, ids: &[String], have: &Observed) -> Call {
    let is_outside = |id: &String| have.targets.outside.contains(id);
    targets_call("RegisterTargets", group, ids, is_outside)
}

fn change_check(group: &GroupState, mapping: &Mapping) -> Option<Step> {
    let (have, want) = (&group.group.check, &mapping.check);
    if have == want {
        return None;
    }
    let call = Call::elbv2("ModifyTargetGroup")
        .set("TargetGroupArn", &group.group.arn)
        .set("HealthCheckPort", &want.port)
        .set_some("HealthCheckPath", want.path.as_ref())
        .set("HealthyThresholdCount", want.healthy)
        .set("UnhealthyThresholdCount", want.unhealthy);
    let text = format!(
        "check {} on {} by {}",
        want.protocol, want.port, group.group.name
    );
    Some(Step::change(text, call))
}

/// Only what the group shows can be set.
fn change_group_attributes(desired: &Desired, group: &GroupState) -> Option<Step> {
    let differ = desired.group_attributes.iter().filter(|(key, value)| {
        let have = group.attributes.get(*key);
        have.is_some_and(|have| have != *value)
    });
    let differ: Vec<_> = differ.collect();
    if differ.is_empty() {
        return None;
    }
    let call = Call::elbv2("ModifyTargetGroupAttributes").set("TargetGroupArn", &group.group.arn);
    let text = format!("set attributes of target group {}", group.group.name);
    Some(Step::change(text, call.tags("Attributes", differ)))
}

/// A balancer without groups can never have any. Those that were replaced go, if they were its own.
fn change_groups(
    desired: &Desired,
    network: &NetworkState,
    have: &Observed,
    facts: &Facts,
) -> Vec<Step> {
    let present = &network.balancer.groups;
    if !facts.manages_nlb_groups || present.is_empty() {
        return Vec::new();
    }
    let (wanted, mut calls) = groups(desired, have, facts);
    let mut steps = Vec::new();
    if wanted.iter().cloned().collect::<BTreeSet<_>>() != *present {
        let call = Call::elbv2("SetSecurityGroups");
        let call = call.set("LoadBalancerArn", &network.balancer.arn);
        calls.push(call.list("SecurityGroups", &wanted));
        let text = format!("set security groups {}", wanted.join(", "));
        steps.push(Step::create(text, calls).giving("groups"));
    }
    let name = group_name(&have.service, &facts.cluster_name);
    let Some(own) = security::named(&have.groups, &name) else {
        return steps;
    };
    if wanted.contains(&own.id) {
        let (add, remove) = diff(&own.rules, &own_rules(desired), |_, _| true);
        steps.extend(rule_steps(&own.id, &add, &remove));
        steps.extend(security::tag_own(facts, own));
    } else {
        steps.extend(security::remove_group(own, &have.groups, "groups"));
    }
    steps
}

/// The groups of targets are open for clients and checks, and no other group of the cluster is.
fn change_node_rules(desired: &Desired, mappings: &[Mapping], have: &Observed) -> Vec<Step> {
    let (Ok(wanted), Ok(subnets)) = (&have.targets.node_groups, &have.subnets) else {
        return Vec::new();
    };
    let clients = clients_of_nodes(desired, have.targets.target_type, subnets);
    let mut steps = Vec::new();
    for group in &have.groups {
        // Nodes that are not found yet may be in a group that nothing else is known to need.
        if !wanted.contains(&group.id) && !have.targets.wanted.unresolved.is_empty() {
            continue;
        }
        let is_ours = is_rule_of(&desired.name, have, &group.rules);
        let others = group.rules.iter();
        let others = others.filter(|(rule, about)| !is_ours(rule, about.as_deref()));
        let room = ROOM.saturating_sub(others.count());
        let of_group = if wanted.contains(&group.id) {
            node_rules(&desired.name, mappings, &clients, subnets, room)
        } else {
            Rules::new()
        };
        let (add, remove) = diff(&group.rules, &of_group, is_ours);
        steps.extend(rule_steps(&group.id, &add, &remove));
    }
    steps
}
