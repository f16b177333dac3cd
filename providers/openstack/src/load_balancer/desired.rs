//! What a Service asks for: its annotations, else its class, else the configured defaults, else the neutral options.
//! Pure.

mod ports;

use std::collections::BTreeSet;
use std::net::IpAddr;

use cloudkeel_api::{CloudError, IpFamily, Listener as Port, LoadBalancerSpec};
use cloudkeel_toolkit::{AnnotationReader, HasListenerKey, ListenerKey, Unread};
use ipnet::IpNet;

use self::ports::{Common, Targets};
use super::capabilities::Capabilities;
use super::owner::service_name;
use crate::annotations as key;
use crate::config::{BalancerSettings, ClassSettings, Config};
use crate::wire::balancer::{
    ListenerSettings, MemberSettings, MonitorSettings, NewListener, NewMonitor, NewPool,
    PoolSettings,
};

const OPERATION: &str = "read Service";

/// The header with the address of the client.
pub(super) const FORWARDED_FOR: &str = "X-Forwarded-For";

type Reader<'a> = AnnotationReader<'a, ()>;

/// Everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The name by which the Go CCM tags what is the Service's.
    pub(super) service_name: String,
    /// The name of a load balancer that is the Service's own.
    pub(super) name: String,
    pub(super) is_internal: bool,
    pub(super) network: Networks,
    pub(super) port_id: Option<String>,
    pub(super) address: Option<IpAddr>,
    pub(super) keep_floating_ip: bool,
    pub(super) flavor: Option<String>,
    pub(super) availability_zone: Option<String>,
    pub(super) tls_container: Option<String>,
    pub(super) is_proxied: bool,
    pub(super) hostname: Option<String>,
    pub(super) family: IpFamily,
    pub(super) listeners: Vec<DesiredListener>,
    /// Whether what drains stays although it is not asked for.
    pub(super) keeps_draining: bool,
    /// Nodes that cannot be reached, and why.
    pub(super) unreachable: Vec<String>,
    /// Events: their reasons and messages.
    pub(super) notices: Vec<(&'static str, String)>,
}

/// Where the load balancer, its targets and its floating IP are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Networks {
    pub(super) subnet: Option<String>,
    pub(super) network: Option<String>,
    pub(super) member_subnet: Option<String>,
    pub(super) floating_network: Option<String>,
    pub(super) floating_subnet: Option<String>,
    pub(super) floating_subnet_name: Option<String>,
    pub(super) floating_subnet_tags: Option<String>,
}

/// One port of the Service with its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesiredListener {
    pub(super) name: String,
    pub(super) settings: ListenerSettings,
    pub(super) pool_name: String,
    pub(super) pool: PoolSettings,
    pub(super) members: Vec<MemberSettings>,
    pub(super) monitor_name: String,
    pub(super) monitor: Option<MonitorSettings>,
}

impl HasListenerKey for DesiredListener {
    fn listener_key(&self) -> ListenerKey {
        self.settings.listener_key()
    }
}

impl DesiredListener {
    /// The listener alone.
    pub(super) fn new_listener(&self, tags: Vec<String>) -> NewListener {
        NewListener {
            name: self.name.clone(),
            loadbalancer_id: None,
            tags,
            settings: self.settings.clone(),
            default_pool: None,
        }
    }

    /// Its pool alone.
    pub(super) fn new_pool(&self) -> NewPool {
        NewPool {
            name: self.pool_name.clone(),
            listener_id: None,
            settings: self.pool.clone(),
            members: Vec::new(),
            healthmonitor: None,
        }
    }

    /// Its monitor, if there is to be one.
    pub(super) fn new_monitor(&self) -> Option<NewMonitor> {
        self.monitor.clone().map(|settings| NewMonitor {
            name: self.monitor_name.clone(),
            pool_id: None,
            settings,
        })
    }

    /// Everything in one piece.
    pub(super) fn whole(&self, tags: Vec<String>) -> NewListener {
        let pool = NewPool {
            members: self.members.clone(),
            healthmonitor: self.new_monitor(),
            ..self.new_pool()
        };
        NewListener {
            default_pool: Some(pool),
            ..self.new_listener(tags)
        }
    }
}

impl Desired {
    /// Reads what a Service asks for. Everything that is wrong is reported at once.
    pub(crate) fn of(
        spec: &LoadBalancerSpec,
        config: &Config,
        can: Capabilities,
    ) -> Result<Self, CloudError> {
        let annotations = &spec.balancer_ref.annotations;
        let defaults = &config.load_balancers;
        let mut reader = Reader::new(annotations, ());
        let class = class_of(&mut reader, config)?;
        let network = networks(&mut reader, class, defaults);
        let is_internal = defaults.internal
            || reader
                .lenient(&key::INTERNAL)
                .or(spec.options.internal)
                .unwrap_or(false);
        let common = Common::read(&mut reader, spec, defaults, can)?;
        let service_name = service_name(&spec.balancer_ref);
        let targets = Targets::of(spec);
        let member_subnet = network.member_subnet.clone().filter(|_| !defaults.serial);
        let listener = |(index, port): (usize, &Port)| {
            common.listener(index, port, &service_name, &targets, member_subnet.as_ref())
        };
        let listeners = spec.listeners.iter().enumerate().map(listener).collect();
        let hostname = reader
            .text(&key::HOSTNAME)
            .or_else(|| spec.options.hostname.clone());
        let flavor = reader.text_or(&key::FLAVOR_ID, defaults.flavor.as_ref());
        let flavor = spec
            .options
            .size
            .clone()
            .filter(|_| !annotations.contains_key(key::FLAVOR_ID.name()))
            .or(flavor);
        let zone = reader.text_or(&key::AVAILABILITY_ZONE, defaults.availability_zone.as_ref());
        let port_id = reader.text(&key::PORT_ID);
        let keep_floating_ip = reader.lenient(&key::KEEP_FLOATINGIP).unwrap_or(false);
        let mut notices = notices(spec, can, flavor.as_ref(), zone.as_ref());
        notices.extend(
            reader
                .unsupported
                .drain(..)
                .map(|what| ("UnsupportedOption", format!("cannot {what}"))),
        );
        let unread: Unread<()> = reader.into_unread();
        unread.check()?;
        Ok(Self {
            name: spec
                .options
                .name
                .clone()
                .unwrap_or_else(|| service_name.clone()),
            service_name,
            is_internal,
            network,
            port_id,
            address: spec.address,
            keep_floating_ip,
            flavor: flavor.filter(|_| can.flavors),
            availability_zone: zone.filter(|_| can.availability_zones),
            tls_container: common.tls_container.clone(),
            is_proxied: common.proxy.is_some(),
            hostname,
            family: family_of(spec),
            listeners,
            keeps_draining: spec.options.keeps_draining,
            unreachable: targets.unreachable,
            notices,
        })
    }
}

impl Desired {
    /// Whether targets get something else than clients send: plain requests in place of TLS, or more headers.
    pub(super) fn changes_traffic(&self) -> bool {
        let passes_on = ["TCP", "UDP", "SCTP"];
        let mut listeners = self.listeners.iter();
        listeners.any(|listener| !passes_on.contains(&listener.settings.protocol.as_str()))
    }

    /// Targets are in the subnet of the load balancer if nothing else is said.
    pub(super) fn fill_subnet(&mut self, subnet: Option<&String>, is_serial: bool) {
        if self.network.member_subnet.is_some() || is_serial {
            return;
        }
        let members = self
            .listeners
            .iter_mut()
            .flat_map(|listener| &mut listener.members);
        members.for_each(|member| member.subnet_id = subnet.cloned());
    }
}

fn notices(
    spec: &LoadBalancerSpec,
    can: Capabilities,
    flavor: Option<&String>,
    zone: Option<&String>,
) -> Vec<(&'static str, String)> {
    let mut notices = Vec::new();
    if !can.allowed_cidrs && !spec.source_ranges.is_empty() {
        let message =
            "this Octavia cannot restrict listeners to source ranges: all clients may connect";
        notices.push(("LoadBalancerSourceRangesIgnored", message.to_owned()));
    }
    if let Some(zone) = zone.filter(|_| !can.availability_zones) {
        let message = format!("this Octavia has no availability zones: {zone:?} is ignored");
        notices.push(("LoadBalancerAvailabilityZonesIgnored", message));
    }
    if let Some(flavor) = flavor.filter(|_| !can.flavors) {
        let message = format!("this Octavia has no flavors: {flavor:?} is ignored");
        notices.push(("LoadBalancerFlavorIgnored", message));
    }
    notices
}

pub(super) fn family_of(spec: &LoadBalancerSpec) -> IpFamily {
    spec.families.first().copied().unwrap_or(IpFamily::V4)
}

fn class_of<'a>(
    reader: &mut Reader<'_>,
    config: &'a Config,
) -> Result<Option<&'a ClassSettings>, CloudError> {
    let Some(name) = reader.text(&key::CLASS) else {
        return Ok(None);
    };
    config.classes.get(&name).map(Some).ok_or_else(|| {
        let known: Vec<_> = config.classes.keys().map(String::as_str).collect();
        let message = format!(
            "{}: {name:?}: expected a class of the configuration, which has [{}]",
            key::CLASS.name(),
            known.join(", ")
        );
        CloudError::invalid(OPERATION, message)
    })
}

fn networks(
    reader: &mut Reader<'_>,
    class: Option<&ClassSettings>,
    defaults: &BalancerSettings,
) -> Networks {
    let configured = &defaults.networks;
    let of_class =
        |get: fn(&ClassSettings) -> &Option<String>| class.and_then(|class| get(class).clone());
    let subnet = reader
        .text(&key::SUBNET_ID)
        .or_else(|| of_class(|c| &c.subnet));
    let network = reader
        .text(&key::NETWORK_ID)
        .or_else(|| of_class(|c| &c.network));
    let member = reader
        .text(&key::MEMBER_SUBNET_ID)
        .or_else(|| of_class(|c| &c.member_subnet));
    let member = member.or_else(|| configured.member_subnet.clone());
    // A class wins over the annotation where floating IPs are concerned.
    let mut floating =
        |get: fn(&ClassSettings) -> &Option<String>, key, default: &Option<String>| {
            of_class(get).or_else(|| reader.text_or(key, default.as_ref()))
        };
    Networks {
        floating_network: floating(
            |c| &c.floating_network,
            &key::FLOATING_NETWORK_ID,
            &configured.floating_network,
        ),
        floating_subnet: floating(
            |c| &c.floating_subnet,
            &key::FLOATING_SUBNET_ID,
            &configured.floating_subnet,
        ),
        floating_subnet_name: floating(
            |c| &c.floating_subnet_name,
            &key::FLOATING_SUBNET,
            &configured.floating_subnet_name,
        ),
        floating_subnet_tags: floating(
            |c| &c.floating_subnet_tags,
            &key::FLOATING_SUBNET_TAGS,
            &configured.floating_subnet_tags,
        ),
        subnet: subnet.or_else(|| configured.subnet.clone()),
        network: network.or_else(|| configured.network.clone()),
        member_subnet: member.or_else(|| configured.subnet.clone()),
    }
}

/// Source ranges as networks; without any, all of the family.
pub(super) fn source_ranges(spec: &LoadBalancerSpec) -> BTreeSet<IpNet> {
    if !spec.source_ranges.is_empty() {
        return spec.source_ranges.iter().map(IpNet::trunc).collect();
    }
    let all = match family_of(spec) {
        IpFamily::V4 => "0.0.0.0/0",
        IpFamily::V6 => "::/0",
    };
    all.parse().into_iter().collect()
}
