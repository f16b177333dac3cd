//! What a Service asks for: its annotations, else the configured defaults, else the neutral options.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use cloudkeel_api::{self as api, AnnotationKey, CloudError, KeyValue, LoadBalancerSpec, Problem};
use ipnet::IpNet;

use super::limits;
use super::marks::Aspect;
use crate::annotations as key;
use crate::annotations::ServiceProtocol;
use crate::config::{Algorithm, BalancerDefaults};

const OPERATION: &str = "read annotations";

/// Everything that is asked for. `None` leaves a thing as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) name: String,
    pub(super) location: Option<String>,
    pub(super) network_zone: Option<String>,
    pub(super) kind: Option<String>,
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
    pub(super) http: DesiredHttp,
    pub(super) certificates: CertificateWish,
    pub(super) check: DesiredCheck,
    /// What is asked for and cannot be had, in words.
    pub(super) not_honoured: Vec<String>,
    /// Annotations that cannot be read. What they are about is left as it is.
    pub(super) unread: Vec<(Part, Problem)>,
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

/// What is asked for of HTTP services.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DesiredHttp {
    pub(super) cookie_name: Option<String>,
    pub(super) cookie_lifetime: Option<u64>,
    pub(super) timeout_idle: Option<u64>,
    pub(super) redirect_http: Option<bool>,
    pub(super) sticky_sessions: Option<bool>,
}

/// What is asked for of health checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DesiredCheck {
    pub(super) protocol: Option<ServiceProtocol>,
    pub(super) port: Option<u16>,
    pub(super) interval: Option<u64>,
    pub(super) timeout: Option<u64>,
    pub(super) retries: Option<u32>,
    pub(super) domain: Option<String>,
    pub(super) path: Option<String>,
    pub(super) tls: Option<bool>,
    pub(super) status_codes: Option<Vec<String>>,
}

impl DesiredCheck {
    /// With what the settings say for all in place of what is not asked for.
    fn or_else(self, defaults: &BalancerDefaults) -> Self {
        let interval = defaults.health_check_interval;
        let timeout = defaults.health_check_timeout;
        Self {
            interval: self
                .interval
                .or_else(|| interval.map(|all| limits::truncated(all, *limits::INTERVAL.start()))),
            timeout: self
                .timeout
                .or_else(|| timeout.map(|all| limits::truncated(all, *limits::TIMEOUT.start()))),
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
pub(super) enum CertificateWish {
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

/// Reads annotations and gathers everything that is wrong.
struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    unread: Vec<(Part, Problem)>,
    not_honoured: Vec<String>,
    /// What is being read.
    part: Part,
}

impl Reader<'_> {
    fn get<T: KeyValue>(&mut self, key: &AnnotationKey<T>) -> Option<T> {
        key.get(self.annotations).unwrap_or_else(|problem| {
            self.unread.push((self.part, problem));
            None
        })
    }

    /// Reads what is about one part.
    fn of<T>(&mut self, part: Part, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.part, part);
        let read = read(self);
        self.part = outer;
        read
    }

    /// A text that is not empty.
    fn text(&mut self, key: &AnnotationKey<String>) -> Option<String> {
        self.get(key).filter(|text| !text.is_empty())
    }

    /// A text whose empty value takes the default away.
    fn or_default(
        &mut self,
        key: &AnnotationKey<String>,
        default: Option<&String>,
    ) -> Option<String> {
        match self.get(key) {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => default.cloned(),
        }
    }

    /// Whole seconds as the Go CCM sends them, but never none of them.
    fn seconds(&mut self, key: &AnnotationKey<Duration>, least: u64) -> Option<u64> {
        let asked = self.get(key)?;
        let seconds = limits::truncated(asked, least);
        if asked < Duration::from_secs(1) {
            let asked = api::format_go_duration(asked);
            let name = key.name();
            self.not_honoured
                .push(format!("do {name}: {asked}, so {seconds}s is used"));
        }
        Some(seconds)
    }
}

impl Desired {
    /// What the Service says in Hetzner's words, else in neutral ones, else what the settings say for all.
    pub(super) fn of(spec: &LoadBalancerSpec, defaults: &BalancerDefaults) -> Self {
        let options = &spec.options;
        let mut reader = Reader {
            annotations: &spec.claim.annotations,
            unread: Vec::new(),
            not_honoured: limits::out_of_range(spec),
            part: Part::Itself,
        };
        let mut aspects = BTreeSet::new();
        let mut of_the_service = |aspect: Aspect, is_asked: bool| {
            aspects.extend(is_asked.then_some(aspect));
        };
        let disabled = reader
            .get(&key::DISABLE_PUBLIC_NETWORK)
            .or(options.internal);
        of_the_service(Aspect::Public, disabled.is_some());
        let algorithm = reader.get(&key::ALGORITHM_TYPE);
        let algorithm = algorithm.or_else(|| neutral_algorithm(&mut reader, options.algorithm));
        of_the_service(Aspect::Algorithm, algorithm.is_some());
        let kind = reader.text(&key::TYPE).or_else(|| options.size.clone());
        let proxy_protocol = reader
            .of(Part::Services, |reader| {
                reader.get(&key::USES_PROXYPROTOCOL)
            })
            .or_else(|| options.proxy_protocol.map(|version| version.is_some()));
        of_the_service(Aspect::Proxy, proxy_protocol.is_some());
        let check = reader.of(Part::Services, check);
        let neutral_check = spec
            .listeners
            .iter()
            .any(|l| limits::has_numbers(&l.health_check));
        of_the_service(Aspect::Check, check.is_custom() || neutral_check);
        let private_ingress = reader.get(&key::DISABLE_PRIVATE_INGRESS);
        let ipv6_ingress = reader.get(&key::IPV6_DISABLED);
        let use_private_ip = reader.of(Part::Targets, |reader| reader.get(&key::USE_PRIVATE_IP));
        let (private_ipv4, subnet) = reader.of(Part::Network, |reader| {
            let ip = reader.get(&key::PRIVATE_IPV4);
            (ip, reader.get(&key::PRIVATE_SUBNET_IP_RANGE))
        });
        let protocol = reader.of(Part::Services, |reader| reader.get(&key::PROTOCOL));
        Self {
            name: name(&mut reader, spec),
            location: reader.or_default(&key::LOCATION, defaults.location.as_ref()),
            network_zone: reader.or_default(&key::NETWORK_ZONE, defaults.network_zone.as_ref()),
            kind: kind.or_else(|| defaults.kind.clone()),
            algorithm: algorithm.or(defaults.algorithm),
            public: disabled
                .or(defaults.disable_public_network)
                .map(|disabled| !disabled),
            private_ingress: !private_ingress.unwrap_or(defaults.disable_private_ingress),
            ipv6_ingress: !ipv6_ingress.unwrap_or(defaults.disable_ipv6),
            hostname: reader
                .text(&key::HOSTNAME)
                .or_else(|| options.hostname.clone()),
            use_private_ip: use_private_ip.unwrap_or(defaults.use_private_ip),
            private_ipv4: private_ipv4.map(|ip| ip.0),
            subnet: subnet.or(defaults.private_subnet_ip_range),
            ipv4_ptr: reader.text(&key::IPV4_RDNS),
            ipv6_ptr: reader.text(&key::IPV6_RDNS),
            protocol: protocol.unwrap_or(ServiceProtocol::Tcp),
            proxy_protocol: proxy_protocol.or(defaults.uses_proxy_protocol),
            http: reader.of(Part::Services, http),
            certificates: reader.of(Part::Services, |reader| certificates(reader, spec)),
            check: check.or_else(defaults),
            not_honoured: reader.not_honoured,
            unread: reader.unread,
            aspects,
        }
    }

    /// Everything that cannot be read, as an error. A balancer is not made by guessing.
    pub(super) fn check_readable(&self) -> Result<(), CloudError> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let problems: Vec<_> = self.unread.iter().map(|(_, why)| why.to_string()).collect();
        Err(CloudError::invalid(OPERATION, problems.join("; ")))
    }

    /// Whether something about this part cannot be read.
    pub(super) fn is_unreadable(&self, part: Part) -> bool {
        self.unread.iter().any(|(unread, _)| *unread == part)
    }
}

fn name(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> String {
    let given = reader
        .text(&key::NAME)
        .or_else(|| spec.options.name.clone());
    given.unwrap_or_else(|| spec.claim.service.default_balancer_name())
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
            reader.not_honoured.push(why.to_owned());
            None
        }
    }
}

fn http(reader: &mut Reader<'_>) -> DesiredHttp {
    DesiredHttp {
        cookie_name: reader.text(&key::HTTP_COOKIE_NAME),
        cookie_lifetime: reader.seconds(&key::HTTP_COOKIE_LIFETIME, 1),
        timeout_idle: reader.seconds(&key::HTTP_TIMEOUT_IDLE, 1),
        redirect_http: reader.get(&key::HTTP_REDIRECT_HTTP),
        sticky_sessions: reader.get(&key::HTTP_STICKY_SESSIONS),
    }
}

fn certificates(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> CertificateWish {
    let uploaded = reader.get(&key::HTTP_CERTIFICATES);
    let name = reader.text(&key::HTTP_MANAGED_CERTIFICATE_NAME);
    let domains = reader.get(&key::HTTP_MANAGED_CERTIFICATE_DOMAINS);
    let staging = reader.get(&key::HTTP_MANAGED_CERTIFICATE_ACME_STAGING);
    if reader.get(&key::CERTIFICATE_TYPE).as_deref() != Some("managed") {
        return uploaded.map_or(CertificateWish::None, CertificateWish::Uploaded);
    }
    let domains = domains.unwrap_or_default();
    if domains.is_empty() {
        let key = key::HTTP_MANAGED_CERTIFICATE_DOMAINS.name();
        return CertificateWish::Impossible(format!("{key} is required for a managed certificate"));
    }
    let uid = &spec.claim.service.uid;
    CertificateWish::Managed {
        name: name.unwrap_or_else(|| format!("ccm-managed-certificate-{uid}")),
        domains,
        // A value that is no boolean counts as false.
        staging: staging.is_some_and(|text| bool::parse(&text).unwrap_or(false)),
    }
}

fn check(reader: &mut Reader<'_>) -> DesiredCheck {
    let least = *limits::INTERVAL.start();
    DesiredCheck {
        protocol: reader.get(&key::HEALTH_CHECK_PROTOCOL),
        port: reader.get(&key::HEALTH_CHECK_PORT),
        interval: reader.seconds(&key::HEALTH_CHECK_INTERVAL, least),
        timeout: reader.seconds(&key::HEALTH_CHECK_TIMEOUT, *limits::TIMEOUT.start()),
        retries: reader.get(&key::HEALTH_CHECK_RETRIES),
        domain: reader.text(&key::HEALTH_CHECK_HTTP_DOMAIN),
        path: reader.text(&key::HEALTH_CHECK_HTTP_PATH),
        tls: reader.get(&key::HEALTH_CHECK_HTTP_VALIDATE_CERTIFICATE),
        status_codes: reader.get(&key::HTTP_STATUS_CODES),
    }
}
