//! The state that must be reached after the faults have ended.

use std::collections::BTreeSet;

use anyhow::Result;
use cloudkeel_controllers::wellknown::{EXCLUDE_LABEL, SHUTDOWN_TAINT, UNINITIALIZED_TAINT};
use cloudkeel_provider_local::SERVICE_UID;
use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::wire::{
    Balancer, Hop, Machine, MachineState, TargetAt, TargetState,
};
use k8s_openapi::api::core::v1::{Node, Service};
use serde_json::{Value, json};

use crate::accounts::{Account, Clouds};
use crate::action::Annotation;
use crate::cluster::Cluster;
use crate::fixtures::is_foreign;
use crate::invariants::objects::{has_taint, may_be_target, may_have_traffic, wants_balancer};
use crate::managers::Backends;
use crate::topology::Topology;

/// Everything that is not yet as it should be, in sentences.
pub(crate) async fn differences(cluster: &Cluster, backends: &Backends) -> Result<Vec<String>> {
    let (clouds, topology) = (&backends.clouds, backends.topology);
    let nodes = cluster.all_nodes().await?;
    let services = cluster.all_services().await?;
    let mut wrong = Vec::new();
    for node in nodes.iter().map(|node| json!(node)).filter(is_ours) {
        wrong.extend(wrong_with_node(&node, clouds));
        wrong.extend(wrong_with_pod_cidrs(&node, topology));
    }
    for account in clouds.layout.accounts() {
        wrong.extend(wrong_with_routes(&nodes, clouds, *account));
    }
    wrong.extend(wrong_with_balancers(&nodes, &services, clouds));
    Ok(wrong)
}

fn is_ours(node: &Value) -> bool {
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let unmanaged = node["metadata"]["labels"]["cloudkeel.dev/unmanaged"] == "true";
    !unmanaged && (id.is_empty() || id.starts_with("local://"))
}

fn name_of(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether the machine of a Node is in this account.
fn is_of(node: &Value, clouds: &Clouds, account: Account) -> bool {
    clouds.layout.account_of_node(name_of(node)) == account
}

fn machine_of(node: &Value, clouds: &Clouds) -> Option<Machine> {
    let id = node["spec"]["providerID"].as_str()?.parse().ok()?;
    clouds
        .of_node(name_of(node))
        .machine(LocalId::read(&id).ok()?.machine)
        .filter(Machine::is_alive)
}

fn wrong_with_node(node: &Value, clouds: &Clouds) -> Vec<String> {
    let name = name_of(node);
    let mut wrong = Vec::new();
    let Some(machine) = machine_of(node, clouds) else {
        let has_id = node["spec"]["providerID"].is_string();
        let machines = clouds.of_node(name).machines();
        let named = machines.iter().any(|machine| machine.name == name);
        return match (named, has_id) {
            (true, _) => vec![format!("{name} was never initialised")],
            (false, true) => vec![format!("{name} has no machine and is still there")],
            // Without an ID nothing proves that its machine is gone: the operator has to delete it.
            (false, false) => Vec::new(),
        };
    };
    if has_taint(node, UNINITIALIZED_TAINT) {
        wrong.push(format!("{name} still waits to be initialised"));
    }
    let ready = node["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    });
    let off = machine.state == MachineState::Off;
    // As upstream has it, the taint goes when the Node is Ready again, not when its machine runs.
    let wanted = if ready {
        Some(false)
    } else {
        off.then_some(true)
    };
    if wanted.is_some_and(|wanted| wanted != has_taint(node, SHUTDOWN_TAINT)) {
        wrong.push(format!(
            "{name}: its machine is off: {off}, the taint says otherwise"
        ));
    }
    let shown: BTreeSet<&str> = node["status"]["addresses"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|address| address["type"] != "Hostname")
        .filter_map(|address| address["address"].as_str())
        .collect();
    let real: Vec<String> = machine.addresses.iter().map(|a| a.ip.to_string()).collect();
    if shown != real.iter().map(String::as_str).collect() {
        wrong.push(format!("{name} shows {shown:?}, its machine has {real:?}"));
    }
    wrong
}

/// Every Node has a Pod CIDR of each family, whether the cluster or a manager allocates it.
fn wrong_with_pod_cidrs(node: &Value, topology: Topology) -> Option<String> {
    let wanted = if topology.dual_stack { 2 } else { 1 };
    let there = pod_cidrs(node).count();
    let name = name_of(node);
    (there != wanted).then(|| format!("{name} has {there} Pod CIDRs, wanted are {wanted}"))
}

fn pod_cidrs(node: &Value) -> impl Iterator<Item = &str> {
    let cidrs = node["spec"]["podCIDRs"].as_array();
    cidrs.into_iter().flatten().filter_map(Value::as_str)
}

/// In each account, one route for the network of every Node that is its own, to its machine, and none that leads
/// nowhere.
fn wrong_with_routes(nodes: &[Node], clouds: &Clouds, account: Account) -> Vec<String> {
    let nodes: Vec<_> = nodes.iter().map(|node| json!(node)).collect();
    let own = nodes.iter().filter(|node| is_ours(node));
    let own = own.filter(|node| clouds.layout.has_routes() && is_of(node, clouds, account));
    let wanted: BTreeSet<(String, u64)> = own
        .filter_map(|node| Some((node, machine_of(node, clouds)?.id)))
        .flat_map(|(node, id)| pod_cidrs(node).map(move |cidr| (cidr.to_owned(), id)))
        .collect();
    let is_left_alone = |network: &str| {
        let mut owners = nodes
            .iter()
            .filter(|node| pod_cidrs(node).any(|cidr| cidr == network));
        owners.any(|node| has_no_provider_id(node) || !is_of(node, clouds, account))
    };
    let there: BTreeSet<(String, u64)> = clouds
        .of(account)
        .routes()
        .iter()
        .filter(|route| !is_left_alone(&route.destination.to_string()))
        .filter_map(|route| match route.hop {
            Hop::Machine(id) => Some((route.destination.to_string(), id)),
            Hop::Ip(_) => None,
        })
        .collect();
    if wanted == there {
        return Vec::new();
    }
    let cloud = account.cloud_name();
    vec![format!(
        "routes of {cloud} are {there:?}, wanted are {wanted:?}"
    )]
}

/// Whether a Node has no ID: whether its machine is gone cannot be known, so a route there is left alone.
fn has_no_provider_id(node: &Value) -> bool {
    node["spec"]["providerID"].is_null()
}

/// One balancer for every Service that wants one, as it wants it, and no other of ours: in the account whose
/// cloud is the default.
fn wrong_with_balancers(nodes: &[Node], services: &[Service], clouds: &Clouds) -> Vec<String> {
    let targets = wanted_targets(nodes, clouds);
    let mut left: Vec<Balancer> = clouds
        .of(Account::First)
        .balancers()
        .into_iter()
        .filter(|balancer| !balancer.labels.values().any(|value| is_foreign(value)))
        .filter(|balancer| !is_released(balancer))
        .collect();
    let mut wrong = Vec::new();
    for service in services.iter().map(|service| json!(service)) {
        let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
        let own = |balancer: &Balancer| balancer.labels.values().any(|value| value == uid);
        let (own, others) = left.into_iter().partition::<Vec<_>, _>(own);
        left = others;
        wrong.extend(wrong_with_service(&service, &own, &targets));
    }
    for balancer in left {
        wrong.push(format!("balancer {} is left over", balancer.id));
    }
    wrong
}

/// Whether a balancer is no longer ours, because it was protected or retained when its Service wanted none any more.
/// That others are not released is an invariant of its own.
pub(crate) fn is_released(balancer: &Balancer) -> bool {
    let has_foreign_label = balancer.labels.values().any(|value| is_foreign(value));
    !has_foreign_label && !balancer.labels.contains_key(SERVICE_UID)
}

/// The machines that balancers send traffic to.
struct WantedTargets {
    machines: BTreeSet<u64>,
    /// Whether a Node waits for its machine: a balancer keeps its last targets until that is found.
    one_waits: bool,
}

impl WantedTargets {
    fn are(&self, serving: &BTreeSet<u64>) -> bool {
        *serving == self.machines || (self.machines.is_empty() && self.one_waits)
    }
}

/// Nodes of the default cloud that stay; if all of them are about to go, those.
fn wanted_targets(nodes: &[Node], clouds: &Clouds) -> WantedTargets {
    let machines = |fits: fn(&Value) -> bool| -> BTreeSet<u64> {
        nodes
            .iter()
            .map(|node| json!(node))
            .filter(|node| is_ours(node) && is_of(node, clouds, Account::First) && fits(node))
            .filter_map(|node| Some(machine_of(&node, clouds)?.id))
            .collect()
    };
    let staying = machines(may_be_target);
    let waits = |node: &Value| {
        let is_excluded = !node["metadata"]["labels"][EXCLUDE_LABEL].is_null();
        is_ours(node) && has_no_provider_id(node) && !is_excluded
    };
    WantedTargets {
        machines: if staying.is_empty() {
            machines(may_have_traffic)
        } else {
            staying
        },
        one_waits: nodes.iter().any(|node| waits(&json!(node))),
    }
}

fn wrong_with_service(service: &Value, own: &[Balancer], targets: &WantedTargets) -> Vec<String> {
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    if !service["metadata"]["deletionTimestamp"].is_null() {
        return vec![format!("the deletion of {name} does not end")];
    }
    let published = service["status"]["loadBalancer"]["ingress"].as_array();
    let published: Vec<&str> = published
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["ip"].as_str())
        .collect();
    match (wants_balancer(service), own) {
        (false, []) if published.is_empty() => Vec::new(),
        (false, []) => vec![format!("{name} publishes {published:?} without a balancer")],
        (false, _) => vec![format!("{name} has a balancer that it does not want")],
        (true, [balancer]) => wrong_with_balancer(service, balancer, targets, &published),
        // Without a machine of this cluster in sight, no balancer is made.
        (true, []) if targets.machines.is_empty() => Vec::new(),
        (true, many) => vec![format!("{name} has {} balancers", many.len())],
    }
}

fn wrong_with_balancer(
    service: &Value,
    balancer: &Balancer,
    targets: &WantedTargets,
    published: &[&str],
) -> Vec<String> {
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let wanted: BTreeSet<(u64, u64)> = ports
        .filter_map(|port| Some((port["port"].as_u64()?, port["nodePort"].as_u64()?)))
        .collect();
    let there: BTreeSet<(u64, u64)> = balancer
        .listeners
        .iter()
        .map(|listener| (u64::from(listener.port), u64::from(listener.target_port)))
        .collect();
    let serving: BTreeSet<u64> = balancer
        .targets
        .iter()
        .filter(|target| target.state == TargetState::Serving)
        .filter_map(|target| match target.at {
            TargetAt::Machine(id) => Some(id),
            TargetAt::Ip(_) => None,
        })
        .collect();
    let addresses: Vec<String> = balancer.addresses.iter().map(ToString::to_string).collect();
    let mut wrong = Vec::new();
    if wanted != there {
        wrong.push(format!(
            "{name} has the ports {there:?}, wanted are {wanted:?}"
        ));
    }
    if !targets.are(&serving) {
        let wanted = &targets.machines;
        wrong.push(format!(
            "{name} has the targets {serving:?}, wanted are {wanted:?}"
        ));
    }
    wrong.extend(wrong_with_options(service, balancer));
    if addresses != published {
        wrong.push(format!(
            "{name} publishes {published:?}, its balancer has {addresses:?}"
        ));
    }
    wrong
}

/// What annotations and families ask for.
fn wrong_with_options(service: &Value, balancer: &Balancer) -> Vec<String> {
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    let shown = json!(balancer);
    for annotation in Annotation::SHOWN {
        let wanted = service["metadata"]["annotations"][annotation.key()].as_str();
        let (there, usual) = match annotation {
            Annotation::Type => (balancer.kind.clone(), None),
            Annotation::Protected => (balancer.protected.to_string(), None),
            Annotation::Algorithm => {
                let algorithm = shown["algorithm"].as_str().unwrap_or_default();
                (algorithm.to_owned(), Some("round-robin"))
            }
            Annotation::Retain => continue,
        };
        if wanted.or(usual).is_some_and(|wanted| wanted != there) {
            let key = annotation.key();
            wrong.push(format!(
                "{name} has {there} for {key}, wanted is {wanted:?}"
            ));
        }
    }
    let families = |of: &Value| -> BTreeSet<String> {
        let families = of.as_array().into_iter().flatten();
        families
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let wanted = families(&service["spec"]["ipFamilies"]);
    let there = families(&shown["families"]);
    if wanted != there {
        wrong.push(format!("{name} has {there:?}, wanted are {wanted:?}"));
    }
    wrong
}
