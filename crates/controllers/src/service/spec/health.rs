//! How targets are checked: the provider's policy or the one asked for, then the annotations on top.
//! Pure, and the only place where this is decided.

use std::time::Duration;

use cloudkeel_api::{
    CheckProtocol, HealthCheck, HealthCheckPolicy, HealthProbe, Problem, Problems, Protocol,
    TrafficPolicy, names,
};

use super::annotation;
use crate::view::ServiceView;

/// The path of kube-proxy's answers on a Service's health check port.
const HEALTHZ: &str = "/healthz";

/// Whose checks are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthCheckChoice {
    /// Right for both traffic policies in a cloud of cloudkeel's own configuration file; elsewhere as the provider's Go
    /// counterpart does it.
    #[default]
    Auto,
    /// As the provider's Go counterpart does it, so that a swap changes nothing.
    Compatible,
    /// Right for both traffic policies: `Local` asks for endpoints on the Node, `Cluster` connects to
    /// the node port.
    NodePort,
    /// As `NodePort`, but `Cluster` asks kube-proxy, which knows of Nodes that are about to go.
    KubeProxy,
}

impl HealthCheckChoice {
    /// The policy that applies with a provider whose own is `provider`, and whether the cloud is configured in
    /// cloudkeel's own file, not as its Go counterpart is.
    pub fn over(self, provider: HealthCheckPolicy, is_own_config: bool) -> HealthCheckPolicy {
        let ignores_endpoints = matches!(
            provider,
            HealthCheckPolicy::NodePort | HealthCheckPolicy::Off
        );
        match self {
            Self::Auto if is_own_config && ignores_endpoints => HealthCheckPolicy::LocalAware,
            Self::Auto | Self::Compatible => provider,
            Self::NodePort => HealthCheckPolicy::LocalAware,
            Self::KubeProxy => HealthCheckPolicy::kube_proxy(),
        }
    }
}

/// What the neutral annotations of a Service say about its checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CheckOptions {
    protocol: Option<CheckProtocol>,
    port: Option<u16>,
    path: Option<String>,
    interval: Option<Duration>,
    timeout: Option<Duration>,
    retries: Option<u32>,
    healthy_threshold: Option<u32>,
}

impl CheckOptions {
    /// Reads the annotations and notes everything that is wrong with them.
    pub(super) fn read(service: &ServiceView, problems: &mut Problems) -> Self {
        let options = Self {
            protocol: annotation(&names::LB_HEALTH_CHECK_PROTOCOL, service, problems),
            port: annotation(&names::LB_HEALTH_CHECK_PORT, service, problems),
            path: annotation(&names::LB_HEALTH_CHECK_PATH, service, problems),
            interval: annotation(&names::LB_HEALTH_CHECK_INTERVAL, service, problems),
            timeout: annotation(&names::LB_HEALTH_CHECK_TIMEOUT, service, problems),
            retries: annotation(&names::LB_HEALTH_CHECK_RETRIES, service, problems),
            healthy_threshold: annotation(
                &names::LB_HEALTH_CHECK_HEALTHY_THRESHOLD,
                service,
                problems,
            ),
        };
        options.refuse_nonsense(problems);
        options
    }

    fn refuse_nonsense(&self, problems: &mut Problems) {
        let mut refuse = |key: &str, value: String, expected: &str| {
            problems.push(Problem::unexpected(key, value, expected));
        };
        if self.port == Some(0) {
            let key = names::LB_HEALTH_CHECK_PORT.name();
            refuse(key, "0".into(), "a port from 1 to 65535");
        }
        // It is part of a request line that the balancer sends.
        let is_bad = |c: char| c.is_whitespace() || c.is_control();
        let is_path = |path: &str| path.starts_with('/') && !path.contains(is_bad);
        if let Some(path) = self.path.as_ref().filter(|path| !is_path(path)) {
            let key = names::LB_HEALTH_CHECK_PATH.name();
            let expected = "a path that begins with `/` and has no white space";
            refuse(key, path.clone(), expected);
        }
        if let (Some(CheckProtocol::Tcp), Some(path)) = (self.protocol, &self.path) {
            let key = names::LB_HEALTH_CHECK_PATH.name();
            refuse(key, path.clone(), "no path with a check by `tcp`");
        }
        for (key, value) in [
            (names::LB_HEALTH_CHECK_INTERVAL.name(), self.interval),
            (names::LB_HEALTH_CHECK_TIMEOUT.name(), self.timeout),
        ] {
            if value.is_some_and(|value| value.is_zero()) {
                refuse(key, "0s".into(), "more than no time");
            }
        }
        for (key, value) in [
            (names::LB_HEALTH_CHECK_RETRIES.name(), self.retries),
            (
                names::LB_HEALTH_CHECK_HEALTHY_THRESHOLD.name(),
                self.healthy_threshold,
            ),
        ] {
            if value == Some(0) {
                refuse(key, "0".into(), "at least 1");
            }
        }
    }

    /// A path alone asks for HTTP, because nothing else has one.
    fn probe(&self, usual: HealthProbe) -> HealthProbe {
        let (usual_way, usual_path) = match &usual {
            HealthProbe::Http { path } => (Some(CheckProtocol::Http), Some(path)),
            HealthProbe::Https { path } => (Some(CheckProtocol::Https), Some(path)),
            HealthProbe::Tcp | HealthProbe::UdpConnect | HealthProbe::Sctp => (None, None),
        };
        let implied = self.path.as_ref().map(|_| CheckProtocol::Http);
        let path = self.path.as_ref().or(usual_path);
        let path = path.map_or_else(|| "/".to_owned(), String::clone);
        match self.protocol.or(usual_way).or(implied) {
            Some(CheckProtocol::Tcp) => HealthProbe::Tcp,
            Some(CheckProtocol::Http) => HealthProbe::Http { path },
            Some(CheckProtocol::Https) => HealthProbe::Https { path },
            None => usual,
        }
    }

    /// The check of a listener: the usual one of the policy with the annotations on top.
    pub(super) fn check(
        &self,
        service: &ServiceView,
        protocol: Protocol,
        policy: &HealthCheckPolicy,
    ) -> HealthCheck {
        let usual = usual(service, protocol, policy);
        HealthCheck {
            probe: self.probe(usual.probe),
            port: self.port.or(usual.port),
            interval: self.interval,
            timeout: self.timeout,
            unhealthy_threshold: self.retries,
            healthy_threshold: self.healthy_threshold,
        }
    }
}

fn usual(service: &ServiceView, protocol: Protocol, policy: &HealthCheckPolicy) -> HealthCheck {
    let http_on = |port, path: &str| HealthCheck {
        probe: HealthProbe::Http {
            path: path.to_owned(),
        },
        port: Some(port),
        ..HealthCheck::tcp()
    };
    let connect = HealthCheck {
        probe: match protocol {
            Protocol::Tcp => HealthProbe::Tcp,
            Protocol::Udp => HealthProbe::UdpConnect,
            Protocol::Sctp => HealthProbe::Sctp,
        },
        ..HealthCheck::tcp()
    };
    let endpoints_port = match service.traffic_policy {
        TrafficPolicy::Local => service
            .health_check_node_port
            .and_then(|port| u16::try_from(port).ok()),
        TrafficPolicy::Cluster => None,
    };
    match (policy, endpoints_port) {
        (HealthCheckPolicy::LocalAware | HealthCheckPolicy::KubeProxy { .. }, Some(port)) => {
            http_on(port, HEALTHZ)
        }
        (HealthCheckPolicy::KubeProxy { port, path }, None) => http_on(*port, path),
        // With `Off` a provider makes no check unless an annotation asks for one; this is then
        // where the desired state starts from.
        (HealthCheckPolicy::NodePort | HealthCheckPolicy::Off, _)
        | (HealthCheckPolicy::LocalAware, None) => connect,
    }
}

#[cfg(test)]
mod tests;
