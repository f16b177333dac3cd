//! Plans the writes to a Node, at most two, from its view and its instance. Pure.

use cloudkeel_api::{Instance, NodeAddress, ProviderId};
use k8s_openapi::api::core::v1::Taint;

use super::addresses::{self, AddressProblem};
use super::labels::{self, Declined, LabelChanges};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

/// Changes of the Node itself; its status is written apart, and first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeChanges {
    /// Only if it has none: it can never be changed.
    pub provider_id: Option<ProviderId>,
    /// Labels to set.
    pub labels: LabelChanges,
    /// All taints afterwards, if they change.
    pub taints: Option<Vec<Taint>>,
}

impl NodeChanges {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.provider_id.is_none() && self.labels.is_empty() && self.taints.is_none()
    }
}

/// What to write to a Node, in this order: addresses, then everything else with the taint, so that nothing is
/// scheduled to a Node that cannot be reached.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan {
    /// All addresses afterwards, if they change.
    pub addresses: Option<Vec<NodeAddress>>,
    /// The rest.
    pub changes: NodeChanges,
    /// Labels of the cloud that are not written.
    pub declined: Vec<Declined>,
    /// Why the addresses of an initialized Node stay as they are, if none can be chosen.
    pub address_problem: Option<AddressProblem>,
}

/// Plans the initialisation of a Node that carries the taint.
///
/// `offered` are the addresses that the provider gives this Node. If the cloud knows none, those of
/// the kubelet stay.
pub fn initialise(
    node: &NodeView,
    instance: &Instance,
    offered: &[NodeAddress],
) -> Result<NodePlan, AddressProblem> {
    let (labels, declined) = labels::at_initialisation(instance, &node.facts);
    let provider_id = match node.facts.provider_id {
        Some(_) => None,
        None => Some(instance.id.clone()),
    };
    Ok(NodePlan {
        addresses: changed_addresses(node, offered)?,
        changes: NodeChanges {
            provider_id,
            labels,
            taints: without_taint(node),
        },
        declined,
        address_problem: None,
    })
}

/// The addresses to write, if the cloud knows any and they differ from what the Node has, order
/// included.
pub fn changed_addresses(
    node: &NodeView,
    offered: &[NodeAddress],
) -> Result<Option<Vec<NodeAddress>>, AddressProblem> {
    if offered.is_empty() {
        // Validated all the same: a node IP that cannot be met must not pass unnoticed.
        addresses::choose(&node.facts.addresses, &node.facts)?;
        return Ok(None);
    }
    let chosen = addresses::choose(offered, &node.facts)?;
    Ok((chosen != node.facts.addresses).then_some(chosen))
}

fn without_taint(node: &NodeView) -> Option<Vec<Taint>> {
    node.has_taint(UNINITIALIZED_TAINT).then(|| {
        let others = node
            .taints
            .iter()
            .filter(|taint| taint.key != UNINITIALIZED_TAINT);
        others.cloned().collect()
    })
}

/// What a list may change on a Node that is initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refresh {
    /// Follow the type of a resized machine.
    pub instance_type: bool,
    /// Follow zone and region of a machine that moved.
    pub topology: bool,
}

/// Plans the refresh of an initialised Node from a list. Addresses of which none can be chosen stay as they are.
pub fn refresh(
    node: &NodeView,
    instance: &Instance,
    offered: &[NodeAddress],
    what: Refresh,
) -> NodePlan {
    let mut labels = LabelChanges::new();
    if what.instance_type {
        labels.extend(labels::resized(instance, &node.facts));
    }
    if what.topology {
        let moved = labels::moved(instance, &node.facts).into_iter();
        labels.extend(moved.map(|(key, _, now)| (key, now)));
    }
    let (labels, declined) = labels::allowed(labels);
    let (addresses, address_problem) = match changed_addresses(node, offered) {
        Ok(addresses) => (addresses, None),
        Err(problem) => (None, Some(problem)),
    };
    NodePlan {
        // Pods and certificates may rely on the first one, so their order alone is never rewritten.
        addresses: addresses.filter(|new| !is_permutation(new, &node.facts.addresses)),
        changes: NodeChanges {
            labels,
            ..NodeChanges::default()
        },
        declined,
        address_problem,
    }
}

fn is_permutation(one: &[NodeAddress], other: &[NodeAddress]) -> bool {
    let [one, other] = [one, other].map(|list| {
        let mut list: Vec<_> = list.iter().collect();
        list.sort_unstable();
        list
    });
    one == other
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::wellknown::{INSTANCE_TYPE, PROVIDED_NODE_IP};

    fn taint(key: &str, effect: &str) -> Taint {
        Taint {
            key: key.into(),
            value: None,
            effect: effect.into(),
            time_added: None,
        }
    }

    fn ip(text: &str) -> NodeAddress {
        NodeAddress::internal(text.parse::<IpAddr>().unwrap())
    }

    fn tainted() -> NodeView {
        let mut node = NodeView {
            taints: vec![
                taint(UNINITIALIZED_TAINT, "NoSchedule"),
                taint("other", "NoExecute"),
            ],
            ..NodeView::default()
        };
        node.facts.name = "n".into();
        node.facts.addresses = vec![NodeAddress::hostname("n"), ip("10.0.0.9")];
        node
    }

    fn machine() -> Instance {
        let mut instance = Instance::new("local://p/1".parse().unwrap(), "n");
        instance.instance_type = Some("cx22".into());
        instance.addresses = vec![NodeAddress::hostname("n"), ip("10.0.0.1")];
        instance
    }

    fn plan(node: &NodeView) -> Result<NodePlan, AddressProblem> {
        let machine = machine();
        initialise(node, &machine, &machine.addresses)
    }

    /// What the Node looks like after the plan was written.
    fn written(node: &NodeView, plan: &NodePlan) -> NodeView {
        let mut node = node.clone();
        if let Some(addresses) = &plan.addresses {
            node.facts.addresses.clone_from(addresses);
        }
        if let Some(taints) = &plan.changes.taints {
            node.taints.clone_from(taints);
        }
        if let Some(id) = &plan.changes.provider_id {
            node.facts.provider_id = Some(id.clone());
        }
        node.facts.labels.extend(plan.changes.labels.clone());
        node
    }

    #[test]
    fn a_new_node_gets_everything_in_two_writes() {
        let plan = plan(&tainted()).unwrap();
        assert_eq!(plan.addresses, Some(machine().addresses));
        assert_eq!(plan.changes.provider_id, Some(machine().id));
        assert_eq!(plan.changes.labels.get(INSTANCE_TYPE).unwrap(), "cx22");
        assert_eq!(plan.changes.taints, Some(vec![taint("other", "NoExecute")]));
    }

    #[test]
    fn planning_again_after_writing_gives_nothing() {
        let node = tainted();
        let first = plan(&node).unwrap();
        let second = plan(&written(&node, &first)).unwrap();
        assert_eq!(second.addresses, None);
        assert!(second.changes.is_empty(), "{second:?}");
    }

    #[test]
    fn a_preset_provider_id_is_never_replaced() {
        let mut node = tainted();
        node.facts.provider_id = Some("local://p/77".parse().unwrap());
        assert_eq!(plan(&node).unwrap().changes.provider_id, None);
    }

    #[test]
    fn every_taint_with_the_key_goes_whatever_its_effect() {
        let mut node = tainted();
        node.taints.push(taint(UNINITIALIZED_TAINT, "NoExecute"));
        assert_eq!(plan(&node).unwrap().changes.taints.unwrap().len(), 1);
    }

    #[test]
    fn a_node_ip_that_the_cloud_does_not_know_leaves_the_node_alone() {
        let mut node = tainted();
        node.facts
            .annotations
            .insert(PROVIDED_NODE_IP.into(), "192.0.2.1".into());
        assert!(plan(&node).is_err());
    }

    #[test]
    fn a_cloud_without_addresses_keeps_those_of_the_kubelet() {
        let node = tainted();
        let plan = initialise(&node, &machine(), &[]).unwrap();
        assert_eq!(plan.addresses, None);
        assert!(plan.changes.taints.is_some());
    }

    #[test]
    fn a_refresh_writes_only_what_changed_and_leaves_taints_and_ids_alone() {
        let node = written(&tainted(), &plan(&tainted()).unwrap());
        let mut resized = machine();
        resized.instance_type = Some("cx42".into());
        let all = Refresh {
            instance_type: true,
            topology: true,
        };
        let none = refresh(&node, &machine(), &machine().addresses, all);
        assert!(none.addresses.is_none() && none.changes.is_empty());
        let some = refresh(&node, &resized, &resized.addresses, all);
        assert_eq!(some.changes.labels.len(), 2);
        let off = Refresh {
            instance_type: false,
            topology: false,
        };
        assert!(
            refresh(&node, &resized, &resized.addresses, off)
                .changes
                .is_empty()
        );
    }

    #[test]
    fn reordered_and_dual_stack_addresses_are_compared_as_they_are() {
        let mut node = tainted();
        node.facts.addresses = vec![ip("10.0.0.1"), ip("fd00::1")];
        let same = node.facts.addresses.clone();
        assert_eq!(
            changed_addresses(&node, &same).unwrap(),
            None,
            "no useless write"
        );
        let turned = vec![ip("fd00::1"), ip("10.0.0.1")];
        assert_eq!(changed_addresses(&node, &turned).unwrap(), Some(turned));
    }

    #[test]
    fn the_order_of_addresses_alone_is_never_rewritten_by_a_refresh() {
        let mut node = tainted();
        node.taints.clear();
        node.facts.addresses = vec![ip("10.0.0.1"), ip("10.0.0.2")];
        let what = Refresh {
            instance_type: true,
            topology: false,
        };
        for (case, offered, is_written) in [
            ("turned", vec![ip("10.0.0.2"), ip("10.0.0.1")], false),
            ("one is new", vec![ip("10.0.0.3"), ip("10.0.0.1")], true),
            ("one is gone", vec![ip("10.0.0.2")], true),
        ] {
            let plan = refresh(&node, &machine(), &offered, what);
            assert_eq!(plan.addresses.is_some(), is_written, "{case}");
        }
    }
}
