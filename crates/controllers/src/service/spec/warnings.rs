//! What a Service asks for that is unsupported, misspelled or deprecated.

use cloudkeel_api::{
    Affinity, Features, HealthCheck, HealthProbe, LoadBalancerSpec, Protocol, ProxyProtocol,
    Severity, TrafficPolicy, UnknownAnnotation, names, unknown_annotations,
};

use crate::service::owner::ServiceOwner;
use crate::view::ServiceView;
use crate::wellknown::SOURCE_RANGES_ANNOTATION;

/// Something that the owner of a Service should know, and that keeps nothing from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The reason of its Event.
    pub reason: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it says.
    pub message: String,
}

impl Warning {
    const fn new(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            severity: Severity::Warning,
            message,
        }
    }

    fn unsupported(key: &str, what: &str) -> Self {
        let message = format!("{key}: this cloud's load balancers cannot {what}");
        Self::new("UnsupportedLoadBalancerOption", message)
    }

    /// The clouds whose Nodes a balancer of this type should send traffic to, and cannot.
    pub fn of_other_clouds(owner: &ServiceOwner, features: Features) -> Option<Self> {
        let others = owner.target_clouds.iter();
        let others: Vec<_> = others.filter(|cloud| **cloud != owner.cloud).collect();
        let is_lacking = !others.is_empty() && !features.targets_by_address;
        let names: Vec<_> = others.into_iter().map(String::as_str).collect();
        is_lacking.then(|| {
            let message = format!(
                "loadBalancers.targets.clouds: load balancers of this type in {} cannot send traffic to Nodes of {}",
                owner.cloud,
                names.join(", ")
            );
            Self::new("UnsupportedLoadBalancerOption", message)
        })
    }

    /// What still works, unless there is the better way too.
    fn superseded(key: &str, by: &str, has_both: bool) -> Self {
        if has_both {
            let message = format!("{key} has no effect: {by} wins");
            return Self::new("OverruledLoadBalancerOption", message);
        }
        let message = format!("{key} is deprecated: use {by}");
        Self {
            severity: Severity::Normal,
            ..Self::new("DeprecatedLoadBalancerOption", message)
        }
    }
}

impl From<UnknownAnnotation> for Warning {
    fn from(UnknownAnnotation { name, nearest }: UnknownAnnotation) -> Self {
        let nearest = nearest.map(|near| format!(": did you mean {near}?"));
        let nearest = nearest.unwrap_or_default();
        let message = format!("{name} is not a known annotation{nearest}");
        Self::new("UnknownAnnotation", message)
    }
}

const ADDRESS_FIELD: &str = "spec.loadBalancerIP";
const RANGES_FIELD: &str = "spec.loadBalancerSourceRanges";

/// All warnings about a Service, in a stable order.
pub(super) fn gather(
    service: &ServiceView,
    spec: &LoadBalancerSpec,
    features: Features,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(unsupported_ports(spec, features));
    warnings.extend(unsupported_options(service, spec, features));
    warnings.extend(superseded(service));
    warnings.extend(ignored_endpoints(service, spec));
    let known = names::annotation_docs();
    let unknown = unknown_annotations(names::ANNOTATION_PREFIX, &known, &service.annotations);
    warnings.extend(unknown.into_iter().map(Warning::from));
    warnings
}

fn unsupported_ports(
    spec: &LoadBalancerSpec,
    features: Features,
) -> impl Iterator<Item = Warning> + '_ {
    let lacking = spec.listeners.iter().enumerate();
    let lacking = lacking.filter_map(move |(index, listener)| {
        let what = match listener.protocol {
            Protocol::Udp if !features.udp => "listen on UDP",
            Protocol::Sctp if !features.sctp => "listen on SCTP",
            _ => return None,
        };
        let key = format!("spec.ports[{index}].protocol");
        Some(Warning::unsupported(&key, what))
    });
    let uses = |protocol| spec.listeners.iter().any(|l| l.protocol == protocol);
    let mixed = !features.mixed_protocols && uses(Protocol::Tcp) && uses(Protocol::Udp);
    let mixed = mixed.then(|| Warning::unsupported("spec.ports", "listen on TCP and UDP at once"));
    lacking.chain(mixed)
}

fn unsupported_options(
    service: &ServiceView,
    spec: &LoadBalancerSpec,
    features: Features,
) -> Vec<Warning> {
    let options = &spec.options;
    let has = |key: &str| service.annotations.contains_key(key);
    let ranges_key = if service.source_ranges.is_empty() {
        SOURCE_RANGES_ANNOTATION
    } else {
        RANGES_FIELD
    };
    let address_key = if has(names::LB_IP.name()) {
        names::LB_IP.name()
    } else {
        ADDRESS_FIELD
    };
    let asks_for_address = spec.address.is_some() || service.load_balancer_ip.is_some();
    let proxied = options.proxy_protocol.flatten();
    let used = proxied.and_then(|version| features.proxy_protocol.instead_of(version));
    [
        (
            !spec.source_ranges.is_empty() && !features.source_ranges,
            ranges_key,
            "restrict who may connect",
        ),
        (
            spec.affinity != Affinity::None && !features.client_affinity,
            "spec.sessionAffinity",
            "keep a client on its backend",
        ),
        (
            spec.families.len() > 1 && !features.dual_stack,
            "spec.ipFamilies",
            "have IPv4 and IPv6 at once",
        ),
        (
            asks_for_address && !features.chosen_address,
            address_key,
            "be given an address",
        ),
        (
            options.internal == Some(true) && !features.internal,
            names::LB_INTERNAL.name(),
            "be internal",
        ),
        (
            proxied.is_some() && used != proxied,
            names::LB_PROXY_PROTOCOL.name(),
            match used {
                None => "speak the PROXY protocol",
                Some(ProxyProtocol::V1) => {
                    "speak version 2 of the PROXY protocol, so version 1 is used"
                }
                Some(ProxyProtocol::V2) => {
                    "speak version 1 of the PROXY protocol, so version 2 is used"
                }
            },
        ),
        (
            has(names::LB_HEALTH_CHECK_HEALTHY_THRESHOLD.name()) && !features.healthy_threshold,
            names::LB_HEALTH_CHECK_HEALTHY_THRESHOLD.name(),
            "count successes of health checks",
        ),
    ]
    .into_iter()
    .filter(|(lacking, _, _)| *lacking)
    .map(|(_, key, what)| Warning::unsupported(key, what))
    .collect()
}

/// With the policy `Local`, only kube-proxy's health check port says which Nodes have an endpoint. A cloud's own
/// annotations of health checks may ask it, so a Service with any of them is left to its owner.
fn ignored_endpoints(service: &ServiceView, spec: &LoadBalancerSpec) -> Option<Warning> {
    let port = spec.health_check_node_port?;
    let is_plain = |check: &HealthCheck| check.port.is_none() && check.probe == HealthProbe::Tcp;
    let mut checks = spec.listeners.iter().map(|listener| &listener.health_check);
    let asks_itself = service.annotations.keys().any(|key| key.contains("health"));
    let is_ignored = spec.traffic_policy == TrafficPolicy::Local && checks.any(is_plain);
    (is_ignored && !asks_itself).then(|| {
        let message = format!(
            "externalTrafficPolicy is Local, but the health check connects to the node port: it does not ask port {port}, \
             where Nodes say whether they have an endpoint. Set --load-balancer-health-checks=node-port, or \
             {}={port} and {}=/healthz",
            names::LB_HEALTH_CHECK_PORT.name(),
            names::LB_HEALTH_CHECK_PATH.name(),
        );
        Warning {
            severity: Severity::Normal,
            ..Warning::new("HealthCheckIgnoresEndpoints", message)
        }
    })
}

fn superseded(service: &ServiceView) -> impl Iterator<Item = Warning> {
    let has = |key: &str| service.annotations.contains_key(key);
    let has_both = !service.source_ranges.is_empty();
    let ranges = has(SOURCE_RANGES_ANNOTATION)
        .then(|| Warning::superseded(SOURCE_RANGES_ANNOTATION, RANGES_FIELD, has_both));
    let by = names::LB_IP.name();
    let address = service.load_balancer_ip.as_ref();
    let address = address.map(|_| Warning::superseded(ADDRESS_FIELD, by, has(by)));
    ranges.into_iter().chain(address)
}
