//! An emulated DigitalOcean under the kit.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, NodeAddress, Protocol, ProviderContext, ProxyProtocol, TargetState,
};
use cloudkeel_emulator_digitalocean::{
    DigitalOceanCloud, Droplet, DropletStatus, ForwardingRule, InProcess, LoadBalancer, Settings,
};
use cloudkeel_provider_digitalocean::{
    BalancerType, Config, DigitalOceanProvider, FirewallSettings, Wiring,
};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualState, Change, ELSEWHERE, FaultInjector,
    Resource, Samples, Stop, TestCloud, health_check,
};

/// Annotations with a value that is no default.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("service.beta.kubernetes.io/do-loadbalancer-name", "front"),
    ("service.beta.kubernetes.io/do-loadbalancer-size-unit", "3"),
    (
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-check-interval-seconds",
        "7",
    ),
];

struct DigitalOceanTestCloud {
    cloud: DigitalOceanCloud,
    config: Config,
}

pub(crate) fn new(default_type: BalancerType) -> Box<dyn TestCloud> {
    let mut settings = Settings::default();
    settings.latency.fixed = Duration::from_millis(8);
    settings.balancer_duration = Duration::from_secs(1);
    // Hundreds of retries in one hour are the kit's, not the provider's.
    (settings.rate_limit, settings.burst_limit) = (None, None);
    let cloud = DigitalOceanCloud::new(settings);
    cloud.add_project(ELSEWHERE);
    cloud.add_droplet_in(ELSEWHERE, "theirs");
    let mut config = Config::new(DigitalOceanCloud::TOKEN);
    config.balancer_type = default_type;
    InProcess::URL.clone_into(&mut config.endpoint);
    config.region = Some("nyc3".to_owned());
    config.cluster_id = Some("conformance".to_owned());
    config.firewall = Some(FirewallSettings {
        name: "public-access".to_owned(),
        tags: vec!["workers".to_owned()],
    });
    Box::new(DigitalOceanTestCloud { cloud, config })
}

/// The youngest droplet of this name. None has zero.
fn id_among(droplets: &[Droplet], name: &str) -> u64 {
    let mut droplets = droplets.iter().rev();
    let found = droplets.find(|droplet| droplet.name == name);
    found.map_or(0, |droplet| droplet.id)
}

fn actual(droplet: &Droplet) -> ActualInstance {
    let private = droplet
        .private_ipv4
        .map(|ip| NodeAddress::internal(ip.into()));
    let v6 = droplet.public_ipv6.map(IpAddr::from);
    let public = droplet.public_ipv4.map(IpAddr::from).into_iter().chain(v6);
    let addresses = private.into_iter().chain(public.map(NodeAddress::external));
    let id = format!("digitalocean://{}", droplet.id);
    ActualInstance {
        region: Some(droplet.region.slug.to_owned()),
        ..ActualInstance::new(id, &droplet.name, addresses).of_type(&droplet.size_slug)
    }
}

fn actual_balancer(have: &LoadBalancer) -> ActualBalancer {
    let check = &have.health_check;
    let numbers = [
        check.check_interval_seconds,
        check.response_timeout_seconds,
        check.unhealthy_threshold,
    ];
    let check = health_check(&check.protocol, &check.path, check.port, numbers);
    let listener = |rule: &ForwardingRule| ActualListener {
        protocol: if rule.entry_protocol == "udp" {
            Protocol::Udp
        } else {
            Protocol::Tcp
        },
        ..ActualListener::tcp(rule.entry_port, rule.target_port, check.clone())
    };
    let targets = have
        .droplet_ids
        .iter()
        .map(|id| (id.to_string(), TargetState::Serving));
    let ranges = have
        .firewall
        .allow
        .iter()
        .filter_map(|rule| rule.strip_prefix("cidr:")?.parse().ok());
    let label = |tag: &String| {
        tag.split_once(':')
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    ActualBalancer {
        listeners: have.forwarding_rules.iter().map(listener).collect(),
        targets: targets.collect(),
        addresses: have.addresses(),
        internal: have.network == "INTERNAL",
        source_ranges: ranges.collect(),
        proxy_protocol: have.enable_proxy_protocol.then_some(ProxyProtocol::V1),
        size: Some(have.size_unit.to_string()),
        labels: have.tags.iter().filter_map(label).collect(),
        passes_through: have.kind == "REGIONAL_NETWORK",
        ..ActualBalancer::new(&have.id, &have.name)
    }
}

#[async_trait]
impl TestCloud for DigitalOceanTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let wiring = Wiring::over(self.cloud.transport());
        let provider = DigitalOceanProvider::connect(&self.config, &context, wiring);
        Ok(Arc::new(provider.await?))
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.cloud
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let cloud = &self.cloud;
        let id_of = |name: &str| id_among(&cloud.droplets(), name);
        match change {
            Change::AddInstance(name) => _ = cloud.add_droplet(name),
            Change::DestroyInstance(name) => cloud.destroy_droplet(id_of(name)),
            Change::SwitchOff(name) => {
                cloud.change_droplet(id_of(name), |droplet| droplet.status = DropletStatus::Off);
            }
            Change::Modify(name) => {
                cloud.change_droplet(id_of(name), |droplet| droplet.public_ipv6 = None);
            }
            Change::AddBalancer(name, owner) => {
                let owner = owner.labels("service", "cluster");
                let tag = owner.get("service").zip(owner.get("cluster"));
                let tag = tag
                    .map(|(service, cluster)| format!("cloudkeel:{service}:{cluster}:other:web"));
                cloud.add_load_balancer(name, &tag.into_iter().collect::<Vec<_>>());
            }
            Change::Damage(id) | Change::AddListener(id, _) | Change::AddTarget(id, _) => {
                let lead = |rule: &mut ForwardingRule, entry, target| {
                    (rule.entry_port, rule.target_port) = (entry, target);
                };
                let droplets = cloud.droplets();
                let id_of = |name: &str| id_among(&droplets, name);
                cloud.change_load_balancer(id, |it| {
                    change.edit_lists(&mut it.forwarding_rules, &mut it.droplet_ids, lead, id_of);
                });
            }
            Change::AddLabel(id, (key, value)) => {
                cloud.change_load_balancer(id, |balancer| {
                    balancer.tags.push(format!("{key}:{value}"));
                });
            }
            Change::RemoveLabels(id) => {
                cloud.change_load_balancer(id, |balancer| balancer.tags.clear());
            }
            Change::BalancerQuota(count) => cloud.change_settings(|now| now.load_balancers = count),
            Change::SlowJobs(duration) => {
                cloud.change_settings(|now| now.balancer_duration = duration);
            }
            change => return Err(change.not_playable()),
        }
        Ok(())
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let (droplets, balancers) = (self.cloud.droplets(), self.cloud.load_balancers());
        let is_left = |tag: &String| !balancers.iter().any(|balancer| balancer.tags.contains(tag));
        let tags = self.cloud.tags().into_iter();
        let tags = tags.filter(|tag| tag.starts_with("cloudkeel:") && is_left(tag));
        let firewalls = self.cloud.firewalls();
        let rules = firewalls
            .iter()
            .flat_map(|firewall| &firewall.inbound_rules);
        let rules = Resource::all("firewall rule", rules);
        Ok(ActualState {
            instances: droplets.iter().map(actual).collect(),
            balancers: balancers.iter().map(actual_balancer).collect(),
            others: Resource::all("owner tag", tags)
                .into_iter()
                .chain(rules)
                .collect(),
            ..ActualState::default()
        })
    }

    fn samples(&self) -> Samples {
        Samples {
            secrets: vec![DigitalOceanCloud::TOKEN.to_owned()],
            page_size: Some(200),
            sizes: Some(["1", "2"]),
            address: Some(Ipv4Addr::new(192, 0, 2, 44).into()),
            annotations: ANNOTATIONS.to_vec(),
            ..Samples::default()
        }
    }
}
