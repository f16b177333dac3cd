//! The steps to a classic load balancer. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::CloudError;
use cloudkeel_toolkit::TargetBatch;

use super::Facts;
use super::classic::{attributes, check, group_name, is_met, listeners};
use super::desired::{Desired, Part};
use super::groups::{Rules, balancer_rules, change_rules, diff, group_rule};
use super::observe::{Classic, Observed};
use super::security::{self, LbGroup, rule_steps};
use super::step::Step;
use crate::client::Call;
use crate::wire::classic::{ClassicAttributes, ClassicCheck, ClassicListener};

const PROXY_POLICY: &str = "k8s-proxyprotocol-enabled";
const TLS_POLICY_PREFIX: &str = "k8s-SSLNegotiationPolicy-";

/// As many instances as are registered at once.
const BATCH: usize = 200;

/// A call about a balancer.
fn on(action: &'static str, name: &str) -> Call {
    Call::elb(action).set("LoadBalancerName", name)
}

/// The steps to a classic balancer.
pub(super) fn plan(
    desired: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match &have.classic {
        None => create(desired, have, facts).map(|step| vec![step]),
        Some(classic) => Ok(update(desired, classic, have, facts)),
    }
}

fn rules(desired: &Desired) -> Rules {
    let ports: Vec<_> = desired.ports.iter().map(|port| port.port).collect();
    balancer_rules("tcp", &ports, &desired.ranges)
}

fn create(desired: &Desired, have: &Observed, facts: &Facts) -> Result<Step, CloudError> {
    let invalid = |why: String| CloudError::invalid("create load balancer", why);
    desired.check_readable()?;
    let subnets = have.subnets.clone().map_err(invalid)?;
    let wanted = listeners(desired).map_err(invalid)?;
    let (group, mut calls) = own_group(desired, have, facts);
    let groups = groups(desired, group);
    let call = on("CreateLoadBalancer", &desired.name)
        .list("Subnets", subnets.iter().map(|subnet| &subnet.id))
        .list("SecurityGroups", groups)
        .tags("Tags", &desired.tags);
    let call = with_listeners(call, &wanted);
    let call = call.set_some("Scheme", desired.is_internal.then_some("internal"));
    calls.push(call);
    Ok(Step::create(
        format!("create classic load balancer {}", desired.name),
        calls,
    ))
}

/// The group of its own, if it has one, and the calls that make it.
fn own_group(desired: &Desired, have: &Observed, facts: &Facts) -> (Option<String>, Vec<Call>) {
    if !desired.groups.is_empty() || facts.elb_security_group.is_some() {
        return (
            facts
                .elb_security_group
                .clone()
                .filter(|_| desired.groups.is_empty()),
            vec![],
        );
    }
    let name = group_name(&desired.name);
    if let Some(group) = security::named(&have.groups, &name) {
        return (Some(group.id.clone()), Vec::new());
    }
    let service = &have.service;
    let about = format!(
        "Security group for Kubernetes ELB {} ({service})",
        desired.name
    );
    let calls = security::create_group(desired, facts, (&name, &about), &rules(desired));
    (Some(security::NEW.to_owned()), calls)
}

/// All groups of the balancer; the first is the one that Nodes let in.
fn groups(desired: &Desired, own: Option<String>) -> Vec<String> {
    let annotated = desired.groups.iter().cloned();
    let extra = desired.extra_groups.iter().cloned();
    annotated.chain(own).chain(extra).collect()
}

fn with_listeners(call: Call, wanted: &[ClassicListener]) -> Call {
    call.each("Listeners", wanted, |listener| {
        let mut fields = vec![
            ("Protocol", listener.protocol.clone()),
            ("LoadBalancerPort", listener.port.to_string()),
            ("InstanceProtocol", listener.instance_protocol.clone()),
            ("InstancePort", listener.instance_port.to_string()),
        ];
        let certificate = listener.certificate.clone();
        fields.extend(certificate.map(|arn| ("SSLCertificateId", arn)));
        fields
    })
}

/// Targets and listeners come first, so that nothing else keeps them waiting.
fn update(desired: &Desired, classic: &Classic, have: &Observed, facts: &Facts) -> Vec<Step> {
    let mut steps = change_targets(classic, have);
    if let Ok(wanted) = listeners(desired)
        && !desired.concerns(Part::Listeners)
    {
        steps.extend(change_listeners(&wanted, classic));
        steps.extend(change_proxy_protocol(desired, &wanted, classic));
        steps.extend(change_tls_policy(desired, &wanted, classic));
    }
    steps.extend(change_groups(desired, classic, have, facts));
    let check = check(desired, facts).filter(|_| !desired.concerns(Part::Health));
    steps.extend(check.and_then(|check| change_check(&check, classic)));
    steps.extend(change_subnets(classic, have));
    let wanted = attributes(desired);
    if !desired.concerns(Part::Attributes) && !is_met(&wanted, &classic.attributes) {
        steps.push(change_attributes(&classic.balancer.name, &wanted));
    }
    steps.extend(add_tags(desired, classic));
    steps
}

fn change_targets(classic: &Classic, have: &Observed) -> Vec<Step> {
    let name = &classic.balancer.name;
    let call = |action: &'static str, ids: &[String]| {
        on(action, name).each("Instances", ids, |id| vec![("InstanceId", id.clone())])
    };
    let diff = have.targets.diff(classic.balancer.instances.clone());
    let steps = diff.batches(BATCH).into_iter().map(|batch| match batch {
        TargetBatch::Add(ids) => {
            let text = format!("register {}", ids.join(", "));
            Step::add(text, call("RegisterInstancesWithLoadBalancer", &ids))
        }
        TargetBatch::Remove(ids) => {
            let text = format!("deregister {}", ids.join(", "));
            Step::remove(text, call("DeregisterInstancesFromLoadBalancer", &ids))
        }
    });
    steps.collect()
}

/// A port cannot be changed, only removed and made again.
fn change_listeners(wanted: &[ClassicListener], classic: &Classic) -> Vec<Step> {
    let name = &classic.balancer.name;
    let is_same = |want: &ClassicListener, have: &ClassicListener| {
        let arn =
            |listener: &ClassicListener| listener.certificate.clone().map(|a| a.to_lowercase());
        let plain = |listener: &ClassicListener| {
            let (own, other) = (
                listener.protocol.clone(),
                listener.instance_protocol.clone(),
            );
            (listener.port, own, listener.instance_port, other)
        };
        plain(want) == plain(have) && arn(want) == arn(have)
    };
    let present = &classic.balancer.listeners;
    let is_wanted = |have: &&ClassicListener| !wanted.iter().any(|want| is_same(want, have));
    let removed: Vec<_> = present
        .iter()
        .filter(is_wanted)
        .map(|have| have.port)
        .collect();
    let missing = wanted
        .iter()
        .filter(|want| !present.iter().any(|have| is_same(want, have)));
    let missing: Vec<_> = missing.cloned().collect();
    let mut steps = Vec::new();
    let ports = |ports: &[u16]| -> String {
        let texts: Vec<_> = ports.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    if !removed.is_empty() {
        let call = on("DeleteLoadBalancerListeners", name).list("LoadBalancerPorts", &removed);
        let text = format!("delete listeners on {}", ports(&removed));
        steps.push(Step::remove(text, call).giving("free ports"));
    }
    if !missing.is_empty() {
        let call = with_listeners(on("CreateLoadBalancerListeners", name), &missing);
        let numbers: Vec<_> = missing.iter().map(|listener| listener.port).collect();
        let step = Step::change(format!("create listeners on {}", ports(&numbers)), call);
        steps.push(step.needing("free ports"));
    }
    steps
}

/// The PROXY protocol is a policy of each port of the targets.
fn change_proxy_protocol(
    desired: &Desired,
    wanted: &[ClassicListener],
    classic: &Classic,
) -> Vec<Step> {
    let balancer = &classic.balancer;
    let ports: BTreeSet<_> = wanted
        .iter()
        .map(|listener| listener.instance_port)
        .collect();
    let has = |port: &u16| {
        let policies = balancer.backend_policies.get(port);
        policies.is_some_and(|policies| policies.contains(PROXY_POLICY))
    };
    let changed = ports
        .into_iter()
        .filter(|port| has(port) != desired.proxy_protocol);
    let changed: Vec<_> = changed.collect();
    let mut steps = Vec::new();
    if desired.proxy_protocol && !changed.is_empty() && !balancer.policies.contains(PROXY_POLICY) {
        let call = on("CreateLoadBalancerPolicy", &balancer.name)
            .set("PolicyName", PROXY_POLICY)
            .set("PolicyTypeName", "ProxyProtocolPolicyType")
            .set("PolicyAttributes.member.1.AttributeName", "ProxyProtocol")
            .set("PolicyAttributes.member.1.AttributeValue", true);
        let text = format!("create policy {PROXY_POLICY}");
        steps.push(Step::add(text, call).giving(PROXY_POLICY));
    }
    steps.extend(changed.into_iter().map(|port| {
        let call = on("SetLoadBalancerPoliciesForBackendServer", &balancer.name);
        let call = call.set("InstancePort", port);
        if desired.proxy_protocol {
            let call = call.list("PolicyNames", [PROXY_POLICY]);
            Step::change(format!("send PROXY protocol to port {port}"), call).needing(PROXY_POLICY)
        } else {
            let call = call.set("PolicyNames", "");
            Step::change(format!("send no PROXY protocol to port {port}"), call)
        }
    }));
    steps
}

/// Without the annotation a policy stays as it is.
fn change_tls_policy(
    desired: &Desired,
    wanted: &[ClassicListener],
    classic: &Classic,
) -> Vec<Step> {
    let Some(reference) = &desired.tls.policy else {
        return Vec::new();
    };
    let (balancer, policy) = (&classic.balancer, format!("{TLS_POLICY_PREFIX}{reference}"));
    let lacks = |listener: &&ClassicListener| {
        let policies = balancer.listener_policies.get(&listener.port);
        let is_tls = matches!(listener.protocol.as_str(), "SSL" | "HTTPS");
        is_tls && !policies.is_some_and(|policies| policies.contains(&policy))
    };
    let lacking: Vec<_> = wanted.iter().filter(lacks).collect();
    let mut steps = Vec::new();
    if !lacking.is_empty() && !balancer.policies.contains(&policy) {
        let call = on("CreateLoadBalancerPolicy", &balancer.name)
            .set("PolicyName", &policy)
            .set("PolicyTypeName", "SSLNegotiationPolicyType")
            .set(
                "PolicyAttributes.member.1.AttributeName",
                "Reference-Security-Policy",
            )
            .set("PolicyAttributes.member.1.AttributeValue", reference);
        steps.push(Step::add(format!("create policy {policy}"), call).giving(&policy));
    }
    steps.extend(lacking.into_iter().map(|listener| {
        let port = listener.port;
        let call = on("SetLoadBalancerPoliciesOfListener", &balancer.name)
            .set("LoadBalancerPort", port)
            .list("PolicyNames", [&policy]);
        Step::change(format!("set policy {policy} on port {port}"), call).needing(&policy)
    }));
    steps
}

/// The balancer's groups, the rules of its own one, and the rule by which Nodes let it in.
fn change_groups(
    desired: &Desired,
    classic: &Classic,
    have: &Observed,
    facts: &Facts,
) -> Vec<Step> {
    if desired.concerns(Part::Groups) {
        return Vec::new();
    }
    let balancer = &classic.balancer;
    let (own, made) = own_group(desired, have, facts);
    let wanted = groups(desired, own);
    let set = wanted.iter().cloned().collect::<BTreeSet<_>>();
    let mut steps = Vec::new();
    if set != balancer.groups {
        let call = on("ApplySecurityGroupsToLoadBalancer", &balancer.name);
        let call = call.list("SecurityGroups", &wanted);
        let text = format!("apply security groups {}", wanted.join(", "));
        let calls = made.into_iter().chain([call]).collect();
        steps.push(Step::create(text, calls).giving("groups"));
    }
    let named = security::named(&have.groups, &group_name(&balancer.name));
    let lb_group = match (wanted.first(), named) {
        (Some(first), Some(own)) if *first == own.id => LbGroup::Own(own),
        (Some(first), _) if first == security::NEW => return steps,
        (Some(first), _) => LbGroup::Given(first),
        (None, _) => return steps,
    };
    if let LbGroup::Own(own) = lb_group {
        let (add, remove) = diff(&own.rules, &rules(desired), |_, _| true);
        steps.extend(rule_steps(&own.id, &add, &remove));
        steps.extend(security::tag_own(facts, own));
    }
    if !facts.disable_ingress {
        steps.extend(open_nodes(&lb_group, have));
    }
    if let Some(own) = named.filter(|own| !set.contains(&own.id)) {
        // It was replaced by others.
        steps.extend(security::remove_group(own, &have.groups, "groups"));
    }
    steps
}

/// Nodes let everything in from the balancer's group. Groups of Nodes that are no targets any more are closed.
fn open_nodes(lb_group: &LbGroup<'_>, have: &Observed) -> Vec<Step> {
    let Ok(wanted) = &have.targets.node_groups else {
        return Vec::new();
    };
    let rule = group_rule(lb_group.id());
    let rules = [(rule.clone(), None)].into();
    let mut steps = Vec::new();
    for group in &have.groups {
        let (is_open, is_wanted) = (group.rules.contains_key(&rule), wanted.contains(&group.id));
        let is_own = matches!(lb_group, LbGroup::Own(_));
        if is_wanted && !is_open {
            let text = format!(
                "let {} into nodes' security group {}",
                lb_group.id(),
                group.id
            );
            let call = change_rules("AuthorizeSecurityGroupIngress", &group.id, &rules);
            steps.push(Step::add(text, call));
        } else if is_open && !is_wanted && is_own && have.targets.wanted.unresolved.is_empty() {
            let text = format!(
                "close nodes' security group {} to {}",
                group.id,
                lb_group.id()
            );
            let call = change_rules("RevokeSecurityGroupIngress", &group.id, &rules);
            steps.push(Step::remove(text, call));
        }
    }
    steps
}

fn change_check(check: &ClassicCheck, classic: &Classic) -> Option<Step> {
    if classic.balancer.check.as_ref() == Some(check) {
        return None;
    }
    let call = on("ConfigureHealthCheck", &classic.balancer.name)
        .set("HealthCheck.Target", &check.target)
        .set("HealthCheck.Interval", check.interval)
        .set("HealthCheck.Timeout", check.timeout)
        .set("HealthCheck.HealthyThreshold", check.healthy)
        .set("HealthCheck.UnhealthyThreshold", check.unhealthy);
    Some(Step::change(
        format!("check {} every {}s", check.target, check.interval),
        call,
    ))
}

/// A zone has one subnet, so the old one leaves first.
fn change_subnets(classic: &Classic, have: &Observed) -> Vec<Step> {
    let Ok(wanted) = &have.subnets else {
        return Vec::new();
    };
    let present = &classic.balancer.subnets;
    let wanted: BTreeSet<_> = wanted.iter().map(|subnet| subnet.id.clone()).collect();
    let (gone, new): (Vec<_>, Vec<_>) = (
        present.difference(&wanted).collect(),
        wanted.difference(present).collect(),
    );
    let step = |what: &str, action: &'static str, ids: &[&String]| {
        let texts: Vec<_> = ids.iter().map(|id| id.as_str()).collect();
        let call = on(action, &classic.balancer.name).list("Subnets", ids);
        (format!("{what} {}", texts.join(", ")), call)
    };
    let mut steps = Vec::new();
    if !gone.is_empty() {
        let (text, call) = step("leave subnets", "DetachLoadBalancerFromSubnets", &gone);
        steps.push(Step::remove(text, call));
    }
    if !new.is_empty() {
        let (text, call) = step("enter subnets", "AttachLoadBalancerToSubnets", &new);
        steps.push(Step::change(text, call));
    }
    steps
}

fn change_attributes(name: &str, wanted: &ClassicAttributes) -> Step {
    let key = |field: &str| format!("LoadBalancerAttributes.{field}");
    let call = on("ModifyLoadBalancerAttributes", name)
        .set(key("AccessLog.Enabled"), wanted.access_log)
        .set_some(
            &key("AccessLog.S3BucketName"),
            wanted.access_log_bucket.as_ref(),
        )
        .set_some(
            &key("AccessLog.S3BucketPrefix"),
            wanted.access_log_prefix.as_ref(),
        )
        .set_some(&key("AccessLog.EmitInterval"), wanted.access_log_interval)
        .set(key("ConnectionDraining.Enabled"), wanted.draining)
        .set_some(&key("ConnectionDraining.Timeout"), wanted.draining_timeout)
        .set(key("CrossZoneLoadBalancing.Enabled"), wanted.cross_zone)
        .set(key("ConnectionSettings.IdleTimeout"), wanted.idle_timeout);
    Step::change("set attributes", call)
}

fn add_tags(desired: &Desired, classic: &Classic) -> Option<Step> {
    let have = classic.tags.as_ref()?;
    let missing = desired
        .tags
        .iter()
        .filter(|(key, value)| have.get(*key) != Some(value));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return None;
    }
    let call = Call::elb("AddTags").list("LoadBalancerNames", [&classic.balancer.name]);
    let keys: Vec<_> = missing.iter().map(|(key, _)| key.as_str()).collect();
    let text = format!("add tags {}", keys.join(", "));
    Some(Step::change(text, call.tags("Tags", missing)))
}

/// Everything of a Service goes: the rules of Nodes, the balancer, its own group.
pub(super) fn remove(have: &Observed, name: &str) -> Vec<Step> {
    let own = security::named(&have.groups, &group_name(name));
    let balancer = have.classic.as_ref().map(|classic| {
        let name = &classic.balancer.name;
        let text = format!("delete classic load balancer {name}");
        Step::remove(text, on("DeleteLoadBalancer", name)).giving("balancer")
    });
    let group = own.map(|own| security::remove_group(own, &have.groups, "balancer"));
    balancer
        .into_iter()
        .chain(group.into_iter().flatten())
        .collect()
}

/// The balancer stays, without the tags that make it ours.
pub(super) fn release(have: &Observed, name: &str, facts: &Facts) -> Vec<Step> {
    let Some(classic) = &have.classic else {
        return Vec::new();
    };
    let name_of = &classic.balancer.name;
    let call = Call::elb("RemoveTags")
        .list("LoadBalancerNames", [name_of])
        .each("Tags", facts.owner_keys(), |key| vec![("Key", key)]);
    let step = Step::change(format!("release classic load balancer {name_of}"), call);
    let own = security::named(&have.groups, &group_name(name));
    let group = own.map(|own| security::untag(own, facts));
    group.into_iter().chain([step]).collect()
}
