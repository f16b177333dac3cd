//! What is planned for what, as tables and as properties.

mod annotations;
mod dependencies;
mod differences;
mod health;
mod model;
mod ownership;
mod properties;
mod status;
mod targets;

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudkeel_api::{
    self as api, BalancerRef, CloudError, ClusterIdentity, DesiredState, LoadBalancerSpec,
    NodeAddress, NodeFacts, Report, ServiceRef, TargetBy,
};
use cloudkeel_toolkit::{Classified, json};

use super::Facts;
use super::desired::Desired;
use super::observe::{Asked, BalancerTypeChange, Observed};
use super::step::{Change, Step};
use super::targets::Wanted;
use crate::annotations::PREFIX;
use crate::config::BalancerDefaults;
use crate::id::HetznerId;
use crate::wire::{
    AlgorithmField, BalancerNet, BalancerPublic, BalancerType, HealthStatuses, LoadBalancer,
    Protection, PublicAddress, Service, ServiceCheck, Target, TargetIp, TargetSelector,
    TargetServer,
};

/// The private network of the tests.
const NETWORK: u64 = 7;

fn balancer_ref() -> BalancerRef {
    let cluster = ClusterIdentity {
        name: "c".into(),
        uid: Some("c-1".into()),
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "ns".into(),
        name: "web".into(),
        uid: "u-1".into(),
    };
    BalancerRef::of(cluster, service)
}

fn facts() -> Facts {
    Facts {
        network: None,
        defaults: BalancerDefaults {
            location: Some("fsn1".into()),
            ..BalancerDefaults::default()
        },
        cluster: Some("c-1".into()),
    }
}

fn in_network() -> Facts {
    Facts {
        network: Some(NETWORK),
        ..facts()
    }
}

fn listener(port: u16) -> api::Listener {
    api::Listener::tcp(port, 30_000 + port % 1_000)
}

fn node(id: HetznerId) -> NodeFacts {
    let (HetznerId::Cloud(number) | HetznerId::Robot(number)) = id;
    let [.., last] = number.to_be_bytes();
    NodeFacts {
        name: format!("node-{number}"),
        provider_id: Some(id.provider_id()),
        addresses: vec![NodeAddress::internal([10, 0, 0, last].into())],
        ..NodeFacts::default()
    }
}

fn target(id: HetznerId) -> (String, api::Target) {
    let node = node(id);
    (node.name.clone(), api::Target::machine(node))
}

/// A Service with these ports whose Nodes are these cloud servers.
fn spec(ports: &[u16], servers: &[u64]) -> LoadBalancerSpec {
    let servers = servers.iter().copied().map(HetznerId::Cloud);
    LoadBalancerSpec {
        listeners: ports.iter().copied().map(listener).collect(),
        targets: servers.map(target).collect(),
        ..LoadBalancerSpec::plain(balancer_ref())
    }
}

fn annotate(spec: &mut LoadBalancerSpec, pairs: &[(&str, &str)]) {
    for (key, value) in pairs {
        let key = format!("{PREFIX}{key}");
        spec.balancer_ref
            .annotations
            .insert(key, (*value).to_owned());
    }
}

fn balancer_type(id: u64, name: &str, max_targets: usize) -> BalancerType {
    BalancerType {
        id,
        name: name.into(),
        max_targets,
        max_services: 5,
        deprecation: None,
    }
}

fn lb11() -> BalancerType {
    balancer_type(1, "lb11", 25)
}

/// A balancer as the cloud creates it: ours, without services and targets.
fn balancer() -> LoadBalancer {
    LoadBalancer {
        id: 42,
        name: "au1".into(),
        public_net: BalancerPublic {
            enabled: true,
            ipv4: PublicAddress {
                ip: Some("192.0.2.1".parse().unwrap()),
                dns_ptr: Some("static.1".into()),
            },
            ipv6: PublicAddress {
                ip: Some("2001:db8::1".parse().unwrap()),
                dns_ptr: Some("static.2".into()),
            },
        },
        private_net: vec![],
        load_balancer_type: lb11(),
        protection: Protection { delete: false },
        labels: BTreeMap::from([(super::SERVICE_UID.into(), "u-1".into())]),
        algorithm: AlgorithmField {
            name: "round_robin".into(),
        },
        services: vec![],
        targets: vec![],
    }
}

/// A service as the Go CCM makes it without any annotation.
fn service(port: u16) -> Service {
    let node_port = 30_000 + port % 1_000;
    Service {
        protocol: "tcp".into(),
        listen_port: port,
        destination_port: node_port,
        proxyprotocol: Some(false),
        http: None,
        health_check: ServiceCheck {
            protocol: "tcp".into(),
            port: node_port,
            interval: Some(15),
            timeout: Some(10),
            retries: Some(3),
            http: None,
        },
    }
}

fn server_target(id: u64, private: bool) -> Target {
    Target {
        server: Some(TargetServer { id }),
        ip: None,
        label_selector: None,
        use_private_ip: Some(private),
        health_status: HealthStatuses::default(),
    }
}

fn ip_target(ip: &str) -> Target {
    let ip: IpAddr = ip.parse().unwrap();
    Target {
        server: None,
        ip: Some(TargetIp { ip }),
        label_selector: None,
        use_private_ip: Some(false),
        health_status: HealthStatuses::default(),
    }
}

fn selector_target() -> Target {
    Target {
        server: None,
        ip: None,
        label_selector: Some(TargetSelector {}),
        use_private_ip: Some(false),
        health_status: HealthStatuses::default(),
    }
}

/// The balancer of `spec(&[80], &[1, 2])`, settled.
fn settled() -> LoadBalancer {
    LoadBalancer {
        services: vec![service(80)],
        targets: vec![server_target(1, false), server_target(2, false)],
        ..balancer()
    }
}

fn attached(mut balancer: LoadBalancer) -> LoadBalancer {
    balancer.private_net = vec![BalancerNet {
        network: NETWORK,
        ip: "10.0.0.100".parse().unwrap(),
    }];
    balancer
}

fn ours(balancer: LoadBalancer) -> Observed {
    Observed {
        found: Classified::ours(balancer),
        ..Observed::default()
    }
}

/// An observation that carries what the Service asks for.
fn asking(desired: DesiredState<'_>, have: &Observed, facts: &Facts) -> Observed {
    let asked = desired.spec().map(|spec| {
        let desired = Desired::of(spec, &facts.defaults);
        let targets = Wanted::of(spec, &desired, &have.dedicated);
        Asked { desired, targets }
    });
    Observed {
        asked,
        ..have.clone()
    }
}

fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    super::plan::plan(desired, &asking(desired, have, facts), facts)
}

fn report(desired: DesiredState<'_>, have: &Observed, facts: &Facts) -> Report {
    super::report(desired, &asking(desired, have, facts), facts)
}

fn steps(spec: &LoadBalancerSpec, have: &Observed, facts: &Facts) -> Vec<Step> {
    plan(DesiredState::Present(spec), have, facts).unwrap()
}

/// The verbs and bodies of steps that change the one balancer. What is only written down does not count.
fn calls(steps: &[Step]) -> Vec<String> {
    let call = |step: &Step| match step {
        Step::Change { id: 42, change } => {
            let body = change.body().unwrap_or_default();
            Some(format!("{} {body}", change.verb()))
        }
        Step::Label(..) => None,
        other => Some(other.to_string()),
    };
    steps.iter().filter_map(call).collect()
}

/// The changes of steps that only change, and perhaps write that down.
fn changes(steps: Vec<Step>) -> Vec<Change> {
    let change = |step| match step {
        Step::Change { change, .. } => Some(change),
        Step::Label(..) => None,
        other => panic!("{other}"),
    };
    steps.into_iter().filter_map(change).collect()
}

/// Nothing is there, and a balancer of this type can be created.
fn nothing(wanted: BalancerType) -> Observed {
    Observed {
        type_change: BalancerTypeChange::To(wanted),
        ..Observed::default()
    }
}
