//! An emulated Hetzner Cloud under the kit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use cloudkeel_api::{Algorithm, ConfigSource, NodeAddress, ProviderFactory, ProxyProtocol};
use cloudkeel_emulator_hetzner::{
    HetznerCloud, InProcess, LoadBalancer, RobotServer, Route, Server, ServerSpec, ServerStatus,
    Service, Settings, Target,
};
use cloudkeel_provider_hetzner::{HetznerFactory, PREFIX, Wiring};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, Change, ELSEWHERE,
    EmulatedCloud, OrNotPlayable as _, Resource, Samples, Stop, health_check, under,
};
use serde_json::{Value, json};

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

/// The cloud, and the settings of a provider that sees it, with these of Robot.
pub(crate) fn emulated(robot: &Value) -> Result<(HetznerCloud, ConfigSource), Stop> {
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
    cloud.add_network(NETWORK, range).or_not_playable()?;
    let config = json!({
        "token": HetznerCloud::TOKEN, "endpoint": format!("{}/v1", InProcess::URL), "network": NETWORK,
        "attachedCheck": false, "addressFamily": "dualstack",
        "loadBalancers": {"location": "fsn1", "type": "lb11"}, "robot": robot,
    });
    Ok((cloud, ConfigSource::Own(config)))
}

pub(crate) fn factory(cloud: &HetznerCloud) -> Box<dyn ProviderFactory> {
    let wiring = Wiring::over(cloud.transport());
    Box::new(HetznerFactory::wired(wiring))
}

pub(crate) fn new() -> Result<EmulatedCloud<HetznerCloud>, Stop> {
    let (cloud, config) = emulated(&json!({"enabled": false}))?;
    cloud.add_robot_server(RobotServer::new(7, "metal", OUTSIDE));
    Ok(EmulatedCloud {
        factory: factory(&cloud),
        cloud,
        config,
        change,
        state,
        samples: Samples {
            secrets: vec![HetznerCloud::TOKEN.to_owned()],
            page_size: Some(50),
            sizes: Some(["lb11", "lb21"]),
            outside_target: Some(NodeAddress::external(OUTSIDE.into())),
            annotations: under(PREFIX, &ANNOTATIONS),
            node_selector: Some("load-balancer.hetzner.cloud/node-selector"),
            ..Samples::default()
        },
    })
}

/// The private network. None has zero.
fn network(cloud: &HetznerCloud) -> u64 {
    let mut all = cloud.networks().into_iter();
    let ours = all.find(|network| network.name == NETWORK);
    ours.map_or(0, |network| network.id)
}

fn actual(server: &Server, network: u64) -> ActualInstance {
    let private = server.in_network(network);
    let location = server.location.name;
    ActualInstance::new(format!("hcloud://{}", server.id), &server.name, [])
        .external(server.ipv4)
        .external(server.ipv6.map(|net| first_of(net.addr())))
        .internal(private.map(|net| net.ip))
        .of_type(server.server_type.name)
        .at(format!("{location}-dc14"), location)
        .labelled("instance.hetzner.cloud/provided-by", "cloud")
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

fn change(cloud: &HetznerCloud, change: Change<'_>, id: &str) -> Result<(), Stop> {
    let (server, network) = (id.parse().unwrap_or_default(), network(cloud));
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
        Change::DestroyInstance(_) => cloud.destroy_server(server),
        Change::SwitchOff(_) => cloud.set_status(server, ServerStatus::Off),
        Change::Modify(_) => cloud.change_server(server, |it| it.private_net.clear()),
        Change::AddBalancer(name, owner) => {
            let labels = owner.labels("hcloud-ccm/service-uid", "cloudkeel.dev/cluster-uid");
            cloud.add_load_balancer(name, labels)
        }
        Change::Protect(id) => edit(id, &|it| it.protected = true),
        Change::AddRoute(destination) => {
            let route = Route {
                destination: destination.to_string().parse().or_not_playable()?,
                gateway: [10, 0, 99, 99].into(),
            };
            cloud.change_network(network, |it| it.routes.push(route))
        }
        Change::BalancerQuota(count) => set(&|now| now.limits.load_balancers = count),
        Change::SlowJobs(duration) => set(&|now| now.action_duration = duration),
        change => edit(change.edited_balancer()?, &|it| {
            let target = Target::server(server);
            change.edit_lists(&mut it.services, &mut it.targets, ports, target);
            change.edit_labels(&mut it.labels);
        }),
    }
    .or_not_playable()
}

fn state(cloud: &HetznerCloud) -> ActualState {
    let network = network(cloud);
    let networks = cloud.networks().into_iter().filter(|it| it.id == network);
    let route = |route: Route| ActualRoute {
        destination: route.destination.into(),
        hop: route.gateway.to_string(),
    };
    let (servers, balancers) = (cloud.servers(), cloud.load_balancers());
    let certificates = cloud.certificates();
    ActualState {
        instances: servers.iter().map(|it| actual(it, network)).collect(),
        balancers: balancers.iter().map(actual_balancer).collect(),
        routes: networks.flat_map(|it| it.routes).map(route).collect(),
        others: Resource::all("certificate", certificates.iter().map(|it| it.id)),
        ..ActualState::default()
    }
}
