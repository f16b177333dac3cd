//! A healthy cluster that a manager has set up: three Nodes with routes, and Services with load balancers.

use cloudkeel_testkit::cluster::{eventually, wait_for_node};
use k8s_openapi::api::core::v1::Node;

use crate::harness::{DEADLINE, Manager};
use crate::lab::Lab;

/// Three Nodes and these Services, all as they should be, and the manager that made them so.
pub(crate) async fn healthy(lab: &Lab, services: &[&str]) -> Manager {
    let manager = lab.start_manager();
    for (name, number) in [("n1", 1), ("n2", 2), ("n3", 3)] {
        lab.machine(name);
        let cidr = format!("10.77.{number}.0/24");
        lab.create(lab.node(name).pod_cidr(cidr)).await;
    }
    for name in services {
        lab.serve(lab.service(name), name, "n1").await;
    }
    for name in ["n1", "n2", "n3"] {
        wait_for_node(&lab.world.client, name, DEADLINE, is_complete).await;
    }
    for name in services {
        lab.until_served(name).await;
    }
    eventually("every balancer has its targets", DEADLINE, || async {
        let balancers = lab.world.cloud.balancers_of(&lab.world.id);
        balancers.len() == services.len() && balancers.iter().all(|it| it.targets.len() == 3)
    })
    .await;
    manager
}

/// Whether a Node is initialised and has its route.
fn is_complete(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_routed = |kind: &str, status: &str| kind == "NetworkUnavailable" && status == "False";
    taints.is_none_or(Vec::is_empty) && conditions.any(|it| is_routed(&it.type_, &it.status))
}
