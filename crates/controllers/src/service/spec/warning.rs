//! What a Service asks for in vain, in a strange spelling, or in a way that is going away.

use std::fmt;

use cloudkeel_api::{
    Affinity, Features, LoadBalancerSpec, Protocol, ProxyProtocol, Severity, UnknownAnnotation,
    names, unknown_annotations,
};

use crate::view::ServiceView;
use crate::wellknown::SOURCE_RANGES_ANNOTATION;

/// Something that the owner of a Service should know, and that stands in the way of nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Warning {
    /// The cloud's balancers cannot do this.
    Unsupported {
        /// The annotation or field that asks for it.
        key: String,
        /// What they cannot do.
        what: &'static str,
    },
    /// An annotation under our prefix that means nothing.
    Unknown {
        /// As it is written.
        key: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// It is overruled by something else on the Service.
    Overruled {
        /// What has no effect.
        key: &'static str,
        /// What has it instead.
        by: &'static str,
    },
    /// It still works, but there is a better way.
    Deprecated {
        /// What is used.
        key: &'static str,
        /// What to use instead.
        instead: &'static str,
    },
}

impl Warning {
    /// The stable word of its event.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "UnsupportedLoadBalancerOption",
            Self::Unknown { .. } => "UnknownAnnotation",
            Self::Overruled { .. } => "OverruledLoadBalancerOption",
            Self::Deprecated { .. } => "DeprecatedLoadBalancerOption",
        }
    }

    /// How much it matters.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Unsupported { .. } | Self::Unknown { .. } | Self::Overruled { .. } => {
                Severity::Warning
            }
            Self::Deprecated { .. } => Severity::Normal,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { key, what } => {
                write!(f, "{key}: this cloud's load balancers cannot {what}")
            }
            Self::Unknown { key, nearest } => {
                write!(f, "{key} is not a known annotation")?;
                nearest.map_or(Ok(()), |near| write!(f, ": did you mean {near}?"))
            }
            Self::Overruled { key, by } => write!(f, "{key} has no effect: {by} wins"),
            Self::Deprecated { key, instead } => {
                write!(f, "{key} is deprecated: use {instead}")
            }
        }
    }
}

impl From<UnknownAnnotation> for Warning {
    fn from(unknown: UnknownAnnotation) -> Self {
        Self::Unknown {
            key: unknown.name,
            nearest: unknown.nearest,
        }
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
    warnings.extend(unsupported_wishes(service, spec, features));
    warnings.extend(overruled_and_deprecated(service));
    let known = names::annotation_docs();
    warnings.extend(
        unknown_annotations(names::ANNOTATION_PREFIX, &known, &service.annotations)
            .into_iter()
            .map(Warning::from),
    );
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
        Some(Warning::Unsupported { key, what })
    });
    let uses = |protocol| spec.listeners.iter().any(|l| l.protocol == protocol);
    let mixed = !features.mixed_protocols && uses(Protocol::Tcp) && uses(Protocol::Udp);
    lacking.chain(mixed.then(|| Warning::Unsupported {
        key: "spec.ports".to_owned(),
        what: "listen on TCP and UDP at once",
    }))
}

fn unsupported_wishes(
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
    let wishes_address = spec.address.is_some() || service.load_balancer_ip.is_some();
    let proxied = options.proxy_protocol.flatten();
    let spoken = proxied.and_then(|version| features.proxy_protocol.instead_of(version));
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
            wishes_address && !features.chosen_address,
            address_key,
            "be given an address",
        ),
        (
            options.internal == Some(true) && !features.internal,
            names::LB_INTERNAL.name(),
            "be internal",
        ),
        (
            proxied.is_some() && spoken != proxied,
            names::LB_PROXY_PROTOCOL.name(),
            match spoken {
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
            options.drain.is_some() && !features.drain,
            names::LB_DRAIN_SECONDS.name(),
            "drain connections",
        ),
    ]
    .into_iter()
    .filter(|(lacking, _, _)| *lacking)
    .map(|(_, key, what)| Warning::Unsupported {
        key: key.to_owned(),
        what,
    })
    .collect()
}

fn overruled_and_deprecated(service: &ServiceView) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let has = |key: &str| service.annotations.contains_key(key);
    if has(SOURCE_RANGES_ANNOTATION) {
        warnings.push(if service.source_ranges.is_empty() {
            Warning::Deprecated {
                key: SOURCE_RANGES_ANNOTATION,
                instead: RANGES_FIELD,
            }
        } else {
            Warning::Overruled {
                key: SOURCE_RANGES_ANNOTATION,
                by: RANGES_FIELD,
            }
        });
    }
    if service.load_balancer_ip.is_some() {
        warnings.push(if has(names::LB_IP.name()) {
            Warning::Overruled {
                key: ADDRESS_FIELD,
                by: names::LB_IP.name(),
            }
        } else {
            Warning::Deprecated {
                key: ADDRESS_FIELD,
                instead: names::LB_IP.name(),
            }
        });
    }
    warnings
}
