//! How targets are checked, and who decides it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HealthState {
    /// It does.
    Healthy,
    /// It does not.
    Unhealthy,
    /// It was not checked yet, or the cloud does not say.
    Unknown,
}

impl HealthState {
    /// The state of each target over all listeners: one that serves a listener of several is healthy.
    pub fn by_target(targets: &[TargetHealth]) -> BTreeMap<&str, Self> {
        let mut states = BTreeMap::<&str, Self>::new();
        for TargetHealth { target, state, .. } in targets {
            let merged = states.entry(target).or_insert(*state);
            *merged = match (*merged, *state) {
                (Self::Healthy, _) | (_, Self::Healthy) => Self::Healthy,
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                (Self::Unhealthy, Self::Unhealthy) => Self::Unhealthy,
            };
        }
        states
    }
}

/// How many targets of a balancer answer their health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthSummary {
    /// They answer, at least for one listener.
    pub healthy: usize,
    /// They do not, for any listener.
    pub unhealthy: usize,
    /// The cloud does not say so of every listener.
    pub unknown: usize,
}

impl HealthSummary {
    /// Counts targets. One that serves a listener of several is not out. `None` if the cloud shows no health.
    pub fn of(targets: &[TargetHealth]) -> Option<Self> {
        let mut summary = Self::default();
        for state in HealthState::by_target(targets).into_values() {
            let count = match state {
                HealthState::Healthy => &mut summary.healthy,
                HealthState::Unhealthy => &mut summary.unhealthy,
                HealthState::Unknown => &mut summary.unknown,
            };
            *count += 1;
        }
        (!targets.is_empty()).then_some(summary)
    }

    /// Whether it is certain that no target gets traffic by its health.
    pub const fn is_outage(self) -> bool {
        self.unhealthy > 0 && self.healthy == 0 && self.unknown == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_out_only_if_it_fails_for_every_listener() {
        use HealthState::{Healthy, Unhealthy, Unknown};
        let health = |states: &[(&str, HealthState)]| {
            let targets = states.iter().map(|(target, state)| TargetHealth {
                target: (*target).to_owned(),
                listener: None,
                state: *state,
            });
            HealthSummary::of(&targets.collect::<Vec<_>>())
        };
        let summary = |healthy, unhealthy, unknown| {
            Some(HealthSummary {
                healthy,
                unhealthy,
                unknown,
            })
        };
        for (case, states, expected, is_outage) in [
            ("none", &[][..], None, false),
            (
                "one of two",
                &[("a", Healthy), ("a", Unhealthy)],
                summary(1, 0, 0),
                false,
            ),
            (
                "all",
                &[("a", Unhealthy), ("a", Unhealthy), ("b", Unhealthy)],
                summary(0, 2, 0),
                true,
            ),
            (
                "not sure",
                &[("a", Unhealthy), ("a", Unknown), ("b", Unhealthy)],
                summary(0, 1, 1),
                false,
            ),
        ] {
            let health = health(states);
            assert_eq!(health, expected, "{case}");
            assert_eq!(
                health.is_some_and(HealthSummary::is_outage),
                is_outage,
                "{case}"
            );
        }
    }
}
