//! What is wrong with a cluster in which nothing happens.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_testkit::cluster::UNINITIALIZED_TAINT;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, Hop, Machine, Route, TargetAt};
use cloudkeel_testkit::simulated_cloud::{LocalId, SimulatedCloud};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt as _;

const SHUTDOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The cluster and its cloud at one moment.
pub(crate) struct Snapshot {
    pub(crate) nodes: Vec<Node>,
    pub(crate) services: Vec<Service>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) balancers: Vec<Balancer>,
    pub(crate) routes: Vec<Route>,
}

impl Snapshot {
    /// A line for everything that is not as it should be.
    pub(crate) fn problems(&self) -> Vec<String> {
        let machines = self.machines.iter().filter(|machine| machine.is_alive());
        let machines: BTreeMap<String, &Machine> = machines
            .map(|machine| {
                let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
                (id.as_str().to_owned(), machine)
            })
            .collect();
        let mut problems = Vec::new();
        self.check_nodes(&machines, &mut problems);
        self.check_services(&machines, &mut problems);
        self.check_routes(&machines, &mut problems);
        problems
    }

    fn check_nodes(&self, machines: &BTreeMap<String, &Machine>, problems: &mut Vec<String>) {
        let mut with_node = BTreeSet::new();
        for node in &self.nodes {
            let name = node.name_any();
            match provider_id(node).map(|id| (machines.get(id), id)) {
                None => problems.push(format!("node {name} has no provider ID")),
                Some((None, id)) => problems.push(format!("node {name} is dead: there is no {id}")),
                Some((Some(machine), _)) if machine.name != name => {
                    problems.push(format!("node {name} has the ID of {}", machine.name));
                }
                Some((Some(machine), _)) => {
                    with_node.insert(machine.id);
                }
            }
            for taint in [UNINITIALIZED_TAINT, SHUTDOWN_TAINT] {
                if has_taint(node, taint) {
                    problems.push(format!("node {name} has the taint {taint}"));
                }
            }
        }
        let lost = machines.values().filter(|it| !with_node.contains(&it.id));
        problems.extend(lost.map(|it| format!("machine {} runs and has no Node", it.name)));
    }

    fn check_services(&self, machines: &BTreeMap<String, &Machine>, problems: &mut Vec<String>) {
        let targets: BTreeSet<_> = machines
            .values()
            .map(|it| TargetAt::Machine(it.id))
            .collect();
        let mut in_use = BTreeSet::new();
        for service in &self.services {
            let Some(ports) = load_balancer_ports(service) else {
                continue;
            };
            let name = service.name_any();
            if service.metadata.deletion_timestamp.is_some() {
                problems.push(format!("service {name} is being deleted"));
                continue;
            }
            let address = ingress_ip(service).and_then(|ip| ip.parse().ok());
            let balancer = address.and_then(|address| {
                let mut balancers = self.balancers.iter();
                balancers.find(|balancer| balancer.addresses.contains(&address))
            });
            let Some(balancer) = balancer else {
                problems.push(format!("service {name} has no address that a balancer has"));
                continue;
            };
            in_use.insert(balancer.id);
            let listeners = balancer.listeners.iter();
            let listeners: BTreeSet<_> = listeners.map(|it| (it.port, it.target_port)).collect();
            if listeners != ports {
                problems.push(format!(
                    "service {name} has ports {ports:?}, its balancer {listeners:?}"
                ));
            }
            let has: BTreeSet<_> = balancer.targets.iter().map(|target| target.at).collect();
            let missing = targets.difference(&has).count();
            let extra = has.difference(&targets).count();
            if missing + extra > 0 {
                let of = targets.len();
                problems.push(format!(
                    "service {name} lacks {missing} of {of} targets, has {extra} dead"
                ));
            }
        }
        let left = self.balancers.iter().filter(|it| !in_use.contains(&it.id));
        problems.extend(left.map(|it| format!("balancer {} is left over", it.name)));
    }

    fn check_routes(&self, machines: &BTreeMap<String, &Machine>, problems: &mut Vec<String>) {
        let routes = self.routes.iter();
        let mut routes: BTreeMap<String, Hop> = routes
            .map(|route| (route.destination.to_string(), route.hop))
            .collect();
        for node in &self.nodes {
            let spec = node.spec.as_ref();
            let Some(network) = spec.and_then(|spec| spec.pod_cidr.clone()) else {
                continue;
            };
            let machine = provider_id(node).and_then(|id| machines.get(id));
            let expected = machine.map(|machine| Hop::Machine(machine.id));
            let route = routes.remove(&network);
            if route.is_none() || route != expected {
                let name = node.name_any();
                problems.push(format!(
                    "the route to {network} of node {name} leads to {route:?}"
                ));
            }
        }
        problems.extend(
            routes
                .keys()
                .map(|to| format!("the route to {to} is left over")),
        );
    }
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == key))
}

fn ingress_ip(service: &Service) -> Option<&str> {
    let status = service.status.as_ref()?.load_balancer.as_ref()?;
    status.ingress.as_ref()?.first()?.ip.as_deref()
}

/// Ports and node ports, of a Service of type `LoadBalancer`.
fn load_balancer_ports(service: &Service) -> Option<BTreeSet<(u16, u16)>> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() != Some("LoadBalancer") {
        return None;
    }
    let ports = spec.ports.as_ref()?.iter();
    let number = |port: i32| u16::try_from(port).unwrap_or(0);
    Some(
        ports
            .map(|it| (number(it.port), number(it.node_port.unwrap_or(0))))
            .collect(),
    )
}
