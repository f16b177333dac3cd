//! An emulated OpenStack under the kit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Algorithm, BuildError, CloudProvider, ConfigSource, NodeAddress, Protocol, ProviderContext,
    ProviderFactory as _, ProviderInput, ProxyProtocol, TargetState, VolumePlace,
};
use cloudkeel_emulator_openstack::emulation::{CallTotals, CommonFault, FaultTiming};
use cloudkeel_emulator_openstack::{InProcess, Kind, OpenStackCloud, Settings};
use cloudkeel_provider_openstack::{CLUSTER_UID, OpenStackFactory, SERVICE_UID, Wiring};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, ActualVolume, Change,
    ELSEWHERE, FaultInjector, Resource, Samples, Stop, TestCloud, health_check,
};
use serde_json::{Value, json};

/// A floating IP that belongs to the project and is free.
const FREE_IP: &str = "203.0.113.77";

const NEVER: &str = "00000000-0000-4000-8000-ffffffffffff";

/// Annotations with a value that is no default.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("loadbalancer.openstack.org/lb-method", "LEAST_CONNECTIONS"),
    ("loadbalancer.openstack.org/proxy-protocol", "v2"),
    ("loadbalancer.openstack.org/health-monitor-delay", "7"),
];

struct OpenStackTestCloud {
    cloud: OpenStackCloud,
    calls: Calls,
}

/// The emulator, without faults that OpenStack cannot have: its lists announce no total.
struct Calls(OpenStackCloud);

impl FaultInjector for Calls {
    fn call_totals(&self) -> CallTotals {
        self.0.call_totals()
    }

    fn reset_calls(&self) {
        FaultInjector::reset_calls(&self.0);
    }

    fn inject(&self, when: FaultTiming, fault: CommonFault) -> bool {
        let is_playable = !matches!(
            fault,
            CommonFault::TruncatedPage | CommonFault::LostNextPage
        );
        is_playable && self.0.inject(when, fault)
    }

    fn clear_faults(&self) {
        self.0.clear_faults();
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other clouds cannot always be made"
)]
pub(crate) fn new() -> Result<Box<dyn TestCloud>, Stop> {
    let mut settings = Settings::default();
    settings.latency.fixed = Duration::from_millis(8);
    settings.job_duration = Duration::from_millis(1_500);
    settings.page_size = 50;
    let cloud = OpenStackCloud::new(settings);
    cloud.add_project(ELSEWHERE);
    cloud.add_server_in(ELSEWHERE, "theirs");
    cloud.add(
        Kind::FloatingIp,
        json!({"floating_ip_address": FREE_IP, "port_id": null, "description": "mine"}),
    );
    let calls = Calls(cloud.clone());
    Ok(Box::new(OpenStackTestCloud { cloud, calls }))
}

/// A `cloud.conf` as an operator writes it.
fn cloud_conf() -> String {
    format!(
        "[Global]\nauth-url={}/identity\nusername={}\npassword={}\ntenant-id={}\ndomain-name=Default\nregion={}\n\
         [LoadBalancer]\nsubnet-id={}\nfloating-network-id={}\ncreate-monitor=true\n\
         [Route]\nrouter-id={}\n",
        InProcess::URL,
        OpenStackCloud::USER,
        OpenStackCloud::PASSWORD,
        OpenStackCloud::PROJECT,
        OpenStackCloud::REGION,
        OpenStackCloud::SUBNET,
        OpenStackCloud::EXTERNAL,
        OpenStackCloud::ROUTER,
    )
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, field: &str) -> u16 {
    let number = value.get(field).and_then(Value::as_u64).unwrap_or_default();
    u16::try_from(number).unwrap_or_default()
}

fn refers(value: &Value, field: &str, id: &str) -> bool {
    let list = value.get(field).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|item| text(item, "id") == id))
}

impl OpenStackTestCloud {
    fn id_of(&self, name: &str) -> String {
        let servers = self.cloud.all(Kind::Server).into_iter();
        let mut named = servers.filter(|server| text(server, "name") == name);
        named
            .next_back()
            .map(|server| text(&server, "id").to_owned())
            .unwrap_or_default()
    }

    /// The addresses of a server, IPv4 first.
    fn ips_of(&self, server: &str) -> Vec<String> {
        let ports = self.cloud.all(Kind::Port);
        let port = ports.iter().find(|port| text(port, "device_id") == server);
        let ips = port
            .and_then(|port| port.get("fixed_ips")?.as_array())
            .into_iter()
            .flatten();
        ips.map(|ip| text(ip, "ip_address").to_owned()).collect()
    }

    fn instances(&self) -> Vec<ActualInstance> {
        let mut servers = self.cloud.all(Kind::Server);
        servers.sort_by_key(|server| server.get("order").and_then(Value::as_u64));
        let actual = |server: &Value| {
            let (id, name) = (text(server, "id"), text(server, "name"));
            let private = self
                .ips_of(id)
                .into_iter()
                .filter_map(|ip| ip.parse().ok())
                .map(NodeAddress::internal);
            let access = text(server, "accessIPv4")
                .parse()
                .into_iter()
                .map(NodeAddress::external);
            let mut actual =
                ActualInstance::new(format!("openstack:///{id}"), name, private.chain(access))
                    .of_type(OpenStackCloud::FLAVOR)
                    .at(OpenStackCloud::ZONE, OpenStackCloud::REGION);
            // The Go CCM gives a Node no address of the kind Hostname.
            actual.node.addresses.remove(0);
            actual
        };
        servers.iter().map(actual).collect()
    }

    fn balancer(&self, have: &Value) -> ActualBalancer {
        let id = text(have, "id");
        let mut actual = ActualBalancer::new(id, text(have, "name"));
        let port = text(have, "vip_port_id");
        let floating = self.cloud.all(Kind::FloatingIp);
        let floating = floating.iter().find(|ip| text(ip, "port_id") == port);
        let address = floating.map_or(text(have, "vip_address"), |ip| {
            text(ip, "floating_ip_address")
        });
        actual.addresses = address.parse().into_iter().collect();
        actual.internal = floating.is_none();
        actual.labels = tags_of(have);
        let pools = self.cloud.all(Kind::Pool);
        for listener in self
            .cloud
            .all(Kind::Listener)
            .iter()
            .filter(|l| refers(l, "loadbalancers", id))
        {
            let pool = pools
                .iter()
                .find(|pool| refers(pool, "listeners", text(listener, "id")));
            self.add_listener(&mut actual, listener, pool.unwrap_or(&Value::Null));
        }
        actual
    }

    fn add_listener(&self, actual: &mut ActualBalancer, listener: &Value, pool: &Value) {
        let members = self.cloud.all(Kind::Member);
        let members: Vec<_> = members
            .iter()
            .filter(|m| text(m, "pool_id") == text(pool, "id"))
            .collect();
        let first = members.first().copied().unwrap_or(&Value::Null);
        let monitors = self.cloud.all(Kind::Monitor);
        let monitor = monitors
            .iter()
            .find(|m| refers(m, "pools", text(pool, "id")));
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
        actual.listeners.push(ActualListener {
            protocol: match text(listener, "protocol") {
                "UDP" => Protocol::Udp,
                "SCTP" => Protocol::Sctp,
                _ => Protocol::Tcp,
            },
            ..ActualListener::tcp(port, node_port, check)
        });
        for member in members {
            let drains = member.get("weight") == Some(&json!(0));
            let state = if drains {
                TargetState::Draining
            } else {
                TargetState::Serving
            };
            actual
                .targets
                .insert(text(member, "address").to_owned(), state);
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
        let ranges = listener
            .get("allowed_cidrs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let ranges = ranges
            .filter_map(Value::as_str)
            .filter(|range| *range != "0.0.0.0/0");
        let ranges: BTreeSet<ipnet::IpNet> =
            ranges.filter_map(|range| range.parse().ok()).collect();
        actual.source_ranges.extend(ranges);
    }

    fn damage(&self, id: &str) {
        let listeners = self.cloud.all(Kind::Listener);
        let mut listeners = listeners
            .iter()
            .filter(|listener| refers(listener, "loadbalancers", id));
        let first = listeners
            .next()
            .map(|listener| text(listener, "id").to_owned())
            .unwrap_or_default();
        for pool in self
            .cloud
            .all(Kind::Pool)
            .iter()
            .filter(|pool| refers(pool, "loadbalancers", id))
        {
            let pool_id = text(pool, "id");
            for member in self
                .cloud
                .all(Kind::Member)
                .iter()
                .filter(|m| text(m, "pool_id") == pool_id)
            {
                self.cloud.remove(Kind::Member, text(member, "id"));
            }
            if refers(pool, "listeners", &first) {
                self.cloud.remove(Kind::Pool, pool_id);
            }
        }
        self.cloud.remove(Kind::Listener, &first);
    }

    fn add_listener_by_hand(&self, id: &str, port: u16) {
        let cloud = &self.cloud;

        let listener = json!({
            "loadbalancers": [{"id": id}], "protocol": "TCP", "protocol_port": port, "tags": [], "name": "by hand",
        });
        let listener = cloud.add(Kind::Listener, listener);
        let pool = json!({
            "loadbalancers": [{"id": id}], "listeners": [{"id": listener}], "protocol": "TCP",
            "lb_algorithm": "ROUND_ROBIN", "name": "by hand",
        });
        let pool = cloud.add(Kind::Pool, pool);
        let ips = self.balancer(&json!({"id": id})).targets;
        for (ip, _) in ips {
            cloud.add(
                Kind::Member,
                json!({"pool_id": pool, "address": ip, "protocol_port": 31_999}),
            );
        }
    }

    fn add_tag(&self, id: &str, tag: &str) {
        let cloud = &self.cloud;

        let all = cloud.all(Kind::LoadBalancer);
        let found = all.iter().find(|balancer| text(balancer, "id") == id);
        let mut tags = found
            .and_then(|b| b.get("tags")?.as_array().cloned())
            .unwrap_or_default();
        tags.push(json!(tag));
        cloud.set(Kind::LoadBalancer, id, &json!({"tags": tags}));
    }

    fn add_target(&self, id: &str, name: &str) {
        let ip = self.ips_of(&self.id_of(name)).into_iter().next();
        for pool in self
            .cloud
            .all(Kind::Pool)
            .iter()
            .filter(|pool| refers(pool, "loadbalancers", id))
        {
            let member = json!({"pool_id": text(pool, "id"), "address": ip, "protocol_port": 31_000, "name": name});
            self.cloud.add(Kind::Member, member);
        }
    }
}

fn tags_of(balancer: &Value) -> BTreeMap<String, String> {
    let tags = balancer
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let tags = tags.filter_map(Value::as_str);
    let pair = |tag: &str| {
        tag.split_once('=')
            .map_or((tag.to_owned(), String::new()), |(k, v)| {
                (k.to_owned(), v.to_owned())
            })
    };
    tags.map(pair).collect()
}

#[async_trait]
impl TestCloud for OpenStackTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let input = ProviderInput {
            config: ConfigSource::File {
                path: "cloud.conf".into(),
                text: cloud_conf(),
            },
            ..ProviderInput::default()
        };
        let factory = OpenStackFactory::wired(Wiring::over(self.cloud.transport()));
        factory.build(input, context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.calls
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let cloud = &self.cloud;
        match change {
            Change::AddInstance(name) => drop(cloud.add_server(name)),
            Change::DestroyInstance(name) => cloud.destroy_server(&self.id_of(name)),
            Change::SwitchOff(name) => cloud.set(
                Kind::Server,
                &self.id_of(name),
                &json!({"status": "SHUTOFF"}),
            ),
            Change::Modify(name) => {
                cloud.set(
                    Kind::Server,
                    &self.id_of(name),
                    &json!({"accessIPv4": "198.51.100.7"}),
                );
            }
            Change::AddBalancer(name, owner) => {
                let labels = owner.labels(SERVICE_UID, CLUSTER_UID);
                let tags: Vec<_> = labels
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                cloud.add_load_balancer(name, &tags);
            }
            Change::Damage(id) => self.damage(id),
            Change::AddListener(id, port) => self.add_listener_by_hand(id, port),
            Change::AddTarget(id, name) => self.add_target(id, name),
            Change::AddLabel(id, (key, value)) => self.add_tag(id, &format!("{key}={value}")),
            Change::RemoveLabels(id) => cloud.set(Kind::LoadBalancer, id, &json!({"tags": []})),
            Change::AddRoute(destination) => {
                let router = cloud.all(Kind::Router).pop().unwrap_or_default();
                let mut routes = router
                    .get("routes")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                routes
                    .push(json!({"destination": destination.to_string(), "nexthop": "10.6.99.99"}));
                cloud.set(
                    Kind::Router,
                    OpenStackCloud::ROUTER,
                    &json!({"routes": routes}),
                );
            }
            Change::AddVolume => {
                cloud.add(
                    Kind::Volume,
                    json!({"availability_zone": "az 1", "name": "disk"}),
                );
            }
            Change::BalancerQuota(count) => cloud.change_settings(|now| now.load_balancers = count),
            Change::SlowJobs(duration) => cloud.change_settings(|now| now.job_duration = duration),
            change => return Err(change.not_playable()),
        }
        Ok(())
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let routers = self.cloud.all(Kind::Router);
        let routes = routers
            .iter()
            .filter_map(|router| router.get("routes")?.as_array())
            .flatten();
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
                region: Some(OpenStackCloud::REGION.to_owned()),
            },
        };
        let balancers = self.cloud.all(Kind::LoadBalancer);
        let is_left_over = |part: &Value| {
            !balancers
                .iter()
                .any(|balancer| refers(part, "loadbalancers", text(balancer, "id")))
        };
        let is_loose = |ip: &Value| {
            let port = text(ip, "port_id");
            text(ip, "description") != "mine"
                && !balancers.iter().any(|b| text(b, "vip_port_id") == port)
        };
        let ids = |kind, is: &dyn Fn(&Value) -> bool| -> Vec<String> {
            let all = self.cloud.all(kind).into_iter().filter(|part| is(part));
            all.map(|part| text(&part, "id").to_owned()).collect()
        };
        let mut others = Resource::all("address", ids(Kind::FloatingIp, &is_loose).iter());
        others.extend(Resource::all(
            "listener",
            ids(Kind::Listener, &is_left_over).iter(),
        ));
        others.extend(Resource::all("pool", ids(Kind::Pool, &is_left_over).iter()));
        others.extend(Resource::all(
            "security group",
            ids(Kind::SecurityGroup, &|_| true).iter(),
        ));
        Ok(ActualState {
            instances: self.instances(),
            balancers: balancers
                .iter()
                .map(|balancer| self.balancer(balancer))
                .collect(),
            routes: routes.filter_map(route).collect(),
            volumes: self.cloud.all(Kind::Volume).iter().map(volume).collect(),
            others,
        })
    }

    fn samples(&self) -> Samples {
        Samples {
            secrets: vec![OpenStackCloud::PASSWORD.to_owned()],
            page_size: Some(50),
            address: FREE_IP.parse().ok(),
            outside_target: "192.0.2.9".parse().ok().map(NodeAddress::internal),
            annotations: ANNOTATIONS.to_vec(),
            node_selector: Some("loadbalancer.openstack.org/node-selector"),
            share: Some(|id| {
                [(
                    "loadbalancer.openstack.org/load-balancer-id".to_owned(),
                    id.to_owned(),
                )]
                .into()
            }),
            ..Samples::default()
        }
    }
}
