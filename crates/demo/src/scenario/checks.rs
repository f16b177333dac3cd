//! Checks of Nodes and targets.

use cloudkeel_local_cloud::{Health, Phase, TargetStats};
use k8s_openapi::api::core::v1::Node;

use super::StepContext;
use crate::polling::until;

const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUT_DOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

pub(crate) fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == key)
}

pub(crate) fn is_initialised(node: &Node) -> bool {
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_ref());
    id.is_some() && !has_taint(node, UNINITIALISED)
}

pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

impl StepContext<'_> {
    /// Waits until a Node meets a condition.
    pub(super) async fn node_is(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Node) -> bool,
    ) -> Result<Node, String> {
        until(&format!("Node {name} {what}"), || async {
            let node = self.world.node(name).await.ok().flatten();
            node.filter(|node| is(node))
        })
        .await
    }

    /// Waits until a Node is initialized and ready.
    pub(super) async fn node_works(&self, name: &str) -> Result<Node, String> {
        let works = |node: &Node| is_initialised(node) && is_ready(node);
        self.node_is(name, "is initialised and ready", works).await
    }

    /// Waits until a Node is gone.
    pub(super) async fn node_is_gone(&self, name: &str) -> Result<(), String> {
        until(&format!("Node {name} is removed"), || async {
            matches!(self.world.node(name).await, Ok(None)).then_some(())
        })
        .await
    }

    /// The targets of all load balancers, by the names of their instances.
    pub(super) async fn targets(&self) -> Vec<(String, TargetStats)> {
        let machines = self.world.cloud.machines();
        let stats = self.world.cloud.stats().await;
        let ports = stats.into_iter().flat_map(|b| b.ports);
        let targets = ports.flat_map(|port| port.targets);
        targets
            .map(|target| {
                let has = |m: &&_| machine_has(m, &target);
                let name = machines.iter().find(has).map(|m| m.name.clone());
                (name.unwrap_or_else(|| target.at.to_string()), target)
            })
            .collect()
    }

    /// Waits until an instance is a healthy target.
    pub(super) async fn serves(&self, name: &str) -> Result<(), String> {
        until(&format!("{name} is a healthy target"), || async {
            let targets = self.targets().await;
            let serves = |(of, target): &(String, TargetStats)| {
                of == name && target.phase == Phase::Serving && target.health == Health::Healthy
            };
            targets.iter().any(serves).then_some(())
        })
        .await
    }

    /// Waits until an instance gets no traffic any more, and has no connections left.
    pub(super) async fn is_drained(&self, name: &str) -> Result<(), String> {
        until(&format!("{name} is drained"), || async {
            let targets = self.targets().await;
            let busy = |(of, target): &(String, TargetStats)| {
                of == name && (target.phase == Phase::Serving || target.active > 0)
            };
            (!targets.iter().any(busy)).then_some(())
        })
        .await
    }
}

fn machine_has(
    machine: &cloudkeel_local_cloud::simulated_cloud::wire::Machine,
    target: &TargetStats,
) -> bool {
    machine.has_address(target.address.ip())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_initialised_with_an_id_and_without_the_taint() {
        let id = "local://demo/1";
        let taints = json!([{"key": UNINITIALISED, "effect": "NoSchedule"}]);
        for (case, spec, expected) in [
            ("new", json!({"taints": taints}), false),
            ("half", json!({"taints": taints, "providerID": id}), false),
            ("done", json!({"providerID": id}), true),
            ("not ours", json!({}), false),
        ] {
            let node: Node = serde_json::from_value(json!({"spec": spec})).unwrap();
            assert_eq!(is_initialised(&node), expected, "{case}");
        }
    }

    #[test]
    fn only_a_node_that_says_so_is_ready() {
        for (status, expected) in [("True", true), ("False", false), ("Unknown", false)] {
            let conditions = json!([{"type": "Ready", "status": status}]);
            let node = json!({"status": {"conditions": conditions}});
            let node: Node = serde_json::from_value(node).unwrap();
            assert_eq!(is_ready(&node), expected, "{status}");
        }
    }
}
