//! Load balancers with their targets.

use cloudkeel_local_cloud::simulated_cloud::wire::{Balancer, Machine};
use cloudkeel_local_cloud::{BalancerStats, Health, Phase, TargetStats};
use cloudkeel_page::{BalancerRow, Level, TargetRow};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;

use crate::traffic::Count;

/// The label of a balancer that names its Service.
const SERVICE: &str = "cloudkeel.dev/service";

/// A row for every Service that wants a balancer.
pub(super) fn rows(
    services: &[Service],
    balancers: &[Balancer],
    stats: &[BalancerStats],
    machines: &[Machine],
    count: &Count,
) -> Vec<BalancerRow> {
    let wants = |service: &&Service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    };
    let wanting = services.iter().filter(wants);
    wanting
        .map(|service| {
            let namespace = service.namespace().unwrap_or_default();
            let name = format!("{namespace}/{}", service.name_any());
            let balancer = balancers
                .iter()
                .find(|b| b.labels.get(SERVICE) == Some(&name));
            let stats = balancer.and_then(|b| stats.iter().find(|stats| stats.id == b.id));
            row(name, service, balancer, stats, machines, count)
        })
        .collect()
}

fn row(
    name: String,
    service: &Service,
    balancer: Option<&Balancer>,
    stats: Option<&BalancerStats>,
    machines: &[Machine],
    count: &Count,
) -> BalancerRow {
    let addresses = addresses(service);
    let (state, level) = if addresses.is_empty() {
        ("pending", Level::Neutral)
    } else {
        ("in service", Level::Good)
    };
    let listeners = balancer
        .into_iter()
        .flat_map(|b| &b.listeners)
        .map(|listener| {
            let protocol = listener.protocol.to_string().to_uppercase();
            format!("{protocol} {} → {}", listener.port, listener.target_port)
        });
    let problems = balancer.map(|b| b.problems.join("; "));
    let traffic = format!("{} requests answered, {} lost", count.answered, count.lost);
    let asked = count.answered + count.lost > 0;
    let targets = stats
        .into_iter()
        .flat_map(|s| &s.ports)
        .flat_map(|p| &p.targets);
    BalancerRow {
        service: name,
        state: state.to_owned(),
        level,
        cloud: "local".to_owned(),
        addresses,
        listeners: listeners.collect(),
        targets: targets.map(|target| target_row(target, machines)).collect(),
        more_targets: 0,
        traffic: asked.then_some(traffic),
        note: problems.filter(|problems| !problems.is_empty()),
    }
}

fn addresses(service: &Service) -> Vec<String> {
    let status = service.status.as_ref();
    let ingress = status.and_then(|status| status.load_balancer.as_ref()?.ingress.clone());
    let ingress = ingress.into_iter().flatten();
    ingress
        .filter_map(|ingress| ingress.ip.or(ingress.hostname))
        .collect()
}

fn target_row(target: &TargetStats, machines: &[Machine]) -> TargetRow {
    let machine = machines.iter().find(|m| m.has_address(target.address.ip()));
    let (state, level) = match (target.phase, target.health) {
        (Phase::Draining | Phase::Leaving, _) => ("draining", Level::Warning),
        (Phase::Serving, Health::Healthy) => ("healthy", Level::Good),
        (Phase::Serving, Health::Unhealthy) => ("unhealthy", Level::Bad),
        (Phase::Serving, Health::Unknown) => ("unknown", Level::Neutral),
    };
    TargetRow {
        node: machine.map_or_else(|| target.address.to_string(), |m| m.name.clone()),
        state: state.to_owned(),
        level,
        connections: Some(target.connections),
        open: Some(target.active),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use cloudkeel_local_cloud::simulated_cloud::wire::TargetAt;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_services_of_the_type_have_a_row_and_wait_for_their_address() {
        let service = |name: &str, kind: &str, ip: Option<&str>| {
            let ingress: Vec<_> = ip.map(|ip| json!({"ip": ip})).into_iter().collect();
            let service = json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"type": kind},
                "status": {"loadBalancer": {"ingress": ingress}},
            });
            serde_json::from_value::<Service>(service).unwrap()
        };
        let services = [
            service("a", "ClusterIP", None),
            service("b", "LoadBalancer", None),
            service("c", "LoadBalancer", Some("127.0.0.9")),
        ];
        let count = Count {
            answered: 0,
            lost: 0,
            complaint: None,
        };
        let rows = rows(&services, &[], &[], &[], &count);
        let shown: Vec<_> = rows
            .iter()
            .map(|r| (r.service.as_str(), r.state.as_str()))
            .collect();
        assert_eq!(
            shown,
            [("default/b", "pending"), ("default/c", "in service")]
        );
    }

    #[test]
    fn a_target_that_leaves_drains_whatever_its_health() {
        let target = |phase, health| TargetStats {
            at: TargetAt::Machine(1),
            address: SocketAddr::from(([127, 0, 0, 1], 80)),
            phase,
            health,
            complaint: None,
            active: 0,
            connections: 0,
            failures: 0,
            bytes_in: 0,
            bytes_out: 0,
        };
        for (phase, health, state) in [
            (Phase::Serving, Health::Healthy, "healthy"),
            (Phase::Serving, Health::Unhealthy, "unhealthy"),
            (Phase::Serving, Health::Unknown, "unknown"),
            (Phase::Draining, Health::Healthy, "draining"),
            (Phase::Leaving, Health::Unhealthy, "draining"),
        ] {
            assert_eq!(target_row(&target(phase, health), &[]).state, state);
        }
    }
}
