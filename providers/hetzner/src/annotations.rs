//! Hetzner's own annotations of Services. They win over the neutral ones.

use std::net::Ipv4Addr;
use std::time::Duration;

use cloudkeel_api::{AnnotationKey, Documented, KeyDoc, KeyValue, LabelSelector};
use ipnet::IpNet;

use crate::config::Algorithm;

/// The prefix of all of them.
pub const PREFIX: &str = "load-balancer.hetzner.cloud/";

/// The protocol of a service or a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ServiceProtocol {
    /// Connections are passed on.
    Tcp,
    /// Requests are passed on.
    Http,
    /// TLS ends at the balancer, requests are passed on.
    Https,
}

impl ServiceProtocol {
    /// As the API spells it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl KeyValue for ServiceProtocol {
    const TYPE: &'static str = "tcp, http or https";

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_lowercase().as_str() {
            "tcp" => Ok(Self::Tcp),
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            _ => Err("`tcp`, `http` or `https`".to_owned()),
        }
    }
}

/// An IPv4 address, the only family of private networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrivateIp(pub(crate) Ipv4Addr);

impl KeyValue for PrivateIp {
    const TYPE: &'static str = "IPv4 address";

    fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.parse().map(Self);
        parsed.map_err(|_| "an IPv4 address such as `10.0.0.5`".to_owned())
    }
}

/// Declares every annotation once: the constant, its type, its name and its meaning.
macro_rules! annotations {
    ($($(#[default($default:literal)])? $key:ident: $type:ty = $name:literal, $help:literal;)+) => {
        $(
            #[doc = concat!("Service annotation `", "load-balancer.hetzner.cloud/", $name, "`.")]
            pub(crate) const $key: AnnotationKey<$type> =
                AnnotationKey::new(concat!("load-balancer.hetzner.cloud/", $name), $help)
                    $(.with_default($default))?;
        )+

        /// Every annotation, for the reference page and for finding typos.
        pub(crate) fn docs() -> Vec<KeyDoc> {
            let keys: &[&dyn Documented] = &[$(&$key),+];
            keys.iter().map(|key| key.doc()).collect()
        }
    };
}

annotations! {
    NAME: String = "name",
        "The name of the load balancer. Without it, `a` and the UID of the Service. A change renames it.";
    LOCATION: String = "location",
        "Where the load balancer is made, such as `fsn1`. An empty value takes the configured default \
         away. Later changes have no effect.";
    NETWORK_ZONE: String = "network-zone",
        "The zone where the load balancer is made, such as `eu-central`, if no location is given. An \
         empty value takes the configured default away. Later changes have no effect.";
    TYPE: String = "type",
        "The type of the load balancer, such as `lb11`. Without it and without a configured default, \
         `lb11` when it is made and untouched later.";
    ALGORITHM_TYPE: Algorithm = "algorithm-type",
        "How connections are spread: `round_robin` or `least_connections`. Untouched if it was never \
         given.";
    DISABLE_PUBLIC_NETWORK: bool = "disable-public-network",
        "Whether the load balancer has no public addresses. Untouched if it was never given.";
    DISABLE_PRIVATE_INGRESS: bool = "disable-private-ingress",
        "Whether private addresses are left out of the Service's status.";
    USE_PRIVATE_IP: bool = "use-private-ip",
        "Whether targets are reached through the private network.";
    PRIVATE_IPV4: PrivateIp = "private-ipv4",
        "The address of the load balancer in the private network.";
    PRIVATE_SUBNET_IP_RANGE: IpNet = "private-subnet-ip-range",
        "The subnet from which the load balancer gets its private address. Counts only when it is \
         attached to the network.";
    HOSTNAME: String = "hostname",
        "A name to publish in the Service's status in place of addresses.";
    IPV6_DISABLED: bool = "ipv6-disabled",
        "Whether the IPv6 address is left out of the Service's status.";
    IPV4_RDNS: String = "ipv4-rdns",
        "The reverse DNS name of the IPv4 address. Untouched if not given.";
    IPV6_RDNS: String = "ipv6-rdns",
        "The reverse DNS name of the IPv6 address. Untouched if not given.";
    NODE_SELECTOR: LabelSelector = "node-selector",
        "Only Nodes that match this label selector are targets.";
    #[default("tcp")]
    PROTOCOL: ServiceProtocol = "protocol",
        "The protocol of every port.";
    USES_PROXYPROTOCOL: bool = "uses-proxyprotocol",
        "Whether targets are told the client's address by PROXY protocol. Untouched if it was never \
         given.";
    HTTP_COOKIE_NAME: String = "http-cookie-name",
        "The name of the cookie of sticky sessions.";
    HTTP_COOKIE_LIFETIME: Duration = "http-cookie-lifetime",
        "How long the cookie of sticky sessions lives. A duration, sent in whole seconds.";
    HTTP_TIMEOUT_IDLE: Duration = "http-timeout-idle",
        "How long an idle connection is kept. A duration, sent in whole seconds.";
    HTTP_REDIRECT_HTTP: bool = "http-redirect-http",
        "Whether requests to port 80 are led to HTTPS.";
    HTTP_STICKY_SESSIONS: bool = "http-sticky-sessions",
        "Whether a client stays with its target.";
    #[default("uploaded")]
    CERTIFICATE_TYPE: String = "certificate-type",
        "`managed` has a certificate issued by Let's Encrypt; anything else is `uploaded`.";
    HTTP_CERTIFICATES: Vec<String> = "http-certificates",
        "Uploaded certificates for HTTPS, by ID or name.";
    HTTP_MANAGED_CERTIFICATE_NAME: String = "http-managed-certificate-name",
        "The name of the managed certificate. Without it, `ccm-managed-certificate-` and the UID of \
         the Service.";
    HTTP_MANAGED_CERTIFICATE_DOMAINS: Vec<String> = "http-managed-certificate-domains",
        "The domains of the managed certificate. Required for one.";
    HTTP_MANAGED_CERTIFICATE_ACME_STAGING: String = "http-managed-certificate-acme-staging",
        "`true` has the managed certificate issued by the staging authority.";
    HEALTH_CHECK_PROTOCOL: ServiceProtocol = "health-check-protocol",
        "How targets are checked. Without it, TCP, or the protocol of the port if another setting of \
         the check is given.";
    HEALTH_CHECK_PORT: u16 = "health-check-port",
        "On which port targets are checked. Without it, the node port.";
    HEALTH_CHECK_INTERVAL: Duration = "health-check-interval",
        "The pause between two checks. A duration, sent in whole seconds; less than one is the least that \
         the API takes.";
    HEALTH_CHECK_TIMEOUT: Duration = "health-check-timeout",
        "How long a check may take. A duration, sent in whole seconds.";
    HEALTH_CHECK_RETRIES: u32 = "health-check-retries",
        "How often a check fails until the target gets no traffic.";
    HEALTH_CHECK_HTTP_DOMAIN: String = "health-check-http-domain",
        "The host that an HTTP check asks for.";
    HEALTH_CHECK_HTTP_PATH: String = "health-check-http-path",
        "The path that an HTTP check asks for.";
    HEALTH_CHECK_HTTP_VALIDATE_CERTIFICATE: bool = "health-check-http-validate-certificate",
        "Whether an HTTP check looks at the certificate of the target.";
    HTTP_STATUS_CODES: Vec<String> = "http-status-codes",
        "The status codes that an HTTP check takes for healthy, such as `2??,3??`.";
    ID: String = "id",
        "Has no effect: neither written nor read, as before.";
    IPV4: String = "ipv4",
        "Has no effect: neither written nor read, as before.";
    IPV6: String = "ipv6",
        "Has no effect: neither written nor read, as before.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_annotations_stand_under_the_prefix_and_say_what_they_do() {
        let docs = docs();
        let names: BTreeSet<_> = docs.iter().map(|doc| doc.name).collect();
        assert_eq!(names.len(), docs.len());
        for doc in docs {
            assert!(doc.name.starts_with(PREFIX), "{}", doc.name);
            assert!(doc.help.ends_with('.'), "{}", doc.name);
        }
    }
}
