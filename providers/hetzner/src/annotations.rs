//! Hetzner's own annotations of Services. They win over the neutral ones.

use std::net::Ipv4Addr;
use std::time::Duration;

use cloudkeel_api::LabelSelector;
use cloudkeel_toolkit::{annotations, keywords};
use ipnet::IpNet;

use crate::config::Algorithm;

keywords! {
    /// The protocol of a service or a health check.
    pub enum ServiceProtocol {
        /// Connections are passed on.
        Tcp = "tcp",
        /// Requests are passed on.
        Http = "http",
        /// TLS ends at the balancer, requests are passed on.
        Https = "https",
    }
}

annotations! {
    /// The prefix of all of them.
    pub const PREFIX = "load-balancer.hetzner.cloud/";

    NAME: String = "name",
        "The name of the load balancer. Without it, `a` and the UID of the Service. A change renames it.";
    LOCATION: String = "location",
        "The location of a new load balancer, such as `fsn1`. An empty value overrides the configured default. Later \
         changes have no effect.";
    NETWORK_ZONE: String = "network-zone",
        "The network zone of a new load balancer, such as `eu-central`, if no location is given. An empty value \
         overrides the configured default. Later changes have no effect.";
    TYPE: String = "type",
        "The type of the load balancer, such as `lb11`. Without it and without a configured default, `lb11` for a \
         new one, and not changed later.";
    ALGORITHM_TYPE: Algorithm = "algorithm-type",
        "How connections are distributed: `round_robin` or `least_connections`. Not changed if it was never given.";
    DISABLE_PUBLIC_NETWORK: bool = "disable-public-network",
        "Whether the load balancer has no public addresses. Not changed if it was never given.";
    DISABLE_PRIVATE_INGRESS: bool = "disable-private-ingress",
        "Whether private addresses are left out of the Service's status.";
    USE_PRIVATE_IP: bool = "use-private-ip",
        "Whether targets are reached through the private network.";
    PRIVATE_IPV4: Ipv4Addr = "private-ipv4",
        "The address of the load balancer in the private network.";
    PRIVATE_SUBNET_IP_RANGE: IpNet = "private-subnet-ip-range",
        "The subnet from which the load balancer gets its private address. Only used when the load balancer is \
         attached to the network.";
    HOSTNAME: String = "hostname",
        "A name to publish in the Service's status in place of addresses.";
    IPV6_DISABLED: bool = "ipv6-disabled",
        "Whether the IPv6 address is left out of the Service's status.";
    IPV4_RDNS: String = "ipv4-rdns",
        "The reverse DNS name of the IPv4 address. Not changed if not given.";
    IPV6_RDNS: String = "ipv6-rdns",
        "The reverse DNS name of the IPv6 address. Not changed if not given.";
    NODE_SELECTOR: LabelSelector = "node-selector",
        "Only Nodes that match this label selector are targets.";
    #[default("tcp")]
    PROTOCOL: ServiceProtocol = "protocol",
        "The protocol of every port.";
    USES_PROXYPROTOCOL: bool = "uses-proxyprotocol",
        "Whether the client's address is sent to targets by PROXY protocol. Not changed if it was never given.";
    HTTP_COOKIE_NAME: String = "http-cookie-name",
        "The name of the cookie of sticky sessions.";
    HTTP_COOKIE_LIFETIME: Duration = "http-cookie-lifetime",
        "The lifetime of the cookie of sticky sessions. A duration, sent in whole seconds.";
    HTTP_TIMEOUT_IDLE: Duration = "http-timeout-idle",
        "How long an idle connection is kept. A duration, sent in whole seconds.";
    HTTP_REDIRECT_HTTP: bool = "http-redirect-http",
        "Whether requests to port 80 are redirected to HTTPS.";
    HTTP_STICKY_SESSIONS: bool = "http-sticky-sessions",
        "Whether a client stays with its target.";
    #[default("uploaded")]
    CERTIFICATE_TYPE: String = "certificate-type",
        "`managed` for a certificate issued by Let's Encrypt; anything else means `uploaded`.";
    HTTP_CERTIFICATES: Vec<String> = "http-certificates",
        "Uploaded certificates for HTTPS, by ID or name.";
    HTTP_MANAGED_CERTIFICATE_NAME: String = "http-managed-certificate-name",
        "The name of the managed certificate. Without it, `ccm-managed-certificate-` and the UID of \
         the Service.";
    HTTP_MANAGED_CERTIFICATE_DOMAINS: Vec<String> = "http-managed-certificate-domains",
        "The domains of the managed certificate. Required for a managed certificate.";
    HTTP_MANAGED_CERTIFICATE_ACME_STAGING: String = "http-managed-certificate-acme-staging",
        "`true` to get the managed certificate from the staging CA.";
    HEALTH_CHECK_PROTOCOL: ServiceProtocol = "health-check-protocol",
        "The protocol of the health check. Without it, TCP, or the protocol of the port if another setting of \
         the check is given.";
    HEALTH_CHECK_PORT: u16 = "health-check-port",
        "The port of the health check. Without it, the node port.";
    HEALTH_CHECK_INTERVAL: Duration = "health-check-interval",
        "The interval between health checks. A duration, sent in whole seconds; less than one second becomes the \
         API's minimum.";
    HEALTH_CHECK_TIMEOUT: Duration = "health-check-timeout",
        "The timeout of a health check. A duration, sent in whole seconds.";
    HEALTH_CHECK_RETRIES: u32 = "health-check-retries",
        "Consecutive failures until a target gets no traffic.";
    HEALTH_CHECK_HTTP_DOMAIN: String = "health-check-http-domain",
        "The host of an HTTP health check.";
    HEALTH_CHECK_HTTP_PATH: String = "health-check-http-path",
        "The path of an HTTP health check.";
    HEALTH_CHECK_HTTP_VALIDATE_CERTIFICATE: bool = "health-check-http-validate-certificate",
        "Whether an HTTPS health check verifies the certificate of the target.";
    HTTP_STATUS_CODES: Vec<String> = "http-status-codes",
        "The status codes of a healthy target, such as `2??,3??`.";
    ID: String = "id",
        "No effect: neither written nor read, as in the Go CCM.";
    IPV4: String = "ipv4",
        "No effect: neither written nor read, as in the Go CCM.";
    IPV6: String = "ipv6",
        "No effect: neither written nor read, as in the Go CCM.";
}

#[cfg(test)]
mod tests;
