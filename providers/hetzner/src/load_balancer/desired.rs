//! What a Service asks for: its annotations, else the configured defaults, else the neutral options.
//! Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use cloudkeel_api::{
    self as api, AnnotationKey, CloudError, KeyValue, LabelSelector, LoadBalancerSpec, Problems,
};
use ipnet::IpNet;

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
    pub(super) nodes: LabelSelector,
    pub(super) protocol: ServiceProtocol,
    pub(super) proxy_protocol: Option<bool>,
    pub(super) http: DesiredHttp,
    pub(super) certificates: CertificateWish,
    pub(super) check: DesiredCheck,
    /// What is asked for and cannot be had, in words.
    pub(super) not_honoured: Vec<String>,
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
}

/// Reads annotations and gathers everything that is wrong.
struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    problems: Problems,
}

impl Reader<'_> {
    fn get<T: KeyValue>(&mut self, key: &AnnotationKey<T>) -> Option<T> {
        let read = key.get(self.annotations);
        self.problems.note(read)?
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

    fn seconds(&mut self, key: &AnnotationKey<Duration>) -> Option<u64> {
        self.get(key).map(|duration| duration.as_secs())
    }
}

impl Desired {
    /// What the Service says in Hetzner's words, else in neutral ones, else what the settings say for all.
    pub(super) fn of(
        spec: &LoadBalancerSpec,
        defaults: &BalancerDefaults,
    ) -> Result<Self, CloudError> {
        let options = &spec.options;
        let mut reader = Reader {
            annotations: &spec.claim.annotations,
            problems: Problems::new(),
        };
        let (neutral_algorithm, not_honoured) = neutral_algorithm(options.algorithm);
        let disabled = reader
            .get(&key::DISABLE_PUBLIC_NETWORK)
            .or(options.internal)
            .or(defaults.disable_public_network);
        let private_ingress = reader.get(&key::DISABLE_PRIVATE_INGRESS);
        let ipv6_ingress = reader.get(&key::IPV6_DISABLED);
        let use_private_ip = reader.get(&key::USE_PRIVATE_IP);
        let subnet = reader.get(&key::PRIVATE_SUBNET_IP_RANGE);
        let proxy_protocol = reader.get(&key::USES_PROXYPROTOCOL);
        let neutral_proxy = options.proxy_protocol.map(|version| version.is_some());
        let kind = reader.text(&key::TYPE);
        let asked = Self {
            name: name(&mut reader, spec),
            location: reader.or_default(&key::LOCATION, defaults.location.as_ref()),
            network_zone: reader.or_default(&key::NETWORK_ZONE, defaults.network_zone.as_ref()),
            kind: kind.or_else(|| options.size.clone().or_else(|| defaults.kind.clone())),
            algorithm: reader
                .get(&key::ALGORITHM_TYPE)
                .or(neutral_algorithm)
                .or(defaults.algorithm),
            public: disabled.map(|disabled| !disabled),
            private_ingress: !private_ingress.unwrap_or(defaults.disable_private_ingress),
            ipv6_ingress: !ipv6_ingress.unwrap_or(defaults.disable_ipv6),
            hostname: reader
                .text(&key::HOSTNAME)
                .or_else(|| options.hostname.clone()),
            use_private_ip: use_private_ip.unwrap_or(defaults.use_private_ip),
            private_ipv4: reader.get(&key::PRIVATE_IPV4).map(|ip| ip.0),
            subnet: subnet.or(defaults.private_subnet_ip_range),
            ipv4_ptr: reader.text(&key::IPV4_RDNS),
            ipv6_ptr: reader.text(&key::IPV6_RDNS),
            nodes: reader.get(&key::NODE_SELECTOR).unwrap_or_default(),
            protocol: reader.get(&key::PROTOCOL).unwrap_or(ServiceProtocol::Tcp),
            proxy_protocol: proxy_protocol
                .or(neutral_proxy)
                .or(defaults.uses_proxy_protocol),
            http: http(&mut reader),
            certificates: certificates(&mut reader, spec),
            check: check(&mut reader, defaults),
            not_honoured,
        };
        if !reader.problems.is_empty() {
            let problems = reader.problems.to_string();
            return Err(CloudError::invalid(OPERATION, problems));
        }
        asked.check_certificates()?;
        Ok(asked)
    }

    fn check_certificates(&self) -> Result<(), CloudError> {
        match &self.certificates {
            CertificateWish::Managed { domains, .. } if domains.is_empty() => {
                let message = format!(
                    "{} is required for a managed certificate",
                    key::HTTP_MANAGED_CERTIFICATE_DOMAINS.name()
                );
                Err(CloudError::invalid(OPERATION, message))
            }
            _ => Ok(()),
        }
    }
}

fn name(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> String {
    let given = reader
        .text(&key::NAME)
        .or_else(|| spec.options.name.clone());
    given.unwrap_or_else(|| spec.claim.service.default_balancer_name())
}

/// What the neutral word means here, or that it means nothing.
fn neutral_algorithm(algorithm: Option<api::Algorithm>) -> (Option<Algorithm>, Vec<String>) {
    match algorithm {
        None => (None, Vec::new()),
        Some(api::Algorithm::RoundRobin) => (Some(Algorithm::RoundRobin), Vec::new()),
        Some(api::Algorithm::LeastConnections) => (Some(Algorithm::LeastConnections), Vec::new()),
        Some(api::Algorithm::SourceIp) => {
            let why = "spread connections by client address";
            (None, vec![why.to_owned()])
        }
    }
}

fn http(reader: &mut Reader<'_>) -> DesiredHttp {
    DesiredHttp {
        cookie_name: reader.text(&key::HTTP_COOKIE_NAME),
        cookie_lifetime: reader.seconds(&key::HTTP_COOKIE_LIFETIME),
        timeout_idle: reader.seconds(&key::HTTP_TIMEOUT_IDLE),
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
    let uid = &spec.claim.service.uid;
    CertificateWish::Managed {
        name: name.unwrap_or_else(|| format!("ccm-managed-certificate-{uid}")),
        domains: domains.unwrap_or_default(),
        // A value that is no boolean counts as false.
        staging: staging.is_some_and(|text| bool::parse(&text).unwrap_or(false)),
    }
}

fn check(reader: &mut Reader<'_>, defaults: &BalancerDefaults) -> DesiredCheck {
    let whole = |duration: Option<Duration>| duration.map(|duration| duration.as_secs());
    let interval = reader.seconds(&key::HEALTH_CHECK_INTERVAL);
    let timeout = reader.seconds(&key::HEALTH_CHECK_TIMEOUT);
    let retries = reader.get(&key::HEALTH_CHECK_RETRIES);
    DesiredCheck {
        protocol: reader.get(&key::HEALTH_CHECK_PROTOCOL),
        port: reader.get(&key::HEALTH_CHECK_PORT),
        interval: interval.or_else(|| whole(defaults.health_check_interval)),
        timeout: timeout.or_else(|| whole(defaults.health_check_timeout)),
        retries: retries.or(defaults.health_check_retries),
        domain: reader.text(&key::HEALTH_CHECK_HTTP_DOMAIN),
        path: reader.text(&key::HEALTH_CHECK_HTTP_PATH),
        tls: reader.get(&key::HEALTH_CHECK_HTTP_VALIDATE_CERTIFICATE),
        status_codes: reader.get(&key::HTTP_STATUS_CODES),
    }
}
