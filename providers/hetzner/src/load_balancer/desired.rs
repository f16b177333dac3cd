//! What a Service asks for: its annotations, else the configured defaults, else the neutral options.
//! Pure.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use cloudkeel_api::{self as api, KeyValue as _, LoadBalancerSpec};
use cloudkeel_toolkit::health::{CheckLimits, has_numbers, truncated};
use cloudkeel_toolkit::{AnnotationReader, Unread, balancer_name};
use ipnet::IpNet;

use super::owner_labels::Aspect;
use crate::annotations as key;
use crate::annotations::ServiceProtocol;
use crate::config::{Algorithm, BalancerDefaults};
use crate::wire::{ServiceCheckHttp, ServiceHttp};

/// The numbers of health checks that the cloud takes.
pub(super) const LIMITS: CheckLimits = CheckLimits {
    interval: 3..=60,
    timeout: 1..=60,
    retries: 1..=5,
};

/// Everything that is asked for. `None` leaves a thing as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(super) name: String,
    pub(super) location: Option<String>,
    pub(super) network_zone: Option<String>,
    pub(super) load_balancer_type: Option<String>,
    pub(super) algorithm: Option<Algorithm>,
    /// Whether it has public addresses.
    pub(super) public: Option<bool>,
    pub(super) private_ingress: bool,
    pub(super) ipv6_ingress: bool,
    pub(super) hostname: Option<String>,
    pub(super) use_private_ip: bool,
    pub(super) private_ipv4: Option<Ipv4Addr>,
    pub(super) subnet: Option<IpNet>,
    pub(super) ipv4_ptr: Option<String>,
    pub(super) ipv6_ptr: Option<String>,
    pub(super) protocol: ServiceProtocol,
    pub(super) proxy_protocol: Option<bool>,
    pub(super) http: ServiceHttp,
    pub(super) certificates: DesiredCertificate,
    pub(super) check: DesiredCheck,
    /// What is asked for and cannot be done, in words.
    pub(super) unsupported: Vec<String>,
    /// Annotations that cannot be read. What they are about is left as it is.
    pub(super) unread: Unread<Part>,
    /// What the Service asks for by an annotation of its own.
    pub(super) aspects: BTreeSet<Aspect>,
}

/// The part of a balancer that an annotation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its targets.
    Targets,
    /// Its services.
    Services,
    /// Its place in the network.
    Network,
    /// Anything that stands for itself.
    Itself,
}

/// What is asked for of health checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DesiredCheck {
    pub(super) protocol: Option<ServiceProtocol>,
    pub(super) port: Option<u16>,
    pub(super) interval: Option<u64>,
    pub(super) timeout: Option<u64>,
    pub(super) retries: Option<u32>,
    pub(super) http: ServiceCheckHttp,
}

impl DesiredCheck {
    /// With what the settings say for all in place of what is not asked for.
    fn or_else(self, defaults: &BalancerDefaults) -> Self {
        let interval = defaults.health_check_interval;
        let timeout = defaults.health_check_timeout;
        let interval = interval.map(|all| truncated(all, &LIMITS.interval));
        let timeout = timeout.map(|all| truncated(all, &LIMITS.timeout));
        Self {
            interval: self.interval.or(interval),
            timeout: self.timeout.or(timeout),
            retries: self.retries.or(defaults.health_check_retries),
            ..self
        }
    }

    /// Whether it is more than the usual check. What only counts for HTTP does not make it so.
    pub(super) const fn is_custom(&self) -> bool {
        self.protocol.is_some()
            || self.port.is_some()
            || self.interval.is_some()
            || self.timeout.is_some()
            || self.retries.is_some()
    }
}

/// The certificates of HTTPS services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DesiredCertificate {
    /// Nothing is said.
    None,
    /// Uploaded ones, by ID or name.
    Uploaded(Vec<String>),
    /// One that the cloud has issued.
    Managed {
        /// Its name.
        name: String,
        /// Its domains.
        domains: Vec<String>,
        /// Whether by the staging authority.
        staging: bool,
    },
    /// Something that there cannot be.
    Impossible(String),
}

type Reader<'a> = AnnotationReader<'a, Part>;

impl Desired {
    /// What the Service says in Hetzner's words, else in neutral ones, else what the settings say for all.
    pub(super) fn of(spec: &LoadBalancerSpec, defaults: &BalancerDefaults) -> Self {
        let options = &spec.options;
        let mut reader = Reader::new(&spec.balancer_ref.annotations, Part::Itself);
        reader.unsupported = LIMITS.out_of_range(spec);
        let disabled = reader.get(&key::DISABLE_PUBLIC_NETWORK);
        let disabled = disabled.or(options.internal);
        let algorithm = reader.get(&key::ALGORITHM_TYPE);
        let algorithm = algorithm.or_else(|| neutral_algorithm(&mut reader, options.algorithm));
        let load_balancer_type = reader.text(&key::TYPE).or_else(|| options.size.clone());
        let private_ingress = reader.get(&key::DISABLE_PRIVATE_INGRESS);
        let ipv6_ingress = reader.get(&key::IPV6_DISABLED);
        let name = reader.text(&key::NAME);
        let location = reader.text_or(&key::LOCATION, defaults.location.as_ref());
        let network_zone = reader.text_or(&key::NETWORK_ZONE, defaults.network_zone.as_ref());
        let hostname = reader.text(&key::HOSTNAME);
        let hostname = hostname.or_else(|| options.hostname.clone());
        let (ipv4_ptr, ipv6_ptr) = (reader.text(&key::IPV4_RDNS), reader.text(&key::IPV6_RDNS));
        let use_private_ip = reader.about(Part::Targets).get(&key::USE_PRIVATE_IP);
        let private_ipv4 = reader.about(Part::Network).get(&key::PRIVATE_IPV4);
        let subnet = reader.get(&key::PRIVATE_SUBNET_IP_RANGE);
        let proxy_protocol = reader.about(Part::Services).get(&key::USES_PROXYPROTOCOL);
        let neutral_proxy = options.proxy_protocol.map(|version| version.is_some());
        let proxy_protocol = proxy_protocol.or(neutral_proxy);
        let check = check(&mut reader);
        let protocol = reader.get(&key::PROTOCOL).unwrap_or(ServiceProtocol::Tcp);
        let (http, certificates) = (http(&mut reader), certificates(&mut reader, spec));
        let mut listeners = spec.listeners.iter();
        let neutral_check = listeners.any(|l| has_numbers(&l.health_check));
        let of_the_service = [
            (Aspect::Public, disabled.is_some()),
            (Aspect::Algorithm, algorithm.is_some()),
            (Aspect::Proxy, proxy_protocol.is_some()),
            (Aspect::Check, check.is_custom() || neutral_check),
        ];
        let aspects = of_the_service.into_iter().filter(|(_, is_asked)| *is_asked);
        let disabled = disabled.or(defaults.disable_public_network);
        let subnet = subnet.or(defaults.private_subnet_ip_range);
        let default_type = || defaults.load_balancer_type.clone();
        Self {
            name: name.unwrap_or_else(|| balancer_name(spec)),
            location,
            network_zone,
            load_balancer_type: load_balancer_type.or_else(default_type),
            algorithm: algorithm.or(defaults.algorithm),
            public: disabled.map(|disabled| !disabled),
            private_ingress: !private_ingress.unwrap_or(defaults.disable_private_ingress),
            ipv6_ingress: !ipv6_ingress.unwrap_or(defaults.disable_ipv6),
            hostname,
            use_private_ip: use_private_ip.unwrap_or(defaults.use_private_ip),
            private_ipv4,
            // A network, also if it was written as an address in it.
            subnet: subnet.map(|net| net.trunc()),
            ipv4_ptr,
            ipv6_ptr,
            protocol,
            proxy_protocol: proxy_protocol.or(defaults.uses_proxy_protocol),
            http,
            certificates,
            check: check.or_else(defaults),
            unsupported: std::mem::take(&mut reader.unsupported),
            unread: reader.into_unread(),
            aspects: aspects.map(|(aspect, _)| aspect).collect(),
        }
    }
}

/// What the neutral word means here, or that it means nothing.
fn neutral_algorithm(
    reader: &mut Reader<'_>,
    algorithm: Option<api::Algorithm>,
) -> Option<Algorithm> {
    match algorithm? {
        api::Algorithm::RoundRobin => Some(Algorithm::RoundRobin),
        api::Algorithm::LeastConnections => Some(Algorithm::LeastConnections),
        api::Algorithm::SourceIp => {
            let why = "spread connections by client address";
            reader.unsupported.push(why.to_owned());
            None
        }
    }
}

fn http(reader: &mut Reader<'_>) -> ServiceHttp {
    ServiceHttp {
        cookie_name: reader.text(&key::HTTP_COOKIE_NAME),
        cookie_lifetime: reader.seconds(&key::HTTP_COOKIE_LIFETIME, 1),
        timeout_idle: reader.seconds(&key::HTTP_TIMEOUT_IDLE, 1),
        redirect_http: reader.get(&key::HTTP_REDIRECT_HTTP),
        sticky_sessions: reader.get(&key::HTTP_STICKY_SESSIONS),
        certificates: None,
    }
}

fn certificates(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> DesiredCertificate {
    let uploaded = reader.get(&key::HTTP_CERTIFICATES);
    let name = reader.text(&key::HTTP_MANAGED_CERTIFICATE_NAME);
    let domains = reader.get(&key::HTTP_MANAGED_CERTIFICATE_DOMAINS);
    let staging = reader.get(&key::HTTP_MANAGED_CERTIFICATE_ACME_STAGING);
    if reader.get(&key::CERTIFICATE_TYPE).as_deref() != Some("managed") {
        return uploaded.map_or(DesiredCertificate::None, DesiredCertificate::Uploaded);
    }
    let domains = domains.unwrap_or_default();
    if domains.is_empty() {
        let key = key::HTTP_MANAGED_CERTIFICATE_DOMAINS.name();
        return DesiredCertificate::Impossible(format!(
            "{key} is required for a managed certificate"
        ));
    }
    let uid = &spec.balancer_ref.service.uid;
    DesiredCertificate::Managed {
        name: name.unwrap_or_else(|| format!("ccm-managed-certificate-{uid}")),
        domains,
        // A value that is no boolean counts as false.
        staging: staging.is_some_and(|text| bool::parse(&text).unwrap_or(false)),
    }
}

fn check(reader: &mut Reader<'_>) -> DesiredCheck {
    let (interval, timeout) = (*LIMITS.interval.start(), *LIMITS.timeout.start());
    DesiredCheck {
        protocol: reader.get(&key::HEALTH_CHECK_PROTOCOL),
        port: reader.get(&key::HEALTH_CHECK_PORT),
        interval: reader.seconds(&key::HEALTH_CHECK_INTERVAL, interval),
        timeout: reader.seconds(&key::HEALTH_CHECK_TIMEOUT, timeout),
        retries: reader.get(&key::HEALTH_CHECK_RETRIES),
        http: ServiceCheckHttp {
            domain: reader.text(&key::HEALTH_CHECK_HTTP_DOMAIN),
            path: reader.text(&key::HEALTH_CHECK_HTTP_PATH),
            tls: reader.get(&key::HEALTH_CHECK_HTTP_VALIDATE_CERTIFICATE),
            status_codes: reader.get(&key::HTTP_STATUS_CODES),
        },
    }
}
