//! Steps on security groups that both kinds of balancers need. Pure.

use super::Facts;
use super::desired::Desired;
use super::groups::{Rules, change_rules};
use super::step::Step;
use crate::client::Call;
use crate::tags::SERVICE;
use crate::wire::{SecurityGroup, Source};

/// Stands for the ID of a group that an earlier call of the same step makes.
pub(super) const NEW: &str = "$groupId";

/// The group of a balancer that Nodes let in.
#[derive(Clone, Copy)]
pub(super) enum LbGroup<'a> {
    /// It was made for this balancer.
    Own(&'a SecurityGroup),
    /// The Service or the settings name it: it is never changed.
    Given(&'a str),
}

impl LbGroup<'_> {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Own(group) => &group.id,
            Self::Given(id) => id,
        }
    }
}

/// The group of this name.
pub(super) fn named<'a>(groups: &'a [SecurityGroup], name: &str) -> Option<&'a SecurityGroup> {
    groups.iter().find(|group| group.name == name)
}

/// Makes a group with rules. It has the tags of the balancer, but for the one that names the Service.
pub(super) fn create_group(
    desired: &Desired,
    facts: &Facts,
    (name, about): (&str, &str),
    rules: &Rules,
) -> Vec<Call> {
    let mut tags = desired.tags.clone();
    tags.remove(SERVICE);
    let create = Call::ec2("CreateSecurityGroup")
        .set("GroupName", name)
        .set("GroupDescription", about)
        .set("VpcId", &facts.vpc)
        .tag_specification("security-group", &tags);
    let authorize = change_rules("AuthorizeSecurityGroupIngress", NEW, rules);
    vec![create, authorize]
}

pub(super) fn rule_steps(group: &str, add: &Rules, remove: &Rules) -> Vec<Step> {
    let mut steps = Vec::new();
    if !add.is_empty() {
        let text = format!("add {} rules to security group {group}", add.len());
        let call = change_rules("AuthorizeSecurityGroupIngress", group, add);
        steps.push(Step::add(text, call));
    }
    if !remove.is_empty() {
        let text = format!("remove {} rules from security group {group}", remove.len());
        let call = change_rules("RevokeSecurityGroupIngress", group, remove);
        steps.push(Step::remove(text, call));
    }
    steps
}

/// A group of ours whose tag is missing, because its maker was interrupted.
pub(super) fn tag_own(facts: &Facts, own: &SecurityGroup) -> Option<Step> {
    if facts.cluster.is_tagged(&own.tags) {
        return None;
    }
    let tags = facts.cluster.owned();
    let call = Call::ec2("CreateTags")
        .list("ResourceId", [&own.id])
        .tags("Tag", &tags);
    Some(Step::change(format!("tag security group {}", own.id), call))
}

/// Everything that refers to a group, then the group itself, once `after` was done.
pub(super) fn remove_group(
    own: &SecurityGroup,
    groups: &[SecurityGroup],
    after: &str,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for group in groups.iter().filter(|group| group.id != own.id) {
        let refers = group.rules.iter();
        let refers = refers.filter(|(rule, _)| rule.source == Source::Group(own.id.clone()));
        let refers: Rules = refers
            .map(|(rule, about)| (rule.clone(), about.clone()))
            .collect();
        let revoking = rule_steps(&group.id, &Rules::new(), &refers);
        steps.extend(revoking.into_iter().map(|step| step.needing(after)));
    }
    let call = Call::ec2("DeleteSecurityGroup").set("GroupId", &own.id);
    let text = format!("delete security group {} ({})", own.id, own.name);
    steps.push(Step::remove(text, call).needing(after));
    steps
}

/// The group is no longer the cluster's.
pub(super) fn untag(own: &SecurityGroup, facts: &Facts) -> Step {
    let keys = facts.cluster.keys();
    let call = Call::ec2("DeleteTags").list("ResourceId", [&own.id]);
    let call = call.each("Tag", keys, |key| vec![("Key", key)]);
    Step::change(format!("release security group {}", own.id), call)
}
