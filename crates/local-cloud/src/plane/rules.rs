//! How a port treats its clients and targets.

use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_provider_local::wire::{Algorithm, Balancer, HealthCheck, Listener, ProxyProtocol};
use ipnet::IpNet;

/// Everything that may change without touching a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) algorithm: Algorithm,
    pub(super) proxy_protocol: Option<ProxyProtocol>,
    pub(super) affinity: Option<Duration>,
    pub(super) health_check: HealthCheck,
    pub(super) source_ranges: Vec<IpNet>,
}

impl Rules {
    pub(super) fn of(balancer: &Balancer, listener: &Listener) -> Self {
        Self {
            algorithm: balancer.algorithm,
            proxy_protocol: balancer.proxy_protocol,
            affinity: balancer
                .affinity
                .map(|affinity| Duration::from_secs(affinity.seconds)),
            health_check: listener.health_check.clone(),
            source_ranges: balancer.source_ranges.iter().copied().collect(),
        }
    }

    /// Whether a client may connect. No ranges at all means every client.
    pub(super) fn admit(&self, client: IpAddr) -> bool {
        let ranges = &self.source_ranges;
        ranges.is_empty() || ranges.iter().any(|range| range.contains(&client))
    }
}

#[cfg(test)]
impl Rules {
    /// Rules with nothing special about them.
    pub(super) fn plain(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            proxy_protocol: None,
            affinity: None,
            health_check: HealthCheck::default(),
            source_ranges: Vec::new(),
        }
    }
}
