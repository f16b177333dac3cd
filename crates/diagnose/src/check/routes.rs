//! Routes of Pod networks: what the route controller would change, by its own plan.

use cloudkeel_api::{Route, RouteChange, RouteTarget};
use cloudkeel_controllers::route::plan::{NetworkPlan, Ownership, plan};
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;

use super::clouds::shows_no_known_machine;
use crate::catalogue::{
    NETWORK_UNAVAILABLE, POD_CIDR_CONFLICT, POD_CIDR_MISSING, ROUTE_MISSING, ROUTE_SUSPECT,
    ROUTE_WRONG,
};
use crate::finding::Finding;
use crate::snapshot::{CloudState, NodeState, Snapshot};

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings: Vec<_> = snapshot
        .known_nodes()
        .iter()
        .filter_map(condition)
        .collect();
    let settings = &snapshot.settings;
    if !settings.routes || settings.cluster_cidrs.is_empty() {
        return findings;
    }
    for cloud in &snapshot.clouds {
        findings.extend(of_cloud(snapshot, cloud));
    }
    findings
}

fn condition(node: &NodeState) -> Option<Finding> {
    let (status, reason) = node.view.network_unavailable.as_ref()?;
    let is_managed = node.cloud().is_some();
    (status == "True" && is_managed).then(|| {
        let what = format!("its condition NetworkUnavailable is True: {reason}");
        let fix = format!("cloudkeel explain node {}", node.name());
        NETWORK_UNAVAILABLE
            .found(node_object(node.name()), what)
            .fix(fix)
    })
}

fn node_object(name: &str) -> String {
    format!("Node {name}")
}

fn of_cloud(snapshot: &Snapshot, cloud: &CloudState) -> Vec<Finding> {
    let Some(routes) = &cloud.routes else {
        return Vec::new();
    };
    let own = |node: &&NodeState| node.cloud() == Some(cloud.name.as_str());
    let nodes = snapshot.known_nodes().iter();
    let without = nodes.filter(own).filter(|node| {
        node.view.facts.pod_cidrs.is_empty() && !node.view.has_taint(UNINITIALIZED_TAINT)
    });
    let mut findings: Vec<_> = without
        .map(|node| {
            let what = "it has no spec.podCIDR";
            POD_CIDR_MISSING.found(node_object(node.name()), what)
        })
        .collect();
    // With another project's credential every route looks wrong.
    if let Ok(routes) = routes
        && shows_no_known_machine(snapshot, &cloud.name).is_none()
    {
        findings.extend(planned(snapshot, cloud, routes));
    }
    findings
}

fn planned(snapshot: &Snapshot, cloud: &CloudState, routes: &[Route]) -> Vec<Finding> {
    let nodes = snapshot.known_nodes().iter();
    let nodes: Vec<_> = nodes
        .map(|node| {
            let is_own = node.cloud() == Some(cloud.name.as_str());
            (&*node.view.facts, Ownership::of(&node.view, is_own))
        })
        .collect();
    if !nodes
        .iter()
        .any(|(_, ownership)| *ownership == Ownership::Own)
    {
        return Vec::new();
    }
    let plan = plan(&snapshot.settings.cluster_cidrs, routes, &nodes, |_| false);
    let mut findings = Vec::new();
    for node in &plan.nodes {
        for (network, planned) in &node.networks {
            let object = node_object(&node.name);
            match planned {
                NetworkPlan::Keep | NetworkPlan::Wait => {}
                NetworkPlan::Create(_) => {
                    let what = format!("cloud {} has no route to {network}", cloud.name);
                    let fix = format!("cloudkeel explain node {}", node.name);
                    findings.push(ROUTE_MISSING.found(object, what).fix(fix));
                }
                NetworkPlan::Conflict { with } => {
                    let what = format!("{network} is the Pod network of {with} too");
                    findings.push(POD_CIDR_CONFLICT.found(object, what));
                }
            }
        }
    }
    let deleted = plan.changes.iter().filter_map(|change| match change {
        RouteChange::Delete(route) => Some(route),
        RouteChange::Create(_) => None,
    });
    findings
        .extend(deleted.map(|route| ROUTE_WRONG.found(object_of(cloud, route), leads_to(route))));
    let suspects = plan.suspects.iter();
    findings.extend(suspects.map(|it| ROUTE_SUSPECT.found(object_of(cloud, it), leads_to(it))));
    findings
}

fn object_of(cloud: &CloudState, route: &Route) -> String {
    format!("route {} of cloud {}", route.destination, cloud.name)
}

fn leads_to(route: &Route) -> String {
    let to = match &route.target {
        RouteTarget::Node { name, .. } => format!("Node {name}"),
        RouteTarget::Elsewhere { hop } => hop.clone(),
    };
    let end = if route.blackhole {
        ", which the cloud says does not exist"
    } else {
        ""
    };
    format!("it leads to {to}{end}")
}
