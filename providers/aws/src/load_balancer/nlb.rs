//! Network load balancers: what is asked for. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{Listener, Protocol, ServiceRef};
use cloudkeel_toolkit::{hex, joined_networks, joined_ports};
use ipnet::IpNet;
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::Facts;
use super::desired::{ANYWHERE, Desired, LIMITS, TRAFFIC_PORT, is_shared, probe_of};
use super::groups::{ROOM, Rules, mtu_rule, port_rule};
use super::observe::Observed;
use super::targets::TargetType;
use crate::wire::network::NetworkCheck;
use crate::wire::{Rule, Subnet};

/// Descriptions of the rules by which Nodes let balancers in.
const CLIENT: &str = "kubernetes.io/rule/nlb/client=";
const HEALTH: &str = "kubernetes.io/rule/nlb/health=";
const MTU: &str = "kubernetes.io/rule/nlb/mtu";

/// One port of a Service: a listener and its target group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) port: u16,
    /// `TCP`, `UDP` or `TLS`.
    pub(super) protocol: &'static str,
    pub(super) certificate: Option<String>,
    pub(super) tls_policy: Option<String>,
    pub(super) group_name: String,
    pub(super) target_type: TargetType,
    pub(super) node_port: u16,
    /// What targets speak.
    pub(super) traffic_protocol: &'static str,
    pub(super) check: NetworkCheck,
    /// Only if it is asked for by the neutral option: the Go CCM never sends it.
    pub(super) timeout: Option<u64>,
}

/// The first eight letters and digits.
fn short(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect()
}

/// As much of a digest as names have room for.
fn short_hex(algorithm: &'static Algorithm, texts: &[&str]) -> String {
    let digest = digest(algorithm, texts.concat().as_bytes());
    hex(digest.as_ref().get(..5).unwrap_or_default())
}

/// What the names of a Service's target groups and security group begin with.
pub(super) fn prefix(service: &ServiceRef) -> String {
    format!(
        "k8s-{}-{}-",
        short(&service.namespace),
        short(&service.name)
    )
}

/// The name of a balancer's own security group, which has the name of the cluster in it, not the ID of its tags.
pub(super) fn group_name(service: &ServiceRef, cluster_name: &str) -> String {
    let hash = short_hex(
        &SHA256,
        &[
            cluster_name,
            &service.name,
            &service.namespace,
            &service.uid,
        ],
    );
    format!("{}{hash}", prefix(service))
}

/// The same of a Service that is gone. A balancer's name has the UID without its last digit, so that may be any.
pub(super) fn group_names(service: &ServiceRef, cluster_name: &str) -> Vec<String> {
    if service.uid.len() != 31 {
        return vec![group_name(service, cluster_name)];
    }
    let digits = (0..16).map(|last| format!("{}{last:x}", service.uid));
    let services = digits.map(|mut uid| {
        for place in [20, 16, 12, 8] {
            uid.insert(place, '-');
        }
        let service = service.clone();
        ServiceRef { uid, ..service }
    });
    services
        .map(|service| group_name(&service, cluster_name))
        .collect()
}

/// Every port of a Service.
pub(super) fn mappings(
    desired: &Desired,
    service: &ServiceRef,
    target_type: TargetType,
    facts: &Facts,
) -> Vec<Mapping> {
    let mapping = |port: &Listener| mapping(port, desired, service, target_type, facts);
    desired.ports.iter().map(mapping).collect()
}

fn mapping(
    port: &Listener,
    desired: &Desired,
    service: &ServiceRef,
    target_type: TargetType,
    facts: &Facts,
) -> Mapping {
    let plain = if port.protocol == Protocol::Udp {
        "UDP"
    } else {
        "TCP"
    };
    let is_tls = desired.is_tls(port) && plain == "TCP";
    let is_secure = is_tls && desired.tls.backend_protocol.as_deref() == Some("ssl");
    let traffic_protocol = if is_secure { "TLS" } else { plain };
    let node_port = port.node_port.unwrap_or_default();
    let check = check(port, desired, facts);
    let hash = short_hex(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[
            &facts.cluster.id,
            &service.namespace,
            &service.name,
            &port.port.to_string(),
            &node_port.to_string(),
            traffic_protocol,
            target_type.as_str(),
            &check.protocol,
            &check.interval.to_string(),
        ],
    );
    Mapping {
        port: port.port,
        protocol: if is_tls { "TLS" } else { plain },
        certificate: desired.tls.certificate.clone().filter(|_| is_tls),
        tls_policy: desired.tls.policy.clone().filter(|_| is_tls),
        group_name: format!("{}{hash}", prefix(service)),
        target_type,
        node_port,
        traffic_protocol,
        check,
        timeout: LIMITS.timeout(&port.health_check),
    }
}

fn check(port: &Listener, desired: &Desired, facts: &Facts) -> NetworkCheck {
    let neutral = &port.health_check;
    let (probe, path) = probe_of(neutral);
    // The shared endpoint is asked whatever annotations say about protocol, port and path.
    let asked = Some(&desired.check).filter(|_| !is_shared(facts, desired));
    let protocol = asked.and_then(|asked| asked.protocol.as_deref());
    let protocol = protocol.map_or(probe.to_owned(), str::to_uppercase);
    let port = match asked.and_then(|asked| asked.port.as_deref()) {
        None => neutral.port,
        Some(text) => text.parse().ok(),
    };
    let port = port.map_or(TRAFFIC_PORT.to_owned(), |port| port.to_string());
    let is_http = protocol != "TCP";
    let path = asked.and_then(|asked| asked.path.as_deref()).or(path);
    let path = path.unwrap_or("/").to_owned();
    let (interval, threshold) = if desired.is_local { (10, 2) } else { (30, 3) };
    let neutral_interval = LIMITS.interval(neutral).and_then(|n| u32::try_from(n).ok());
    let all = &desired.check;
    NetworkCheck {
        protocol,
        port,
        path: is_http.then_some(path),
        interval: all.interval.or(neutral_interval).unwrap_or(interval),
        healthy: all
            .healthy
            .or(neutral.healthy_threshold)
            .unwrap_or(threshold),
        unhealthy: all
            .unhealthy
            .or_else(|| LIMITS.retries(neutral))
            .unwrap_or(threshold),
    }
}

/// Attributes of the balancer. The details of a log count only while there is one.
pub(super) fn attributes(desired: &Desired) -> BTreeMap<String, String> {
    let log = &desired.attributes.access_log;
    let mut wanted = vec![
        (
            "load_balancing.cross_zone.enabled",
            desired.attributes.cross_zone.to_string(),
        ),
        ("access_logs.s3.enabled", log.is_enabled.to_string()),
    ];
    if log.is_enabled {
        wanted.extend(
            log.bucket
                .clone()
                .map(|bucket| ("access_logs.s3.bucket", bucket)),
        );
        wanted.extend(
            log.prefix
                .clone()
                .map(|prefix| ("access_logs.s3.prefix", prefix)),
        );
    }
    let wanted = wanted.into_iter();
    wanted.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Who connects to Nodes. Targets by address see the addresses of the balancer, unless clients' are kept.
pub(super) fn clients_of_nodes(
    desired: &Desired,
    target_type: TargetType,
    subnets: &[Subnet],
) -> Vec<IpNet> {
    let kept = desired.group_attributes.get("preserve_client_ip.enabled");
    let is_kept = kept.is_some_and(|kept| kept == "true");
    if target_type == TargetType::Instance || is_kept {
        return desired.ranges.clone();
    }
    networks(subnets).collect()
}

fn networks(subnets: &[Subnet]) -> impl Iterator<Item = IpNet> {
    let cidrs = subnets.iter().map(|subnet| &subnet.cidr);
    cidrs.filter_map(|cidr| cidr.parse().ok())
}

/// The rules by which a group of Nodes lets a balancer in: clients on the node ports, and checks from its subnets. If
/// there is no room for each, ports and networks that touch each other share one.
pub(super) fn node_rules(
    balancer: &str,
    mappings: &[Mapping],
    clients: &[IpNet],
    subnets: &[Subnet],
    room: usize,
) -> Rules {
    let health_port = |mapping: &Mapping| mapping.check.port.parse().unwrap_or(mapping.node_port);
    let ports = |of: &dyn Fn(&Mapping) -> u16| -> Vec<(u16, u16)> {
        let ports: BTreeSet<_> = mappings.iter().map(of).collect();
        ports.into_iter().map(|port| (port, port)).collect()
    };
    let is_udp = mappings.iter().any(|mapping| mapping.protocol == "UDP");
    let protocol = if is_udp { "udp" } else { "tcp" };
    let mut opened = Opened {
        balancer,
        protocol,
        client_ports: ports(&|mapping| mapping.node_port),
        health_ports: ports(&health_port),
        clients: clients.to_vec(),
        checkers: networks(subnets).collect(),
    };
    let each = opened.rules();
    if each.len() <= room {
        return each;
    }
    opened.client_ports = joined_ports(opened.client_ports);
    opened.health_ports = joined_ports(opened.health_ports);
    opened.clients = joined_networks(&opened.clients);
    opened.checkers = joined_networks(&opened.checkers);
    opened.rules()
}

/// What Nodes are opened for.
struct Opened<'a> {
    balancer: &'a str,
    protocol: &'a str,
    client_ports: Vec<(u16, u16)>,
    health_ports: Vec<(u16, u16)>,
    clients: Vec<IpNet>,
    checkers: Vec<IpNet>,
}

impl Opened<'_> {
    fn rules(&self) -> Rules {
        let mut rules = Rules::new();
        if self.client_ports.is_empty() {
            return rules;
        }
        let balancer = self.balancer;
        let is_anywhere = matches!(self.clients.as_slice(), [one] if one.to_string() == ANYWHERE);
        let is_covered =
            is_anywhere && self.protocol == "tcp" && self.health_ports == self.client_ports;
        for network in self.checkers.iter().filter(|_| !is_covered) {
            for (from, to) in &self.health_ports {
                let rule = port_rule("tcp", *from, *to, network);
                rules.insert(rule, Some(format!("{HEALTH}{balancer}")));
            }
        }
        for range in &self.clients {
            for (from, to) in &self.client_ports {
                let rule = port_rule(self.protocol, *from, *to, range);
                rules.insert(rule, Some(format!("{CLIENT}{balancer}")));
            }
            rules.insert(mtu_rule(range), Some(MTU.to_owned()));
        }
        rules
    }
}

/// Whether a rule in a group of Nodes may go with this balancer. One about the MTU is shared by all whose clients come from
/// the same network, one about checks by all that check the same port: it goes with the last of them, whatever name it has.
pub(super) fn is_rule_of(
    balancer: &str,
    have: &Observed,
    rules: &Rules,
) -> impl Fn(&Rule, Option<&str>) -> bool {
    let others = rules.iter().filter_map(|(rule, description)| {
        let other = description.as_deref()?.strip_prefix(CLIENT)?;
        (other != balancer).then(|| rule.source.clone())
    });
    let others: BTreeSet<_> = others.collect();
    let own = have.network.iter().flat_map(|network| &network.groups);
    let own: BTreeSet<_> = own.map(|group| group.group.checked_port()).collect();
    let (by_others, balancer) = (have.checked_by_others.clone(), balancer.to_owned());
    move |rule, description| match description {
        Some(MTU) => !others.contains(&rule.source),
        Some(text) => match text.strip_prefix(HEALTH) {
            Some(name) => {
                let covers = |port: &u16| rule.from == Some(i32::from(*port));
                let by_others = by_others.as_ref();
                let is_used = by_others.map(|ports| ports.iter().any(covers));
                let is_own = name == balancer || (is_used.is_some() && own.iter().any(covers));
                is_own && is_used != Some(true)
            }
            None => text.strip_prefix(CLIENT) == Some(balancer.as_str()),
        },
        None => false,
    }
}

/// Whether Nodes let a balancer check a port that it does not check any more, which others may.
pub(super) fn has_old_check(
    balancer: &str,
    mappings: &[Mapping],
    subnets: &[Subnet],
    rules: &Rules,
) -> bool {
    let wanted = node_rules(balancer, mappings, &[], subnets, ROOM);
    let about = format!("{HEALTH}{balancer}");
    let mut own = rules
        .iter()
        .filter(|(_, text)| text.as_ref() == Some(&about));
    own.any(|(rule, _)| !wanted.contains_key(rule))
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{BalancerRef, ClusterIdentity};

    use super::*;
    use crate::config::BalancerType;

    #[test]
    fn names_are_those_of_the_go_ccm() {
        let hash = short_hex(
            &SHA1_FOR_LEGACY_USE_ONLY,
            &[
                "c1", "default", "web", "80", "30080", "TCP", "instance", "TCP", "30",
            ],
        );
        let service = |name: &str| ServiceRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: "12345678-1234-1234-1234-123456789abc".to_owned(),
        };
        let name = format!("{}{hash}", prefix(&service("web")));
        assert_eq!(name, "k8s-default-web-2e7f1b24e2");
        let mut service = service("my-service");
        let name = group_name(&service, "test-cluster");
        assert_eq!(name, "k8s-default-myservic-b7cb8b02f0");
        let names = group_names(&service, "test-cluster");
        assert_eq!(names, std::slice::from_ref(&name));
        service.uid = service.default_balancer_name()[1..].to_owned();
        let names = group_names(&service, "test-cluster");
        assert!(names.contains(&name) && names.len() == 16, "{names:?}");
    }

    #[test]
    fn a_rule_that_balancers_share_goes_with_the_last_of_them() {
        let range: IpNet = ANYWHERE.parse().unwrap();
        let client = |balancer: &str, port| {
            (
                port_rule("tcp", port, port, &range),
                Some(format!("{CLIENT}{balancer}")),
            )
        };
        let service = ServiceRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "u-1".to_owned(),
        };
        let cluster = ClusterIdentity {
            name: "kubernetes".to_owned(),
            uid: None,
            pod_cidrs: vec![],
        };
        let observed = Observed::new(&BalancerRef::of(cluster, service), BalancerType::Nlb);
        let rules = Rules::from([
            client("a1", 30_080),
            (mtu_rule(&range), Some(MTU.to_owned())),
        ]);
        assert!(is_rule_of("a1", &observed, &rules)(
            &mtu_rule(&range),
            Some(MTU)
        ));
        let two: Rules = rules.into_iter().chain([client("a2", 30_081)]).collect();
        let is_ours = is_rule_of("a1", &observed, &two);
        assert!(!is_ours(&mtu_rule(&range), Some(MTU)));
        let ours = two
            .iter()
            .filter(|(rule, about)| is_ours(rule, about.as_deref()));
        assert_eq!(ours.count(), 1);
        assert!(!is_ours(&mtu_rule(&range), None));
    }
}
