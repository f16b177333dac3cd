//! The REST API of the local cloud as types. Client and simulated server use the same ones, so
//! they cannot drift apart.

mod balancer;
mod machine;
mod route;

use cloudkeel_toolkit::HasId;
use serde::{Deserialize, Serialize};

pub use balancer::{
    Action, ActionStatus, Affinity, Algorithm, Balancer, BalancerAnswer, BalancerPatch,
    BalancerState, HealthCheck, Listener, ListenersChange, NewBalancer, Probe, Protocol,
    ProxyProtocol, ReportedHealth, Target, TargetAt, TargetChange, TargetState, etag,
};
pub use machine::{AddressScope, Machine, MachineAddress, MachineState, NewMachine};
pub use route::{Hop, NewRoute, Route, RouteBatch, RouteBatchAnswer, RouteResult};

/// The header of every answer that says whose project it speaks of.
pub const PROJECT_HEADER: &str = "x-project";

/// The header of every answer under which the cloud's log shows the call.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// What a list answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<T> {
    /// The things of this page.
    pub items: Vec<T>,
    /// Which page, of how much.
    pub page: PageInfo,
}

/// Where a page stands among all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    /// Counted from 1.
    pub number: u64,
    /// How many things a full page has; the cloud may give less than was asked for.
    pub per_page: u64,
    /// How many things there are on all pages together.
    pub total: u64,
    /// The path of the next page, if there is one.
    pub next: Option<String>,
}

macro_rules! has_number {
    ($($type:ty),+) => {$(
        impl HasId for $type {
            type Id = u64;

            fn id(&self) -> u64 {
                self.id
            }
        }
    )+};
}
has_number!(Balancer, Machine, Route);

/// What a credential can see, and what this cloud can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The project that the credential belongs to.
    pub project: String,
    /// The region of the project.
    pub region: String,
    /// What the cloud can do.
    pub features: Features,
    /// How much a balancer takes.
    #[serde(default)]
    pub limits: Limits,
}

/// How much a balancer takes. `None` where the cloud names no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Targets.
    pub targets: Option<u32>,
    /// Listeners.
    pub listeners: Option<u32>,
}

/// What a cloud can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Features {
    /// A target can finish the connections that it has.
    pub drain: bool,
    /// Targets can be given by address.
    pub targets_by_address: bool,
    /// Its machines are the Nodes of a cluster, whatever IDs these have.
    pub every_node: bool,
    /// UDP listeners.
    pub udp: bool,
    /// SCTP listeners.
    pub sctp: bool,
    /// TCP and UDP on one balancer.
    pub mixed_protocols: bool,
    /// IPv4 and IPv6 on one balancer.
    pub dual_stack: bool,
    /// Every answer names its project. Clouds that do not leave a swapped credential unnoticed.
    pub tells_project: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            drain: true,
            targets_by_address: true,
            every_node: false,
            udp: true,
            sctp: false,
            mixed_protocols: true,
            dual_stack: true,
            tells_project: true,
        }
    }
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its ID, such as `vol-1`.
    pub id: String,
    /// The zones it can be attached in.
    pub zones: Vec<String>,
    /// Its region.
    pub region: String,
}

/// A managed cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The address of its control plane.
    pub control_plane: String,
}

/// The body of every refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorInfo,
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// A stable word.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// The field that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// The stable words of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// There is no such thing in this project.
    NotFound,
    /// The token is missing or unknown.
    Unauthorized,
    /// The token may not do this.
    Forbidden,
    /// It was changed meanwhile.
    Conflict,
    /// It is being worked on.
    Locked,
    /// Too many calls.
    RateLimited,
    /// The request is wrong.
    Invalid,
    /// A limit of the project is reached.
    LimitExceeded,
    /// The name or address is taken.
    AlreadyExists,
    /// The cloud has trouble.
    Unavailable,
    /// It must not be deleted.
    Protected,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::NotFound,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Conflict,
        Self::Locked,
        Self::RateLimited,
        Self::Invalid,
        Self::LimitExceeded,
        Self::AlreadyExists,
        Self::Unavailable,
        Self::Protected,
    ];

    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::Locked => "locked",
            Self::RateLimited => "rate_limited",
            Self::Invalid => "invalid",
            Self::LimitExceeded => "limit_exceeded",
            Self::AlreadyExists => "already_exists",
            Self::Unavailable => "unavailable",
            Self::Protected => "protected",
        }
    }
}

#[cfg(test)]
mod tests;
