//! Which intervals, timeouts and retries of health checks a cloud accepts, and whose health it reports. Pure.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use cloudkeel_api::{
    DesiredState, HealthCheck, HealthProbe, Listener, LoadBalancerSpec, NodeAddress, ServiceFacts,
    TrafficPolicy, format_go_duration, names,
};

/// Where kube-proxy says whether its Node serves, unless it is configured otherwise.
pub const KUBE_PROXY_PORT: u16 = 10256;

/// The port that is checked if the check is kube-proxy's: the one that the neutral annotation names, the Service's own, or
/// that of the Node.
pub fn kube_proxy_port(service: &ServiceFacts) -> u16 {
    let neutral = names::LB_HEALTH_CHECK_PORT.readable(&service.annotations);
    let is_local = service.traffic_policy == TrafficPolicy::Local;
    let local = service.health_check_node_port.filter(|_| is_local);
    neutral.or(local).unwrap_or(KUBE_PROXY_PORT)
}

/// What people call a target: the Node among the desired ones whose provider ID ends like this, or that has this address, else
/// what the cloud calls it.
pub fn name_of_target(
    desired: DesiredState<'_>,
    id: Option<&str>,
    address: Option<IpAddr>,
    plain: impl Display,
) -> String {
    let targets = desired.spec().map(|spec| &spec.targets);
    let node = targets.into_iter().flatten().find(|(_, target)| {
        let own = target.node.provider_id.as_ref();
        let mut addresses = target.node.addresses.iter().filter_map(NodeAddress::ip);
        own.is_some_and(|own| Some(own.rest()) == id)
            || address.is_some_and(|address| addresses.any(|ip| ip == address))
    });
    node.map_or_else(|| plain.to_string(), |(name, _)| name.clone())
}

/// The numbers that a cloud takes. A neutral number that is not among them is rounded to the next that is, which
/// is reported.
#[derive(Debug, Clone)]
pub struct CheckLimits {
    /// Seconds between two checks of a target.
    pub interval: RangeInclusive<u64>,
    /// Seconds that a check may take.
    pub timeout: RangeInclusive<u64>,
    /// Failures in a row until a target is out.
    pub retries: RangeInclusive<u32>,
}

/// The numbers of a check, in the form in which most APIs take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckNumbers {
    /// Seconds between two checks of a target.
    pub interval: u32,
    /// Seconds that a check may take.
    pub timeout: u32,
    /// Failures in a row until a target is out.
    pub unhealthy: u32,
    /// Successes in a row until it is in again.
    pub healthy: u32,
}

/// Whole seconds as Go CCMs send them: the rest is cut off. What would be none of them is the least that the cloud
/// takes.
pub fn truncated(duration: Duration, limits: &RangeInclusive<u64>) -> u64 {
    match duration.as_secs() {
        0 => *limits.start(),
        seconds => seconds,
    }
}

/// Whether a neutral check asks for numbers of its own.
pub const fn has_numbers(check: &HealthCheck) -> bool {
    check.interval.is_some() || check.timeout.is_some() || check.unhealthy_threshold.is_some()
}

impl CheckLimits {
    /// The numbers of a neutral check, as the cloud takes them, and these in place of those that it does not have.
    pub fn numbers(&self, check: &HealthCheck, default: CheckNumbers) -> CheckNumbers {
        let seconds = |asked: Option<u64>| asked.and_then(|it| u32::try_from(it).ok());
        CheckNumbers {
            interval: seconds(self.interval(check)).unwrap_or(default.interval),
            timeout: seconds(self.timeout(check)).unwrap_or(default.timeout),
            unhealthy: self.retries(check).unwrap_or(default.unhealthy),
            healthy: self.healthy(check).unwrap_or(default.healthy),
        }
    }

    /// The pause of a neutral check, as the cloud takes it.
    pub fn interval(&self, check: &HealthCheck) -> Option<u64> {
        check.interval.map(|asked| rounded(asked, &self.interval))
    }

    /// How long a neutral check may take, as the cloud takes it.
    pub fn timeout(&self, check: &HealthCheck) -> Option<u64> {
        check.timeout.map(|asked| rounded(asked, &self.timeout))
    }

    /// The failures of a neutral check, as the cloud takes them.
    pub fn retries(&self, check: &HealthCheck) -> Option<u32> {
        let (least, most) = (*self.retries.start(), *self.retries.end());
        check
            .unhealthy_threshold
            .map(|asked| asked.clamp(least, most))
    }

    /// The successes of a neutral check after which a target serves again, in the limits of failures.
    pub fn healthy(&self, check: &HealthCheck) -> Option<u32> {
        let (least, most) = (*self.retries.start(), *self.retries.end());
        check
            .healthy_threshold
            .map(|asked| asked.clamp(least, most))
    }

    /// The neutral numbers of a Service that the cloud does not take as they are, and what is used in their place.
    pub fn out_of_range(&self, spec: &LoadBalancerSpec) -> Vec<String> {
        // The checks of all ports come from the same annotations.
        let Some(listener) = spec.listeners.first() else {
            return Vec::new();
        };
        let check = &listener.health_check;
        let duration = |asked: Option<Duration>, used: Option<u64>, what: &str| {
            let (asked, used) = (asked?, used?);
            (Duration::from_secs(used) != asked).then(|| {
                let asked = format_go_duration(asked);
                format!("{what} {asked}, so {used}s is used")
            })
        };
        let retries = self.retries(check);
        let asked = check
            .unhealthy_threshold
            .filter(|asked| retries != Some(*asked));
        let retries = asked.zip(retries).map(|(asked, used)| {
            format!("take a target out after {asked} failed checks, so {used} is used")
        });
        [
            duration(check.interval, self.interval(check), "check targets every"),
            duration(check.timeout, self.timeout(check), "give a check"),
            retries,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn rounded(duration: Duration, limits: &RangeInclusive<u64>) -> u64 {
    let up = u64::from(duration.subsec_nanos() > 0);
    let seconds = duration.as_secs().saturating_add(up);
    seconds.clamp(*limits.start(), *limits.end())
}

/// How a listener is checked, in the words of most APIs: protocol, port and path. `None` for what is not checked by a TCP
/// connection.
pub fn usual_probe(listener: &Listener) -> Option<(&'static str, u16, String)> {
    let check = &listener.health_check;
    let port = check.port.or(listener.node_port).unwrap_or(listener.port);
    match &check.probe {
        HealthProbe::Tcp => Some(("tcp", port, String::new())),
        HealthProbe::Http { path } => Some(("http", port, path.clone())),
        HealthProbe::Https { path } => Some(("https", port, path.clone())),
        HealthProbe::UdpConnect | HealthProbe::Sctp => None,
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::BalancerRef;

    use crate::fixtures::cluster_and_service;

    use super::*;

    const LIMITS: CheckLimits = CheckLimits {
        interval: 3..=60,
        timeout: 1..=60,
        retries: 1..=5,
    };

    fn spec(interval_ms: u64, retries: u32) -> LoadBalancerSpec {
        let (cluster, service) = cluster_and_service();
        let mut spec = LoadBalancerSpec::plain(BalancerRef::of(cluster, service));
        let mut listener = Listener::tcp(80, 30_080);
        listener.health_check.interval = Some(Duration::from_millis(interval_ms));
        listener.health_check.unhealthy_threshold = Some(retries);
        listener.health_check.healthy_threshold = Some(retries);
        spec.listeners.push(listener);
        spec
    }

    #[test]
    fn numbers_are_rounded_to_what_the_cloud_takes_and_reported() {
        for (interval_ms, retries, used, reported) in [
            (5_000, 3, (Some(5), Some(3)), 0),
            (5_100, 3, (Some(6), Some(3)), 1),
            (1_000, 9, (Some(3), Some(5)), 2),
            (90_000, 0, (Some(60), Some(1)), 2),
        ] {
            let spec = spec(interval_ms, retries);
            let check = &spec.listeners[0].health_check;
            assert!(has_numbers(check));
            let found = (LIMITS.interval(check), LIMITS.retries(check));
            assert_eq!(found, used, "{interval_ms} {retries}");
            assert_eq!(LIMITS.healthy(check), used.1, "{interval_ms} {retries}");
            assert_eq!(
                LIMITS.out_of_range(&spec).len(),
                reported,
                "{interval_ms} {retries}"
            );
        }
        assert_eq!(truncated(Duration::from_millis(500), &LIMITS.interval), 3);
        assert_eq!(
            truncated(Duration::from_millis(90_500), &LIMITS.interval),
            90
        );
    }
}
