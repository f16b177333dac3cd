//! What is really in a project of OpenStack, in the kit's words.

use cloudkeel_api::{Algorithm, NodeAddress, ProxyProtocol, TargetState, VolumePlace};
use cloudkeel_provider_openstack::PREFIX;
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, ActualVolume,
    Resource, Samples, health_check, labels_of_tags, networks, under,
};
use serde_json::{Value, json};

const NEVER: &str = "00000000-0000-4000-8000-ffffffffffff";

const REGION: &str = "RegionOne";

/// Annotations with a value that is no default.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("lb-method", "LEAST_CONNECTIONS"),
    ("proxy-protocol", "v2"),
    ("health-monitor-delay", "7"),
];

/// What checks use of every OpenStack.
pub(crate) fn samples(password: &str) -> Samples {
    Samples {
        secrets: vec![password.to_owned()],
        outside_target: "192.0.2.9".parse().ok().map(NodeAddress::internal),
        annotations: under(PREFIX, &ANNOTATIONS),
        node_selector: Some("loadbalancer.openstack.org/node-selector"),
        share: Some(|id| {
            let key = "loadbalancer.openstack.org/load-balancer-id";
            [(key.to_owned(), id.to_owned())].into()
        }),
        ..Samples::default()
    }
}

/// What the APIs show of a project. Servers are in the order in which they were added; members have their `pool_id`.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) servers: Vec<Value>,
    pub(crate) ports: Vec<Value>,
    pub(crate) routers: Vec<Value>,
    pub(crate) floating_ips: Vec<Value>,
    /// Without those that every project has.
    pub(crate) security_groups: Vec<Value>,
    pub(crate) balancers: Vec<Value>,
    pub(crate) listeners: Vec<Value>,
    pub(crate) pools: Vec<Value>,
    pub(crate) members: Vec<Value>,
    pub(crate) monitors: Vec<Value>,
    pub(crate) volumes: Vec<Value>,
}

pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, field: &str) -> u16 {
    let number = value.get(field).and_then(Value::as_u64).unwrap_or_default();
    u16::try_from(number).unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

pub(crate) fn refers(value: &Value, field: &str, id: &str) -> bool {
    list(value, field).any(|item| text(item, "id") == id)
}

impl Snapshot {
    /// The addresses of a server, IPv4 first.
    pub(crate) fn ips_of(&self, server: &str) -> Vec<String> {
        let mut ports = self.ports.iter();
        let port = ports.find(|port| text(port, "device_id") == server);
        let ips = port.into_iter().flat_map(|port| list(port, "fixed_ips"));
        ips.map(|ip| text(ip, "ip_address").to_owned()).collect()
    }

    pub(crate) fn pools_of<'a>(&'a self, balancer: &'a str) -> impl Iterator<Item = &'a Value> {
        let pools = self.pools.iter();
        pools.filter(move |pool| refers(pool, "loadbalancers", balancer))
    }

    pub(crate) fn listeners_of<'a>(&'a self, balancer: &'a str) -> impl Iterator<Item = &'a Value> {
        let listeners = self.listeners.iter();
        listeners.filter(move |listener| refers(listener, "loadbalancers", balancer))
    }

    pub(crate) fn members_of<'a>(&'a self, pool: &'a str) -> impl Iterator<Item = &'a Value> {
        let members = self.members.iter();
        members.filter(move |member| text(member, "pool_id") == pool)
    }

    pub(crate) fn state(&self) -> ActualState {
        let routes = self.routers.iter().flat_map(|r| list(r, "routes"));
        let route = |route: &Value| {
            Some(ActualRoute {
                destination: text(route, "destination").parse().ok()?,
                hop: text(route, "nexthop").to_owned(),
            })
        };
        let volume = |volume: &Value| ActualVolume {
            source: "csi",
            content: json!({"driver": "cinder.csi.openstack.org", "volumeHandle": text(volume, "id")}),
            missing: json!({"driver": "cinder.csi.openstack.org", "volumeHandle": NEVER}),
            place: VolumePlace {
                zones: vec!["az-1".to_owned()],
                region: Some(REGION.to_owned()),
            },
        };
        ActualState {
            instances: self.servers.iter().map(|s| self.instance(s)).collect(),
            balancers: self.balancers.iter().map(|b| self.balancer(b)).collect(),
            routes: routes.filter_map(route).collect(),
            volumes: self.volumes.iter().map(volume).collect(),
            others: self.leftovers(),
        }
    }

    /// What belongs to no load balancer, and is not the user's.
    fn leftovers(&self) -> Vec<Resource> {
        let is_left_over = |part: &Value| {
            let mut balancers = self.balancers.iter();
            !balancers.any(|balancer| refers(part, "loadbalancers", text(balancer, "id")))
        };
        let is_loose = |ip: &Value| {
            let mut balancers = self.balancers.iter();
            text(ip, "description") != "mine"
                && !balancers.any(|b| text(b, "vip_port_id") == text(ip, "port_id"))
        };
        let all = |kind, of: &[Value], is: &dyn Fn(&Value) -> bool| {
            let found = of.iter().filter(|part| is(part));
            Resource::all(kind, found.map(|part| text(part, "id")))
        };
        [
            all("address", &self.floating_ips, &is_loose),
            all("listener", &self.listeners, &is_left_over),
            all("pool", &self.pools, &is_left_over),
            all("security group", &self.security_groups, &|_| true),
        ]
        .concat()
    }

    fn instance(&self, server: &Value) -> ActualInstance {
        let (id, name) = (text(server, "id"), text(server, "name"));
        let private = self.ips_of(id).into_iter();
        let private = private
            .filter_map(|ip| ip.parse().ok())
            .map(NodeAddress::internal);
        let access = text(server, "accessIPv4").parse().into_iter();
        let addresses = private.chain(access.map(NodeAddress::external));
        let flavor = server.pointer("/flavor/original_name");
        let flavor = flavor.and_then(Value::as_str).unwrap_or_default();
        let zone = text(server, "OS-EXT-AZ:availability_zone");
        let mut actual = ActualInstance::new(format!("openstack:///{id}"), name, addresses)
            .of_type(flavor)
            .at(zone, REGION);
        // The Go CCM gives a Node no address of the kind Hostname.
        actual.node.addresses.remove(0);
        actual
    }

    pub(crate) fn balancer(&self, have: &Value) -> ActualBalancer {
        let id = text(have, "id");
        let mut actual = ActualBalancer::new(id, text(have, "name"));
        let port = text(have, "vip_port_id");
        let mut floating = self.floating_ips.iter();
        let floating = floating.find(|ip| text(ip, "port_id") == port);
        let address = floating.map_or(text(have, "vip_address"), |ip| {
            text(ip, "floating_ip_address")
        });
        actual.addresses = address.parse().into_iter().collect();
        actual.internal = floating.is_none();
        let tags: Vec<_> = list(have, "tags").filter_map(Value::as_str).collect();
        actual.labels = labels_of_tags(&tags, '=');
        for listener in self.listeners_of(id) {
            let mut pools = self.pools.iter();
            let pool = pools.find(|pool| refers(pool, "listeners", text(listener, "id")));
            self.add_listener(&mut actual, listener, pool.unwrap_or(&Value::Null));
        }
        actual
    }

    fn add_listener(&self, actual: &mut ActualBalancer, listener: &Value, pool: &Value) {
        let members: Vec<_> = self.members_of(text(pool, "id")).collect();
        let first = members.first().copied().unwrap_or(&Value::Null);
        let mut monitors = self.monitors.iter();
        let monitor = monitors.find(|m| refers(m, "pools", text(pool, "id")));
        // A Service without Nodes has no members that would show its node port.
        let port = number(listener, "protocol_port");
        let node_port = match number(first, "protocol_port") {
            0 => 30_000 + port % 1_000,
            node_port => node_port,
        };
        let monitor_port = match number(first, "monitor_port") {
            0 => node_port,
            monitor_port => monitor_port,
        };
        let check = monitor.map_or_else(cloudkeel_api::HealthCheck::tcp, |monitor| {
            let numbers = ["delay", "timeout", "max_retries_down"]
                .map(|field| u32::from(number(monitor, field)));
            let kind = text(monitor, "type").trim_end_matches("-CONNECT");
            health_check(kind, text(monitor, "url_path"), monitor_port, numbers)
        });
        let protocol = text(listener, "protocol");
        let listener_of = ActualListener::of(protocol, (port, node_port), check);
        actual.listeners.push(listener_of);
        for member in members {
            let drains = member.get("weight") == Some(&json!(0));
            let state = if drains {
                TargetState::Draining
            } else {
                TargetState::Serving
            };
            let address = text(member, "address").to_owned();
            actual.targets.insert(address, state);
        }
        actual.algorithm = match text(pool, "lb_algorithm") {
            "LEAST_CONNECTIONS" => Some(Algorithm::LeastConnections),
            "SOURCE_IP" => Some(Algorithm::SourceIp),
            _ => Some(Algorithm::RoundRobin),
        };
        actual.proxy_protocol = match text(pool, "protocol") {
            "PROXY" => Some(ProxyProtocol::V1),
            "PROXYV2" => Some(ProxyProtocol::V2),
            _ => None,
        };
        let ranges = list(listener, "allowed_cidrs").filter_map(Value::as_str);
        let ranges = ranges.filter(|range| *range != "0.0.0.0/0");
        actual.source_ranges.extend(networks(ranges));
    }
}
