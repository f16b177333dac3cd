//! Balancers on the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use cloudkeel_api::{HealthState, IpFamily};
use cloudkeel_toolkit::{HasListenerKey, ListenerKey};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

/// A balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Balancer {
    /// Never used twice.
    pub id: u64,
    /// Grows with every change. In quotes it is the `ETag`, for `If-Match`.
    pub version: u64,
    /// Its name; unique in the project unless the cloud is set up otherwise.
    pub name: String,
    /// Labels, the owner labels among them.
    pub labels: BTreeMap<String, String>,
    /// Whether it is being worked on.
    pub state: BalancerState,
    /// Its size.
    #[serde(rename = "type")]
    pub kind: String,
    /// Only reachable inside.
    pub internal: bool,
    /// Which kinds of address it has.
    pub families: BTreeSet<IpFamily>,
    /// Where clients find it; empty until it is built.
    pub addresses: Vec<IpAddr>,
    /// A name that leads there.
    pub hostname: Option<String>,
    /// How connections are distributed.
    pub algorithm: Algorithm,
    /// PROXY protocol towards the targets.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Which clients may connect; empty means all.
    pub source_ranges: BTreeSet<IpNet>,
    /// Whether clients stick to a target.
    pub affinity: Option<Affinity>,
    /// It must not be deleted.
    pub protected: bool,
    /// Its ports, ordered by protocol and port.
    pub listeners: Vec<Listener>,
    /// Its targets, machines before addresses.
    pub targets: Vec<Target>,
    /// What keeps it from working, such as a port that cannot be opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What health checks say of its targets, where something checks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<ReportedHealth>,
}

impl Balancer {
    /// The value for `If-Match`.
    pub fn etag(&self) -> String {
        etag(self.version)
    }
}

/// A version as it stands in `ETag` and `If-Match`.
pub fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Whether a balancer takes changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BalancerState {
    /// It works and takes changes.
    Active,
    /// It is being built or changed, and refuses every change meanwhile.
    Pending,
    /// It is being taken down.
    Deleting,
}

/// How connections are distributed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// One after the other.
    #[default]
    RoundRobin,
    /// To the one with the fewest.
    LeastConnections,
    /// By client address.
    SourceIp,
}

/// Versions of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyProtocol {
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// Clients stick to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Affinity {
    /// For how long.
    pub seconds: u64,
}

/// Transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP
    Tcp,
    /// UDP
    Udp,
    /// SCTP
    Sctp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

impl HasListenerKey for Listener {
    fn listener_key(&self) -> ListenerKey {
        ListenerKey {
            protocol: match self.protocol {
                Protocol::Tcp => cloudkeel_api::Protocol::Tcp,
                Protocol::Udp => cloudkeel_api::Protocol::Udp,
                Protocol::Sctp => cloudkeel_api::Protocol::Sctp,
            },
            port: self.port,
        }
    }
}

/// One port of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listener {
    /// Transport.
    pub protocol: Protocol,
    /// Where the balancer listens; unique for its protocol.
    pub port: u16,
    /// Where the targets listen.
    pub target_port: u16,
    /// How targets are checked.
    #[serde(default)]
    pub health_check: HealthCheck,
}

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthCheck {
    /// What is tried.
    pub probe: Probe,
    /// On which port; the target port if it is left out.
    pub port: Option<u16>,
    /// Seconds between two checks.
    pub interval_seconds: u32,
    /// Seconds that an answer may take.
    pub timeout_seconds: u32,
    /// Failures in a row until a target is out.
    pub retries: u32,
}

/// The cloud's own numbers.
impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            probe: Probe::Tcp,
            port: None,
            interval_seconds: 5,
            timeout_seconds: 3,
            retries: 3,
        }
    }
}

/// What a health check tries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Probe {
    /// A connection.
    #[default]
    Tcp,
    /// A GET that answers 200.
    Http {
        /// Of this path.
        path: String,
    },
    /// The same over TLS.
    Https {
        /// Of this path.
        path: String,
    },
    /// A datagram that is not refused.
    Udp,
    /// An association.
    Sctp,
}

/// Where a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetAt {
    /// A machine of the project.
    Machine(u64),
    /// Any address that the balancer can reach.
    Ip(IpAddr),
}

impl fmt::Display for TargetAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(id) => write!(f, "machine {id}"),
            Self::Ip(ip) => write!(f, "{ip}"),
        }
    }
}

/// Whether a target gets new connections.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TargetState {
    /// Yes.
    #[default]
    Serving,
    /// No, but it may finish those it has.
    Draining,
}

/// A target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// Where it is.
    #[serde(flatten)]
    pub at: TargetAt,
    /// Whether it gets new connections.
    #[serde(default)]
    pub state: TargetState,
}

/// What the health checks of a port say of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedHealth {
    /// Where the target is.
    #[serde(flatten)]
    pub at: TargetAt,
    /// Where the balancer listens.
    pub port: u16,
    /// Whether the target answers.
    pub health: HealthState,
}

/// What is asked for when a balancer is made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NewBalancer {
    /// Its name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Its size; the cloud's smallest if it is left out.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only reachable inside.
    pub internal: bool,
    /// Which kinds of address it gets; IPv4 if it is left out.
    pub families: BTreeSet<IpFamily>,
    /// A requested address, in place of one that the cloud chooses.
    pub address: Option<IpAddr>,
    /// A name that leads there.
    pub hostname: Option<String>,
    /// How connections are distributed.
    pub algorithm: Algorithm,
    /// PROXY protocol towards the targets.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Who may connect.
    pub source_ranges: BTreeSet<IpNet>,
    /// Whether clients stick to a target.
    pub affinity: Option<Affinity>,
    /// It must not be deleted.
    pub protected: bool,
    /// Its ports.
    pub listeners: Vec<Listener>,
    /// Its targets.
    pub targets: Vec<Target>,
}

/// A change to a balancer. What is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BalancerPatch {
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All labels, in place of those it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Another size.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only reachable inside, or not; the addresses change with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal: Option<bool>,
    /// Other kinds of address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub families: Option<BTreeSet<IpFamily>>,
    /// Another address, in place of the one of its family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Another name that leads there, or none.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given_even_if_null"
    )]
    pub hostname: Option<Option<String>>,
    /// Another algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// PROXY protocol on or off.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given_even_if_null"
    )]
    pub proxy_protocol: Option<Option<ProxyProtocol>>,
    /// Who may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ranges: Option<BTreeSet<IpNet>>,
    /// Affinity on or off.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given_even_if_null"
    )]
    pub affinity: Option<Option<Affinity>>,
    /// Protection on or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,
}

impl BalancerPatch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Changes all but the address, which is the cloud's to give.
    pub fn apply_to(self, balancer: &mut Balancer) {
        fn replace<T>(field: &mut T, wanted: Option<T>) {
            if let Some(wanted) = wanted {
                *field = wanted;
            }
        }
        replace(&mut balancer.name, self.name);
        replace(&mut balancer.labels, self.labels);
        replace(&mut balancer.kind, self.kind);
        replace(&mut balancer.internal, self.internal);
        replace(&mut balancer.families, self.families);
        replace(&mut balancer.hostname, self.hostname);
        replace(&mut balancer.algorithm, self.algorithm);
        replace(&mut balancer.proxy_protocol, self.proxy_protocol);
        replace(&mut balancer.source_ranges, self.source_ranges);
        replace(&mut balancer.affinity, self.affinity);
        replace(&mut balancer.protected, self.protected);
    }
}

/// Tells `"key": null`, which takes a value away, from a key that is not there.
#[expect(
    clippy::option_option,
    reason = "three cases: left alone, taken away, set to something"
)]
fn given_even_if_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// All ports of a balancer, in place of those it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenersChange {
    /// The ports.
    pub listeners: Vec<Listener>,
}

/// Changes to the targets of a balancer: all of them happen, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetChange {
    /// To serve; those that drain serve again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<TargetAt>,
    /// To drain; those that are not there are added as draining.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drain: Vec<TargetAt>,
    /// To go; those that are not there are no error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<TargetAt>,
}

impl TargetChange {
    /// Whether it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.add.is_empty() && self.drain.is_empty() && self.remove.is_empty()
    }
}

/// The answer to every change of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancerAnswer {
    /// The balancer as it is now.
    pub balancer: Balancer,
    /// The work that was begun, if it takes time.
    pub action: Option<Action>,
}

/// Work that takes time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Never used twice.
    pub id: u64,
    /// What is being done, such as `create`.
    pub what: String,
    /// The balancer that it is done to.
    pub balancer: u64,
    /// How far it is.
    pub status: ActionStatus,
}

/// How far an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionStatus {
    /// Under way.
    Running,
    /// Finished.
    Done,
}
