//! An emulated Hetzner Cloud under the kit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Algorithm, BuildError, CloudProvider, NodeAddress, ProviderContext, ProxyProtocol,
};
use cloudkeel_emulator_hetzner::{
    HetznerCloud, InProcess, LoadBalancer, RobotServer, Route, Server, ServerSpec, ServerStatus,
    Service, Settings, Target,
};
use cloudkeel_provider_hetzner::{AddressFamily, Config, HetznerProvider, PREFIX, Wiring};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, Change, ELSEWHERE,
    FaultInjector, OrNotPlayable as _, Resource, Samples, Stop, TestCloud, health_check, under,
};

/// The name of the private network.
const NETWORK: &str = "kube";

/// The address of a dedicated server that is no Node.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// Annotations with a value that is no default.
const ANNOTATIONS: [(&str, &str); 5] = [
    ("algorithm-type", "least_connections"),
    ("type", "lb21"),
    ("uses-proxyprotocol", "true"),
    ("health-check-interval", "7s"),
    ("name", "front"),
];

pub(crate) struct HetznerTestCloud {
    pub(crate) cloud: HetznerCloud,
    pub(crate) config: Config,
    network: u64,
}

pub(crate) fn new() -> Result<Box<dyn TestCloud>, Stop> {
    Ok(Box::new(HetznerTestCloud::new()?))
}

impl HetznerTestCloud {
    pub(crate) fn new() -> Result<Self, Stop> {
        let mut settings = Settings::default();
        settings.latency.fixed = Duration::from_millis(8);
        settings.action_duration = Duration::from_secs(1);
        // Hundreds of retries in one hour are the kit's, not the provider's.
        settings.rate_limit = None;
        settings.robot_limit.max_request = u32::MAX;
        let cloud = HetznerCloud::new(settings);
        cloud.add_project(ELSEWHERE);
        let theirs = ServerSpec::named("theirs");
        cloud.add_server_in(ELSEWHERE, theirs).or_not_playable()?;
        let range = "10.0.0.0/16".parse().or_not_playable()?;
        let network = cloud.add_network(NETWORK, range).or_not_playable()?.id;
        cloud.add_robot_server(RobotServer::new(7, "metal", OUTSIDE));
        let mut config = Config::new(HetznerCloud::TOKEN);
        config.endpoint = format!("{}/v1", InProcess::URL);
        config.robot.endpoint = format!("{}/robot", InProcess::URL);
        config.attached_check = false;
        config.network = Some(NETWORK.to_owned());
        config.address_family = AddressFamily::DualStack;
        config.load_balancers.location = Some("fsn1".to_owned());
        config.load_balancers.load_balancer_type = Some("lb11".to_owned());
        Ok(Self {
            cloud,
            config,
            network,
        })
    }

    fn actual(&self, server: &Server) -> ActualInstance {
        let private = server.in_network(self.network);
        let location = server.location.name;
        ActualInstance::new(format!("hcloud://{}", server.id), &server.name, [])
            .external(server.ipv4)
            .external(server.ipv6.map(|net| first_of(net.addr())))
            .internal(private.map(|net| net.ip))
            .of_type(server.server_type.name)
            .at(format!("{location}-dc14"), location)
            .labelled("instance.hetzner.cloud/provided-by", "cloud")
    }
}

/// The ID of a server. None has zero.
fn id_among(servers: &[Server], name: &str) -> u64 {
    let mut servers = servers.iter();
    servers.find(|s| s.name == name).map_or(0, |s| s.id)
}

/// The address of a server in its own IPv6 network.
pub(crate) fn first_of(net: Ipv6Addr) -> IpAddr {
    Ipv6Addr::from(u128::from(net) | 1).into()
}

const fn ports(service: &mut Service) -> (&mut u16, &mut u16) {
    (&mut service.listen_port, &mut service.destination_port)
}

fn actual_listener(service: &Service) -> ActualListener {
    let check = &service.health_check;
    let path = check.http.as_ref().map_or("", |http| &http.path);
    let numbers = [check.interval, check.timeout, check.retries];
    let check = health_check(&check.protocol, path, check.port, numbers);
    ActualListener::tcp(service.listen_port, service.destination_port, check)
}

fn actual_balancer(have: &LoadBalancer) -> ActualBalancer {
    let targets = have.targets.iter().map(|target| &target.to);
    let is_proxied = have.services.iter().any(|service| service.proxyprotocol);
    ActualBalancer {
        listeners: have.services.iter().map(actual_listener).collect(),
        addresses: have.addresses(),
        internal: !have.public_interface,
        algorithm: Some(match have.algorithm.as_str() {
            "least_connections" => Algorithm::LeastConnections,
            _ => Algorithm::RoundRobin,
        }),
        proxy_protocol: is_proxied.then_some(ProxyProtocol::V2),
        size: have.type_name().map(str::to_owned),
        labels: have.labels.clone(),
        ..ActualBalancer::new(have.id.to_string(), &have.name).serving(targets)
    }
}

#[async_trait]
impl TestCloud for HetznerTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let wiring = Wiring::over(self.cloud.transport());
        let provider = HetznerProvider::connect(&self.config, &context, wiring);
        Ok(Arc::new(provider.await?))
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.cloud
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let (cloud, network) = (&self.cloud, self.network);
        let server = |name: &str| id_among(&cloud.servers(), name);
        let edit = |id: &str, edit: &dyn Fn(&mut LoadBalancer)| {
            cloud.change_load_balancer(id.parse().unwrap_or_default(), edit)
        };
        let set = |change: &dyn Fn(&mut Settings)| {
            cloud.change_settings(change);
            Ok(())
        };
        match change {
            Change::AddInstance(name) => {
                let spec = ServerSpec::named(name).in_network(network);
                cloud.add_server(spec).map(drop)
            }
            Change::DestroyInstance(name) => cloud.destroy_server(server(name)),
            Change::SwitchOff(name) => cloud.set_status(server(name), ServerStatus::Off),
            Change::Modify(name) => cloud.change_server(server(name), |s| s.private_net.clear()),
            Change::AddBalancer(name, owner) => {
                let labels = owner.labels("hcloud-ccm/service-uid", "cloudkeel.dev/cluster-uid");
                let added = cloud.add_load_balancer(name, labels);
                self.wait(Duration::from_secs(10)).await;
                added
            }
            Change::Protect(id) => edit(id, &|balancer| balancer.protected = true),
            Change::Damage(id) | Change::AddListener(id, _) | Change::AddTarget(id, _) => {
                let servers = cloud.servers();
                let target = |name: &str| Target::server(id_among(&servers, name));
                edit(id, &|it| {
                    let (services, targets) = (&mut it.services, &mut it.targets);
                    change.edit_lists(services, targets, ports, target);
                })
            }
            Change::AddLabel(id, (key, value)) => edit(id, &|balancer| {
                balancer.labels.insert(key.to_owned(), value.to_owned());
            }),
            Change::RemoveLabels(id) => edit(id, &|balancer| balancer.labels.clear()),
            Change::AddRoute(destination) => {
                let route = Route {
                    destination: destination.to_string().parse().or_not_playable()?,
                    gateway: [10, 0, 99, 99].into(),
                };
                cloud.change_network(network, |network| network.routes.push(route))
            }
            Change::BalancerQuota(count) => set(&|now| now.limits.load_balancers = count),
            Change::SlowJobs(duration) => set(&|now| now.action_duration = duration),
            change => return Err(change.not_playable()),
        }
        .or_not_playable()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let networks = self.cloud.networks().into_iter();
        let ours = networks.filter(|network| network.id == self.network);
        let route = |route: Route| ActualRoute {
            destination: route.destination.into(),
            hop: route.gateway.to_string(),
        };
        let (servers, balancers) = (self.cloud.servers(), self.cloud.load_balancers());
        let certificates = self.cloud.certificates();
        Ok(ActualState {
            instances: servers.iter().map(|server| self.actual(server)).collect(),
            balancers: balancers.iter().map(actual_balancer).collect(),
            routes: ours.flat_map(|network| network.routes).map(route).collect(),
            others: Resource::all("certificate", certificates.iter().map(|c| c.id)),
            ..ActualState::default()
        })
    }

    fn samples(&self) -> Samples {
        Samples {
            secrets: vec![HetznerCloud::TOKEN.to_owned()],
            page_size: Some(50),
            sizes: Some(["lb11", "lb21"]),
            outside_target: Some(NodeAddress::external(OUTSIDE.into())),
            annotations: under(PREFIX, &ANNOTATIONS),
            node_selector: Some("load-balancer.hetzner.cloud/node-selector"),
            ..Samples::default()
        }
    }
}
