//! How a network load balancer goes, or is given away. Pure.

use super::Facts;
use super::find::TAGS_BATCH;
use super::groups::{Rules, diff};
use super::nlb::{group_name, group_names, is_rule_of};
use super::nlb_plan::delete_group;
use super::observe::{NetworkState, Observed};
use super::security::{self, rule_steps};
use super::step::{Step, StepKind};
use crate::client::Call;

/// Everything of a Service goes: the balancer with its listeners, its target groups, the rules of Nodes, its group.
pub(super) fn remove(have: &Observed, name: &str, facts: &Facts) -> Vec<Step> {
    let mut steps = Vec::new();
    // What is protected stays, with everything that it needs.
    if have
        .network
        .as_ref()
        .is_some_and(NetworkState::is_protected)
    {
        return steps;
    }
    if let Some(network) = &have.network {
        let call = Call::elbv2("DeleteLoadBalancer");
        let call = call.set("LoadBalancerArn", &network.balancer.arn);
        let text = format!("delete network load balancer {}", network.balancer.name);
        steps.push(Step::remove(text, call).giving("balancer"));
    }
    let of_balancer = have.network.iter().flat_map(|network| &network.groups);
    let groups = of_balancer.map(|group| &group.group).chain(&have.leftovers);
    steps.extend(groups.map(|group| delete_group(group).needing("balancer")));
    for group in have.groups.iter().filter(|_| !facts.disable_ingress) {
        let is_ours = is_rule_of(name, have, &group.rules);
        let own = format!("={name}");
        let mut about = group.rules.values().flatten();
        let has_own = about.any(|about| about.ends_with(&own));
        let (_, remove) = diff(&group.rules, &Rules::new(), is_ours);
        if has_own {
            let closing = rule_steps(&group.id, &Rules::new(), &remove);
            steps.extend(closing.into_iter().map(|step| step.needing("balancer")));
        }
    }
    let names = group_names(&have.service, &facts.cluster_name);
    let own = have.groups.iter().find(|it| names.contains(&it.name));
    let own = own.map(|own| security::remove_group(own, &have.groups, "balancer"));
    steps.into_iter().chain(own.into_iter().flatten()).collect()
}

/// The balancer stays, without the tags that make it ours.
pub(super) fn release(have: &Observed, facts: &Facts) -> Vec<Step> {
    let Some(network) = &have.network else {
        return Vec::new();
    };
    let arns = network.groups.iter().map(|group| &group.group.arn);
    let arns: Vec<_> = std::iter::once(&network.balancer.arn).chain(arns).collect();
    let untag = |arns: &[&String]| {
        let call = Call::elbv2("RemoveTags").list("ResourceArns", arns);
        call.list("TagKeys", facts.owner_keys())
    };
    // The balancer itself is the last: until then it is ours, and all of it is done again.
    let calls = arns.rchunks(TAGS_BATCH).map(untag).collect();
    let name = &network.balancer.name;
    let text = format!("release network load balancer {name}");
    let step = Step::new(StepKind::Change, text, calls);
    let own = security::named(
        &have.groups,
        &group_name(&have.service, &facts.cluster_name),
    );
    let own = own.map(|own| security::untag(own, facts));
    own.into_iter().chain([step]).collect()
}
