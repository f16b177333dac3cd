//! An emulated DigitalOcean under the kit.

use std::net::Ipv4Addr;
use std::time::Duration;

use cloudkeel_api::{ConfigSource, ProxyProtocol};
use cloudkeel_emulator_digitalocean::{
    DigitalOceanCloud, Droplet, DropletStatus, ForwardingRule, InProcess, LoadBalancer, Settings,
};
use cloudkeel_provider_digitalocean::{DigitalOceanFactory, PREFIX, Wiring};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualState, Change, ELSEWHERE, EmulatedCloud,
    Resource, Samples, Stop, health_check, labels_of_tags, networks, under,
};
use serde_json::json;

/// Annotations with a value that is no default.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("name", "front"),
    ("size-unit", "3"),
    ("healthcheck-check-interval-seconds", "7"),
];

/// What owner tags begin with.
const TAG: &str = "cloudkeel:";

/// One whose load balancers are of this type by default.
pub(crate) fn new(default_type: &str) -> EmulatedCloud<DigitalOceanCloud> {
    let mut settings = Settings::default();
    settings.latency.fixed = Duration::from_millis(8);
    settings.balancer_duration = Duration::from_secs(1);
    // Hundreds of retries in one hour are the kit's, not the provider's.
    (settings.rate_limit, settings.burst_limit) = (None, None);
    let cloud = DigitalOceanCloud::new(settings);
    cloud.add_project(ELSEWHERE);
    cloud.add_droplet_in(ELSEWHERE, "theirs");
    let wiring = Wiring::over(cloud.transport());
    EmulatedCloud {
        cloud,
        factory: Box::new(DigitalOceanFactory::wired(wiring)),
        config: ConfigSource::Own(json!({
            "token": DigitalOceanCloud::TOKEN, "endpoint": InProcess::URL, "region": "nyc3",
            "clusterId": "conformance", "loadBalancers": {"type": default_type},
            "firewall": {"name": "public-access", "tags": ["workers"]},
        })),
        change,
        state,
        samples: Samples {
            secrets: vec![DigitalOceanCloud::TOKEN.to_owned()],
            page_size: Some(200),
            sizes: Some(["1", "2"]),
            address: Some(Ipv4Addr::new(192, 0, 2, 44).into()),
            annotations: under(PREFIX, &ANNOTATIONS),
            ..Samples::default()
        },
    }
}

fn actual(droplet: &Droplet) -> ActualInstance {
    let id = format!("digitalocean://{}", droplet.id);
    ActualInstance::new(id, &droplet.name, [])
        .internal(droplet.private_ipv4)
        .external(droplet.public_ipv4)
        .external(droplet.public_ipv6)
        .of_type(&droplet.size_slug)
        .in_region(droplet.region.slug)
}

fn actual_balancer(have: &LoadBalancer) -> ActualBalancer {
    let check = &have.health_check;
    let numbers = [
        check.check_interval_seconds,
        check.response_timeout_seconds,
        check.unhealthy_threshold,
    ];
    let check = health_check(&check.protocol, &check.path, check.port, numbers);
    let listener = |it: &ForwardingRule| {
        let ports = (it.entry_port, it.target_port);
        ActualListener::of(&it.entry_protocol, ports, check.clone())
    };
    let ranges = have.firewall.allow.iter();
    let ranges = ranges.filter_map(|rule| rule.strip_prefix("cidr:"));
    ActualBalancer {
        listeners: have.forwarding_rules.iter().map(listener).collect(),
        addresses: have.addresses(),
        internal: have.network == "INTERNAL",
        source_ranges: networks(ranges),
        proxy_protocol: have.enable_proxy_protocol.then_some(ProxyProtocol::V1),
        size: Some(have.size_unit.to_string()),
        labels: labels_of_tags(&have.tags, ':'),
        passes_through: have.kind == "REGIONAL_NETWORK",
        ..ActualBalancer::new(&have.id, &have.name).serving(&have.droplet_ids)
    }
}

const fn ports(rule: &mut ForwardingRule) -> (&mut u16, &mut u16) {
    (&mut rule.entry_port, &mut rule.target_port)
}

fn change(cloud: &DigitalOceanCloud, change: Change<'_>, id: &str) -> Result<(), Stop> {
    let id = id.parse().unwrap_or_default();
    let droplet = |edit: fn(&mut Droplet)| _ = cloud.change_droplet(id, edit);
    match change {
        Change::AddInstance(name) => _ = cloud.add_droplet(name),
        Change::DestroyInstance(_) => cloud.destroy_droplet(id),
        Change::SwitchOff(_) => droplet(|it| it.status = DropletStatus::Off),
        Change::Modify(_) => droplet(|it| it.public_ipv6 = None),
        Change::AddBalancer(name, owner) => _ = cloud.add_load_balancer(name, &owner.tags(TAG)),
        Change::BalancerQuota(count) => cloud.change_settings(|now| now.load_balancers = count),
        Change::SlowJobs(time) => cloud.change_settings(|now| now.balancer_duration = time),
        change => {
            cloud.change_load_balancer(change.edited_balancer()?, |it| {
                let (rules, targets) = (&mut it.forwarding_rules, &mut it.droplet_ids);
                change.edit_lists(rules, targets, ports, id);
                change.edit_tags(&mut it.tags, ':');
            });
        }
    }
    Ok(())
}

fn state(cloud: &DigitalOceanCloud) -> ActualState {
    let (balancers, firewalls) = (cloud.load_balancers(), cloud.firewalls());
    let is_used = |tag: &String| balancers.iter().any(|it| it.tags.contains(tag));
    let tags = cloud.tags().into_iter().filter(|tag| tag.starts_with(TAG));
    let tags = Resource::all("owner tag", tags.filter(|tag| !is_used(tag)));
    let rules = firewalls.iter().flat_map(|it| &it.inbound_rules);
    ActualState {
        instances: cloud.droplets().iter().map(actual).collect(),
        balancers: balancers.iter().map(actual_balancer).collect(),
        others: [tags, Resource::all("firewall rule", rules)].concat(),
        ..ActualState::default()
    }
}
