//! How targets are checked, and who decides it.

use std::time::Duration;

use serde::Serialize;

/// The protocol of a health check.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HealthProbe {
    /// A connection is accepted.
    Tcp,
    /// An HTTP GET of this path answers 200.
    Http {
        /// The path.
        path: String,
    },
    /// The same over TLS, without looking at the certificate.
    Https {
        /// The path.
        path: String,
    },
    /// No answer within the timeout means healthy, a port-unreachable means not.
    UdpConnect,
    /// An SCTP association is accepted.
    Sctp,
}

/// A health check of one listener. `None` leaves a number to the cloud's default.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// What is tried.
    pub probe: HealthProbe,
    /// On which port of the node. `None`: the port that gets the traffic.
    pub port: Option<u16>,
    /// Pause between two checks.
    pub interval: Option<Duration>,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// Failures in a row until a target is out.
    pub unhealthy_threshold: Option<u32>,
    /// Successes in a row until it is in again.
    pub healthy_threshold: Option<u32>,
}

impl HealthCheck {
    /// A plain connection to the port that gets the traffic, with the cloud's own numbers.
    pub const fn tcp() -> Self {
        Self {
            probe: HealthProbe::Tcp,
            port: None,
            interval: None,
            timeout: None,
            unhealthy_threshold: None,
            healthy_threshold: None,
        }
    }
}

/// Which check a Service gets if it does not ask for one.
///
/// The default of each provider is what its Go counterpart does, so that a swap changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HealthCheckPolicy {
    /// TCP on the node port, whatever the traffic policy.
    NodePort,
    /// `Local`: HTTP `/healthz` on the health check node port; `Cluster`: the node port.
    LocalAware,
    /// `Local`: as above; `Cluster`: kube-proxy's own health endpoint, one for all Services of a Node.
    KubeProxy {
        /// Its port.
        port: u16,
        /// Its path.
        path: String,
    },
    /// No check at all unless asked for.
    Off,
}

impl HealthCheckPolicy {
    /// kube-proxy's health endpoint, where kube-proxy has it unless configured otherwise.
    pub fn kube_proxy() -> Self {
        Self::KubeProxy {
            port: 10256,
            path: "/healthz".to_owned(),
        }
    }
}

/// What a cloud says about one target of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetHealth {
    /// The target, as the cloud names it to people: the name of a machine, or an address.
    pub target: String,
    /// The port of the listener, where health is reported for each.
    pub listener: Option<u16>,
    /// Whether it answers its health check.
    pub state: HealthState,
}

/// Whether a target answers its health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HealthState {
    /// It does.
    Healthy,
    /// It does not.
    Unhealthy,
    /// It was not checked yet, or the cloud does not say.
    Unknown,
}
