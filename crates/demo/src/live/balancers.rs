//! Load balancers with their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_local_cloud::simulated_cloud::wire::{Balancer, Machine};
use cloudkeel_local_cloud::{BalancerStats, Health, Phase, PortStats, TargetStats};
use cloudkeel_page::{BalancerRow, Level, ServiceFacts, TargetRow, Unhealthy};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;

use crate::managers::{BalancerStatus, Status};
use crate::traffic::Count;

/// What the cloud shows of load balancers.
pub(super) struct Shown<'a> {
    /// Its name in the configuration.
    pub(super) cloud: &'a str,
    /// The label of a balancer with the UID of its Service.
    pub(super) service_uid_label: &'a str,
    pub(super) balancers: &'a [Balancer],
    pub(super) stats: &'a [BalancerStats],
    pub(super) machines: &'a [Machine],
}

/// A row for every Service that needs a load balancer, or of which the leader still reports one.
pub(super) fn rows(
    services: &[Service],
    leader: Option<&Status>,
    shown: &Shown<'_>,
    count: &Count,
) -> Vec<BalancerRow> {
    let reports = leader.into_iter().flat_map(|status| &status.balancers);
    let reports = reports.map(|report| (report.service.clone(), (None, Some(report))));
    let mut rows: BTreeMap<String, (Option<&Service>, Option<&BalancerStatus>)> = reports.collect();
    for service in services {
        let name = key_of(service);
        match rows.get_mut(&name) {
            Some((known, _)) => *known = Some(service),
            None if wants_balancer(service) => {
                rows.insert(name, (Some(service), None));
            }
            None => {}
        }
    }
    let unserved = leader
        .into_iter()
        .flat_map(|status| &status.unserved_services);
    let unserved: BTreeSet<&String> = unserved.collect();
    rows.into_iter()
        .map(|(name, (service, report))| {
            let facts = Facts {
                service,
                report,
                is_served: !unserved.contains(&name),
            };
            row(name, &facts, shown, count)
        })
        .collect()
}

fn key_of(service: &Service) -> String {
    let namespace = service.namespace().unwrap_or_default();
    format!("{namespace}/{}", service.name_any())
}

fn wants_balancer(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

/// What the cluster and the leader report about a Service.
struct Facts<'a> {
    service: Option<&'a Service>,
    report: Option<&'a BalancerStatus>,
    /// Whether a cloud of the leader serves its class.
    is_served: bool,
}

fn row(name: String, of: &Facts<'_>, shown: &Shown<'_>, count: &Count) -> BalancerRow {
    let (service, report) = (of.service, of.report);
    let uid = service.and_then(|service| service.metadata.uid.as_ref());
    let is_its = |balancer: &&Balancer| balancer.labels.get(shown.service_uid_label) == uid;
    let balancer = shown
        .balancers
        .iter()
        .find(is_its)
        .filter(|_| uid.is_some());
    let stats = balancer.and_then(|b| shown.stats.iter().find(|stats| stats.id == b.id));
    let addresses = service.map(addresses).unwrap_or_default();
    let targets = stats.map(|stats| target_rows(&stats.ports, shown.machines));
    let is_kept = |service: &Service| {
        wants_balancer(service) && service.metadata.deletion_timestamp.is_none()
    };
    let facts = ServiceFacts {
        is_wanted: service.is_some_and(is_kept),
        is_served: of.is_served,
        has_address: !addresses.is_empty(),
        sync: report.map(|report| report.state),
        targets: targets.as_deref().map(|targets| (targets, 0)),
        unhealthy: Unhealthy::None,
    };
    let (state, level) = facts.state();
    let listeners = balancer.into_iter().flat_map(|b| &b.listeners);
    let listeners = listeners.map(|listener| {
        let protocol = listener.protocol.to_string().to_uppercase();
        format!("{protocol} {} → {}", listener.port, listener.target_port)
    });
    BalancerRow {
        state: state.to_owned(),
        level,
        cloud: shown.cloud.to_owned(),
        listeners: listeners.collect(),
        targets: targets.unwrap_or_default(),
        more_targets: 0,
        // Each target shows its own.
        health: None,
        traffic: service.and_then(|service| traffic(service, &addresses, count)),
        note: note(report, balancer),
        service: name,
        addresses,
    }
}

/// Why it is not in its desired state: what the leader and the cloud report.
fn note(report: Option<&BalancerStatus>, balancer: Option<&Balancer>) -> Option<String> {
    let reported = report.and_then(|report| report.waits_for.clone());
    let problems = balancer
        .into_iter()
        .flat_map(|b| b.problems.iter().cloned());
    let all: Vec<String> = reported.into_iter().chain(problems).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What the demo's clients counted, if they use this Service.
fn traffic(service: &Service, addresses: &[String], count: &Count) -> Option<String> {
    let at = count.at?;
    let is_here = |address: &String| address.parse::<IpAddr>() == Ok(at.ip());
    let ports = service.spec.as_ref()?.ports.iter().flatten();
    let is_asked = addresses.iter().any(is_here)
        && ports
            .into_iter()
            .any(|port| port.port == i32::from(at.port()));
    is_asked.then(|| format!("{} requests answered, {} lost", count.answered, count.lost))
}

fn addresses(service: &Service) -> Vec<String> {
    let status = service.status.as_ref();
    let ingress = status.and_then(|status| status.load_balancer.as_ref()?.ingress.clone());
    let ingress = ingress.into_iter().flatten();
    ingress
        .filter_map(|ingress| ingress.ip.or(ingress.hostname))
        .collect()
}

/// A row for every target of every port, by Node. Where there are several ports, each row names its own.
fn target_rows(ports: &[PortStats], machines: &[Machine]) -> Vec<TargetRow> {
    let mut rows = Vec::new();
    for port in ports {
        let protocol = port.protocol.to_string().to_uppercase();
        let listener = (ports.len() > 1).then(|| format!("{protocol} {}", port.port));
        rows.extend(port.targets.iter().map(|target| TargetRow {
            listener: listener.clone(),
            ..target_row(target, machines)
        }));
    }
    rows.sort_by(|one, other| one.node.cmp(&other.node));
    rows
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
        listener: None,
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

    const NOTHING: Shown<'_> = Shown {
        cloud: "local",
        service_uid_label: "cloudkeel.dev/service-uid",
        balancers: &[],
        stats: &[],
        machines: &[],
    };

    fn service(name: &str, kind: &str, ip: Option<&str>) -> Service {
        let ingress: Vec<_> = ip.map(|ip| json!({"ip": ip})).into_iter().collect();
        let service = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": kind, "ports": [{"port": 80}, {"port": 443}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        });
        serde_json::from_value::<Service>(service).unwrap()
    }

    fn count(at: Option<&str>) -> Count {
        Count {
            at: at.map(|at| at.parse().unwrap()),
            answered: 7,
            lost: 1,
            last_error: None,
        }
    }

    fn leader(reports: &[(&str, &str, Option<&str>)]) -> Status {
        let reports = reports.iter().map(|(service, state, why)| {
            json!({"service": service, "state": state, "waitsFor": why, "targets": []})
        });
        let balancers: Vec<_> = reports.collect();
        serde_json::from_value(json!({"leading": true, "balancers": balancers})).unwrap()
    }

    #[test]
    fn services_of_the_type_have_a_row_and_say_what_the_leader_reports_of_them() {
        let services = [
            service("a", "ClusterIP", None),
            service("b", "LoadBalancer", None),
            service("c", "LoadBalancer", Some("127.0.0.9")),
            service("d", "LoadBalancer", None),
            service("e", "LoadBalancer", Some("127.0.0.8")),
            service("f", "LoadBalancer", None),
        ];
        let leader = leader(&[
            ("default/d", "failing", Some("cloudkeel.dev/lb-ip: \"x\"")),
            ("default/e", "failing", Some("503")),
            ("default/gone", "waiting", None),
        ]);
        let leader = Status {
            unserved_services: vec!["default/f".to_owned()],
            ..leader
        };
        let rows = rows(&services, Some(&leader), &NOTHING, &count(None));
        let shown: Vec<_> = rows
            .iter()
            .map(|r| (r.service.as_str(), r.state.as_str(), r.note.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("default/b", "pending", None),
                ("default/c", "in service", None),
                (
                    "default/d",
                    "sync fails",
                    Some("cloudkeel.dev/lb-ip: \"x\"")
                ),
                ("default/e", "in service, sync fails", Some("503")),
                ("default/f", "not served here", None),
                ("default/gone", "is being removed", None),
            ]
        );
    }

    #[test]
    fn requests_are_counted_only_where_they_go() {
        let services = [
            service("asked", "LoadBalancer", Some("127.0.0.9")),
            service("other", "LoadBalancer", Some("127.0.0.8")),
            service("none", "LoadBalancer", None),
        ];
        for (at, expected) in [
            (None, &[][..]),
            (Some("127.0.0.9:80"), &["default/asked"]),
            (Some("127.0.0.9:443"), &["default/asked"]),
            (Some("127.0.0.9:8080"), &[]),
        ] {
            let rows = rows(&services, None, &NOTHING, &count(at));
            let counted = rows.iter().filter(|row| row.traffic.is_some());
            let counted: Vec<_> = counted.map(|row| row.service.as_str()).collect();
            assert_eq!(counted, expected, "{at:?}");
        }
    }

    #[test]
    fn every_port_has_its_own_row_for_a_node() {
        let port = |protocol: &str, port: u16, ips: [u8; 2]| {
            let target = |ip: u8| {
                json!({"machine": 1, "address": format!("127.0.0.{ip}:80"), "phase": "serving",
                    "health": "healthy", "complaint": null, "active": 0, "connections": 0,
                    "failures": 0, "bytesIn": 0, "bytesOut": 0})
            };
            let port = json!({"protocol": protocol, "port": port, "frontends": [], "denied": 0,
                "unserved": 0, "targets": ips.map(target)});
            serde_json::from_value::<PortStats>(port).unwrap()
        };
        let ports = [port("tcp", 80, [1, 2]), port("udp", 53, [1, 2])];
        let keys = |rows: &[TargetRow]| -> Vec<_> {
            let keys = rows
                .iter()
                .map(|row| (row.node.clone(), row.listener.clone()));
            keys.map(|(node, listener)| (node, listener.unwrap_or_default()))
                .collect()
        };
        let both = target_rows(&ports, &[]);
        let key = |node: &str, listener: &str| (node.to_owned(), listener.to_owned());
        assert_eq!(
            keys(&both),
            [
                key("127.0.0.1:80", "TCP 80"),
                key("127.0.0.1:80", "UDP 53"),
                key("127.0.0.2:80", "TCP 80"),
                key("127.0.0.2:80", "UDP 53"),
            ]
        );
        let [first, _] = ports;
        let one = target_rows(&[first], &[]);
        assert_eq!(
            keys(&one),
            [key("127.0.0.1:80", ""), key("127.0.0.2:80", "")]
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
