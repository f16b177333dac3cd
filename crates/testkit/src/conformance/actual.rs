//! What is really in a cloud, in words that all clouds share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    Algorithm, HealthCheck, HealthProbe, Listener, LoadBalancerSpec, NodeAddress, NodeFacts,
    Protocol, ProviderId, ProxyProtocol, TargetState, VolumePlace,
};
use ipnet::IpNet;

/// All that is in a cloud. What it does not have stays empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActualState {
    /// The instances that exist, in the order in which they were added.
    pub instances: Vec<ActualInstance>,
    /// The balancers.
    pub balancers: Vec<ActualBalancer>,
    /// The routes of the table that the provider works on.
    pub routes: Vec<ActualRoute>,
    /// The disks.
    pub volumes: Vec<ActualVolume>,
    /// What else a provider could leave behind: certificates, addresses, rules.
    pub others: Vec<Resource>,
}

impl ActualState {
    /// The cloud's own ID of the youngest instance of this name.
    pub(super) fn id_of(&self, name: &str) -> Option<&str> {
        let mut youngest = self.instances.iter().rev();
        youngest.find(|it| it.node.name == name)?.id()
    }

    /// The same with instances by their names wherever targets and next hops are given by ID or address.
    #[must_use]
    pub(super) fn by_names(mut self) -> Self {
        let instances = &self.instances;
        let name_of = |place: &str| {
            let found = instances.iter().find(|instance| instance.is_at(place));
            found.map_or_else(|| place.to_owned(), |found| found.node.name.clone())
        };
        for balancer in &mut self.balancers {
            let targets = std::mem::take(&mut balancer.targets).into_iter();
            balancer.targets = targets
                .map(|(place, state)| (name_of(&place), state))
                .collect();
        }
        for route in &mut self.routes {
            route.hop = name_of(&route.hop);
        }
        self
    }
}

/// Something that a provider could leave behind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Such as `certificate` or `security group`.
    pub kind: &'static str,
    /// Its ID or name.
    pub id: String,
}

impl Resource {
    /// One of this kind for each ID.
    pub fn all<T: ToString>(kind: &'static str, ids: impl Iterator<Item = T>) -> Vec<Self> {
        ids.map(|id| Self {
            kind,
            id: id.to_string(),
        })
        .collect()
    }
}

/// An instance as it really is, in the words of a Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActualInstance {
    /// Its Node once that is initialised: name, provider ID, system UUID, and the addresses with their kinds, in the order
    /// in which a Node gets them.
    pub node: NodeFacts,
    /// For the instance-type label.
    pub instance_type: Option<String>,
    /// For the zone label.
    pub zone: Option<String>,
    /// For the region label.
    pub region: Option<String>,
    /// Additional labels that the Node gets.
    pub labels: BTreeMap<String, String>,
}

impl ActualInstance {
    /// An instance with this provider ID, name and these addresses. Its Node has the name as its hostname, first.
    pub fn new(
        provider_id: impl AsRef<str>,
        name: &str,
        addresses: impl IntoIterator<Item = NodeAddress>,
    ) -> Self {
        let hostname = std::iter::once(NodeAddress::hostname(name));
        Self {
            node: NodeFacts {
                name: name.to_owned(),
                uid: format!("uid-of-{}", provider_id.as_ref()),
                provider_id: provider_id.as_ref().parse().ok(),
                addresses: hostname.chain(addresses).collect(),
                ..NodeFacts::default()
            },
            ..Self::default()
        }
    }

    /// The cloud's own ID, which its provider ID ends with.
    fn id(&self) -> Option<&str> {
        let id = self.node.provider_id.as_ref().map(ProviderId::as_str);
        id.and_then(|id| id.rsplit('/').next())
    }

    /// Whether the cloud means this instance by its ID or by an address.
    fn is_at(&self, place: &str) -> bool {
        let mut ips = self.node.addresses.iter().filter_map(NodeAddress::ip);
        self.id() == Some(place) || ips.any(|ip| ip.to_string() == place)
    }

    /// With an address inside the cloud, if it has one.
    #[must_use]
    pub fn internal(mut self, ip: Option<impl Into<IpAddr>>) -> Self {
        let address = ip.map(|ip| NodeAddress::internal(ip.into()));
        self.node.addresses.extend(address);
        self
    }

    /// With an address outside, if it has one.
    #[must_use]
    pub fn external(mut self, ip: Option<impl Into<IpAddr>>) -> Self {
        let address = ip.map(|ip| NodeAddress::external(ip.into()));
        self.node.addresses.extend(address);
        self
    }

    /// With this type.
    #[must_use]
    pub fn of_type(mut self, instance_type: impl Into<String>) -> Self {
        self.instance_type = Some(instance_type.into());
        self
    }

    /// In this region, which has no zones.
    #[must_use]
    pub fn in_region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// In this zone and region.
    #[must_use]
    pub fn at(mut self, zone: impl Into<String>, region: impl Into<String>) -> Self {
        (self.zone, self.region) = (Some(zone.into()), Some(region.into()));
        self
    }

    /// With this label for its Node.
    #[must_use]
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// A disk as it really is.
#[derive(Debug, Clone, PartialEq)]
pub struct ActualVolume {
    /// The field of a PersistentVolume that names it, such as `csi`.
    pub source: &'static str,
    /// The content of that field.
    pub content: serde_json::Value,
    /// The content for a disk that does not exist.
    pub missing: serde_json::Value,
    /// Where it is.
    pub place: VolumePlace,
}

/// A route as it really is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActualRoute {
    /// Which network.
    pub destination: IpNet,
    /// The instance that it leads to, by its name, ID or address, else the cloud's word for the next hop.
    pub hop: String,
}

/// One port of a balancer, as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActualListener {
    /// Transport.
    pub protocol: Protocol,
    /// Where the balancer listens.
    pub port: u16,
    /// Where the targets listen.
    pub node_port: u16,
    /// How targets are checked. A check on the node port itself has that as its port.
    pub health_check: HealthCheck,
}

impl ActualListener {
    /// A TCP port.
    pub const fn tcp(port: u16, node_port: u16, health_check: HealthCheck) -> Self {
        Self {
            protocol: Protocol::Tcp,
            port,
            node_port,
            health_check,
        }
    }

    /// A port of the protocol that the API calls this: where the balancer listens, and where the targets do.
    pub fn of(protocol: &str, (port, node_port): (u16, u16), health_check: HealthCheck) -> Self {
        Self {
            protocol: match protocol.to_ascii_lowercase().as_str() {
                "udp" => Protocol::Udp,
                "sctp" => Protocol::Sctp,
                _ => Protocol::Tcp,
            },
            ..Self::tcp(port, node_port, health_check)
        }
    }
}

/// A balancer as it really is. What this cloud does not have stays empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActualBalancer {
    /// The cloud's ID, as [`adopt`](cloudkeel_api::BalancerRef::adopt) names it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its ports.
    pub listeners: Vec<ActualListener>,
    /// Its targets, by the name, ID or address of an instance, or by another address.
    pub targets: BTreeMap<String, TargetState>,
    /// Where clients find it.
    pub addresses: Vec<IpAddr>,
    /// Only reachable inside.
    pub internal: bool,
    /// Which clients may connect; empty means all.
    pub source_ranges: BTreeSet<IpNet>,
    /// For how long clients stick to a target.
    pub affinity: Option<Duration>,
    /// How connections are spread.
    pub algorithm: Option<Algorithm>,
    /// PROXY protocol towards the targets.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Its size or type.
    pub size: Option<String>,
    /// Labels, those of the provider included.
    pub labels: BTreeMap<String, String>,
    /// Whether packets are passed on to the port of the Service, and node ports do not matter.
    pub passes_through: bool,
}

impl ActualBalancer {
    /// An empty one, to fill in what the cloud has.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            listeners: Vec::new(),
            targets: BTreeMap::new(),
            addresses: Vec::new(),
            internal: false,
            source_ranges: BTreeSet::new(),
            affinity: None,
            algorithm: None,
            proxy_protocol: None,
            size: None,
            labels: BTreeMap::new(),
            passes_through: false,
        }
    }

    /// With these targets, all of which get new connections.
    #[must_use]
    pub fn serving<T: ToString>(mut self, targets: impl IntoIterator<Item = T>) -> Self {
        let targets = targets.into_iter().map(|target| target.to_string());
        let serving = targets.map(|target| (target, TargetState::Serving));
        self.targets = serving.collect();
        self
    }

    /// What does not depend on which cloud of the same kind it is in.
    pub(super) fn shape(mut self) -> Self {
        self.id.clear();
        self.addresses.clear();
        self.listeners.sort_by_key(|l| (l.protocol, l.port));
        self
    }

    /// An error with what differs from the ports and targets of a desired state, if anything does.
    /// The ports on which it listens, in their order.
    pub(super) fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.listeners.iter().map(|it| it.port).collect();
        ports.sort_unstable();
        ports
    }

    pub(super) fn check_matches(&self, spec: &LoadBalancerSpec) -> Result<(), String> {
        let have: BTreeSet<_> = self.listeners.iter().map(port_of).collect();
        let wanted = |listener: &Listener| wanted_port(listener, self.passes_through);
        let want: BTreeSet<_> = spec.listeners.iter().map(wanted).collect();
        if have != want {
            return Err(format!("its ports are {have:?}, wanted are {want:?}"));
        }
        let want: BTreeMap<_, _> = spec
            .targets
            .iter()
            .map(|(name, target)| (name.clone(), target.state))
            .collect();
        if self.targets != want {
            let have = &self.targets;
            return Err(format!("its targets are {have:?}, wanted are {want:?}"));
        }
        Ok(())
    }
}

const fn port_of(listener: &ActualListener) -> (Protocol, u16, u16) {
    (listener.protocol, listener.port, listener.node_port)
}

fn wanted_port(listener: &Listener, passes_through: bool) -> (Protocol, u16, u16) {
    let node_port = listener.node_port.filter(|_| !passes_through);
    let node_port = node_port.unwrap_or(listener.port);
    (listener.protocol, listener.port, node_port)
}

/// The networks among some texts.
pub fn networks<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> BTreeSet<IpNet> {
    let texts = texts.into_iter();
    texts
        .filter_map(|text| text.as_ref().parse().ok())
        .collect()
}

/// Tags as labels, of which the separator ends the key.
pub fn labels_of_tags(tags: &[impl AsRef<str>], separator: char) -> BTreeMap<String, String> {
    let pair = |tag: &str| {
        let (key, value) = tag.split_once(separator).unwrap_or((tag, ""));
        (key.to_owned(), value.to_owned())
    };
    tags.iter().map(|tag| pair(tag.as_ref())).collect()
}

/// A health check in the words that most APIs use: its protocol, path and port, and its interval and timeout in seconds and
/// the failures in a row that take a target out.
pub fn health_check(protocol: &str, path: &str, port: u16, numbers: [u32; 3]) -> HealthCheck {
    let path = path.to_owned();
    let [interval, timeout, retries] = numbers;
    let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
    HealthCheck {
        probe: match protocol.to_ascii_lowercase().as_str() {
            "http" => HealthProbe::Http { path },
            "https" => HealthProbe::Https { path },
            "udp" => HealthProbe::UdpConnect,
            "sctp" => HealthProbe::Sctp,
            _ => HealthProbe::Tcp,
        },
        port: Some(port),
        interval: seconds(interval),
        timeout: seconds(timeout),
        unhealthy_threshold: Some(retries),
        healthy_threshold: None,
    }
}
