//! Which Nodes a balancer sends traffic to, and which are excluded. Pure.
//!
//! Readiness, cordons, roles and the taint `uninitialized` do not matter, as upstream: the balancer's own health check
//! is faster. The `cloudkeel.dev/unmanaged` label does not matter either: it keeps the Node object untouched, but the
//! Node is still in the cluster and serves traffic.

pub(super) mod desired;
pub(super) mod follow;
pub(crate) mod keys;

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{
    Features, LabelSelector, NodeFacts, Problem, Target, TargetBy, TargetState, names,
};

use super::owner::ServiceOwner;
use crate::clouds::{Cloud, given_to, owner_of};
use crate::planted::Bug;
use crate::view::{NodeView, ServiceView};
use crate::wellknown::{AUTOSCALER_TAINT, EXCLUDE_LABEL, KARPENTER_TAINT, OUT_OF_SERVICE_TAINT};

/// A Node, and the clouds it belongs or may belong to.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The Node.
    pub node: Arc<NodeView>,
    /// Empty if it belongs to none; undecided if there are several.
    pub owners: Vec<String>,
    /// The cloud that a label or a selector gives it to, although its ID is of a scheme that no cloud here knows.
    pub given_to: Option<String>,
}

impl Candidate {
    /// A Node among the clouds of the configuration.
    pub fn new(node: Arc<NodeView>, clouds: &[Arc<Cloud>]) -> Self {
        let owner = owner_of(&without_unmanaged(&node.facts), clouds);
        let owners = clouds
            .iter()
            .filter(|cloud| owner.may_be(cloud))
            .map(|cloud| cloud.name.clone())
            .collect();
        let given_to = given_to(&without_unmanaged(&node.facts), clouds);
        Self {
            given_to: given_to.map(|cloud| cloud.name.clone()),
            node,
            owners,
        }
    }

    /// Whether it is a machine of this cloud. Several clouds that recognise its ID each look for it; one
    /// without an ID waits until its cloud is known.
    fn is_machine_of(&self, cloud: &str) -> bool {
        self.owners.iter().any(|owner| owner == cloud)
            && (self.owners.len() == 1 || self.node.facts.provider_id.is_some())
    }

    fn is_surely_of_one_of(&self, clouds: &[String]) -> bool {
        matches!(self.owners.as_slice(), [owner] if clouds.iter().any(|cloud| cloud == owner))
    }
}

/// An unmanaged Node is still in the cluster and gets its traffic, unless it has no ID: then it cannot be
/// reached, and no controller here changes that.
fn without_unmanaged(node: &NodeFacts) -> std::borrow::Cow<'_, NodeFacts> {
    let mut facts = std::borrow::Cow::Borrowed(node);
    let has_id = node.provider_id.is_some() || Bug::CountUnmanagedNodes.is_planted();
    if has_id && node.labels.contains_key(names::UNMANAGED_LABEL) {
        facts.to_mut().labels.remove(names::UNMANAGED_LABEL);
    }
    facts
}

/// What decides about the targets of one Service.
#[derive(Debug, Clone)]
pub struct TargetRules<'a> {
    /// The cloud that has the balancer, and whose Nodes it reaches.
    pub owner: &'a ServiceOwner,
    /// What its balancers can do.
    pub features: Features,
    /// Only these Nodes.
    pub selector: Option<LabelSelector>,
}

impl TargetRules<'_> {
    /// How a Node is reached, if it is.
    fn reach(&self, candidate: &Candidate) -> Option<TargetBy> {
        let own = &self.owner.cloud;
        let named = &self.owner.target_clouds;
        let reaches_own = named.is_empty() || named.contains(own);
        if reaches_own && candidate.is_machine_of(own) {
            return Some(self.owner.by);
        }
        let is_given = candidate
            .given_to
            .as_ref()
            .is_some_and(|given| (reaches_own && given == own) || named.contains(given));
        let is_meant = is_given
            || candidate.is_surely_of_one_of(named)
            || (self.features.every_node && named.is_empty() && candidate.owners.is_empty());
        (self.features.targets_by_address && is_meant).then_some(TargetBy::Address)
    }

    fn selects(&self, node: &NodeView) -> bool {
        self.selector
            .as_ref()
            .is_none_or(|selector| selector.matches(&node.facts.labels))
    }
}

/// The selector on a Service, if it has one: its cloud's own, else the neutral one.
pub fn node_selector(
    service: &ServiceView,
    own: Result<Option<LabelSelector>, Problem>,
) -> Result<Option<LabelSelector>, Problem> {
    if let Some(own) = own? {
        return Ok(Some(own));
    }
    let Some(text) = names::LB_NODE_SELECTOR.get(&service.annotations)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(selector) => Ok(Some(selector)),
        Err(error) => Err(Problem::unexpected(
            names::LB_NODE_SELECTOR.name(),
            text,
            error,
        )),
    }
}

/// The targets, by name of the Node.
///
/// A Node without an ID or an address yet is a target all the same: the provider adds it once it can
/// be found, and keeps what is there until then. A leaving Node drains where the cloud can do that; elsewhere it is
/// left out here, and stays for its time to drain. If no other Node can be reached, leaving Nodes keep serving.
pub fn choose<'a>(
    candidates: impl IntoIterator<Item = &'a Candidate>,
    rules: &TargetRules<'_>,
) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    let mut leaving = BTreeMap::new();
    for candidate in candidates {
        let node = &candidate.node;
        if is_excluded(node) || !rules.selects(node) {
            continue;
        }
        let Some(by) = rules.reach(candidate) else {
            continue;
        };
        let target = Target {
            node: node.facts.clone(),
            by,
            state: TargetState::Serving,
        };
        let side = if is_leaving(node, rules.features.drain) {
            &mut leaving
        } else {
            &mut targets
        };
        side.insert(node.facts.name.clone(), target);
    }
    if Bug::ForgetTarget.is_planted() && targets.len() > 2 {
        targets.pop_first();
    }
    if !targets.values().any(can_be_reached) {
        targets.extend(leaving);
        return targets;
    }
    if rules.features.drain {
        targets.extend(leaving.into_iter().map(|(name, target)| {
            let state = TargetState::Draining;
            (name, Target { state, ..target })
        }));
    }
    targets
}

/// Whether a balancer could send traffic there now. A Node that is still waiting for its machine cannot
/// stand in for one that leaves.
fn can_be_reached(target: &Target) -> bool {
    match target.by {
        TargetBy::Machine if Bug::CountWaitingNodes.is_planted() => true,
        TargetBy::Machine => target.node.provider_id.is_some(),
        TargetBy::Address => target.node.addresses.iter().any(|a| a.ip().is_some()),
    }
}

/// Whether a Node that is no target any more is about to go, rather than being kept out: until it has gone, it may
/// finish its connections in any cloud.
pub(super) fn is_about_to_go(node: &NodeView, rules: &TargetRules<'_>) -> bool {
    !is_excluded(node) && rules.selects(node) && is_leaving(node, rules.features.drain)
}

/// Whether the label keeps a Node out of all balancers: it is there, and does not say false in one of
/// the spellings that Go reads.
pub fn is_excluded(node: &NodeView) -> bool {
    node.facts
        .labels
        .get(EXCLUDE_LABEL)
        .is_some_and(|value| !matches!(<bool as cloudkeel_api::KeyValue>::parse(value), Ok(false)))
}

/// Whether a Node is about to go. Karpenter's sign counts only where connections can be drained:
/// upstream does not know it, and a Node that is cut off early is worse than one that is late.
fn is_leaving(node: &NodeView, can_drain: bool) -> bool {
    node.deleting
        || node.shutting_down
        || node.has_taint(AUTOSCALER_TAINT)
        || node.has_taint(OUT_OF_SERVICE_TAINT)
        || (can_drain && node.has_taint(KARPENTER_TAINT))
}

/// Whether a change of a Node may change some balancer's targets. Its labels may decide whose it is, and which Services
/// select it.
pub fn relevant_change(before: Option<&NodeView>, after: Option<&NodeView>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return before.is_some() || after.is_some();
    };
    before.facts.uid != after.facts.uid
        || before.facts.provider_id != after.facts.provider_id
        || before.facts.addresses != after.facts.addresses
        || before.facts.labels != after.facts.labels
        || [true, false]
            .iter()
            .any(|drain| is_leaving(before, *drain) != is_leaving(after, *drain))
}

#[cfg(test)]
mod tests;
