//! DigitalOcean's own annotations of Services. They win over the neutral ones.

use cloudkeel_toolkit::{annotations, keywords};

use crate::config::BalancerType;

keywords! {
    /// The protocol of a port.
    pub(crate) enum PortProtocol (exact) {
        Tcp = "tcp",
        Http = "http",
        Https = "https",
        Http2 = "http2",
        Http3 = "http3",
    }

    /// The protocol of a health check.
    pub(crate) enum CheckProtocol (exact) {
        Tcp = "tcp",
        Http = "http",
        Https = "https",
    }

    /// From where a load balancer is reached.
    pub(crate) enum Network (exact) {
        External = "EXTERNAL",
        Internal = "INTERNAL",
    }

    /// The addresses that a load balancer has.
    pub(crate) enum NetworkStack (exact) {
        Ipv4 = "IPV4",
        DualStack = "DUALSTACK",
    }

    /// The old names of sizes.
    pub(crate) enum SizeSlug (exact) {
        Small = "lb-small",
        Medium = "lb-medium",
        Large = "lb-large",
    }
}

impl Network {
    pub(crate) const fn of(is_internal: bool) -> Self {
        if is_internal {
            Self::Internal
        } else {
            Self::External
        }
    }
}

annotations! {
    /// The prefix of most of them.
    pub const PREFIX = "service.beta.kubernetes.io/do-loadbalancer-";

    #[unset("")] LOAD_BALANCER_ID: String = ["kubernetes.digitalocean.com/load-balancer-id"],
        "The ID of the load balancer. Written by the controller; set it to take over an existing one.";
    FIREWALL_MANAGED: bool = ["kubernetes.digitalocean.com/firewall-managed"],
        "`false` keeps the ports of a `NodePort` Service out of the public access firewall.";
    DISOWN: bool = ["service.kubernetes.io/do-loadbalancer-disown"],
        "Whether the load balancer is left alone: neither changed nor deleted with the Service.";
    NAME: String = "name",
        "The name of the load balancer. Without it, `a` and the UID of the Service. A change renames it.";
    #[unset("")] TYPE: BalancerType = "type",
        "`REGIONAL` or `REGIONAL_NETWORK`. Without it, the configured default. Cannot change later: it is written back.";
    #[unset("")] NETWORK: Network = "network", "`EXTERNAL` (the default) or `INTERNAL`. Cannot change later.";
    #[unset("")] NETWORK_STACK: NetworkStack = "network-stack",
        "`IPV4` or `DUALSTACK`. Without it, by type and Nodes. Cannot change later.";
    IP: String = "ip", "An address of your own for a new load balancer.";
    SUBNET_UUID: String = "subnet-uuid", "The subnet of a new load balancer.";
    PROTOCOL: PortProtocol = "protocol",
        "The protocol of every port, `tcp` by default: `tcp`, `http`, `https`, `http2` or `http3`. Only `REGIONAL`.";
    HTTP_PORTS: Vec<u16> = "http-ports", "Ports that serve HTTP. Only `REGIONAL`.";
    TLS_PORTS: Vec<u16> = "tls-ports", "Ports that serve HTTPS. Only `REGIONAL`.";
    HTTP2_PORTS: Vec<u16> = "http2-ports", "Ports that serve HTTP/2. Only `REGIONAL`.";
    HTTP3_PORT: u16 = "http3-port", "The port that also serves HTTP/3. Needs a certificate. Only `REGIONAL`.";
    TLS_PASSTHROUGH: bool = "tls-passthrough", "Whether TLS is passed on to the Nodes. Only `REGIONAL`.";
    CERTIFICATE_ID: String = "certificate-id",
        "The certificate of HTTPS, by ID. Rewritten when Let's Encrypt renews it.";
    CERTIFICATE_NAME: String = "certificate-name", "The certificate of HTTPS, by name.";
    HOSTNAME: String = "hostname", "A name to publish in the Service's status in place of addresses.";
    ALGORITHM: String = "algorithm", "Sent as it is. The API no longer lets it be chosen.";
    #[unset("")] SIZE_SLUG: SizeSlug = "size-slug", "`lb-small`, `lb-medium` or `lb-large`. Not with `size-unit`.";
    #[unset("")] SIZE_UNIT: u32 = "size-unit", "How many nodes the load balancer has. The API takes a change once an hour.";
    STICKY_SESSIONS_TYPE: String = "sticky-sessions-type",
        "`cookies` for sessions that stay with a Node. Anything else means none.";
    STICKY_SESSIONS_COOKIE_NAME: String = "sticky-sessions-cookie-name",
        "The name of the cookie. Required with `cookies`.";
    STICKY_SESSIONS_COOKIE_TTL: u32 = "sticky-sessions-cookie-ttl",
        "The lifetime of the cookie in seconds. Required with `cookies`.";
    REDIRECT_HTTP_TO_HTTPS: bool = "redirect-http-to-https", "Whether requests to port 80 are redirected to HTTPS.";
    ENABLE_PROXY_PROTOCOL: bool = "enable-proxy-protocol",
        "Whether Nodes get the client's address by PROXY protocol.";
    ENABLE_BACKEND_KEEPALIVE: bool = "enable-backend-keepalive", "Whether connections to Nodes are kept.";
    DISABLE_DNS_RECORDS: bool = "disable-lets-encrypt-dns-records",
        "Whether no DNS records are created for Let's Encrypt certificates.";
    HTTP_IDLE_TIMEOUT_SECONDS: u32 = "http-idle-timeout-seconds",
        "How long idle HTTP connections are kept, in seconds.";
    DENY_RULES: Vec<String> = "deny-rules", "Who may not connect: `ip:…` and `cidr:…`.";
    ALLOW_RULES: Vec<String> = "allow-rules",
        "Who may connect: `ip:…` and `cidr:…`. `loadBalancerSourceRanges` replaces it.";
    OVERRIDE_HEALTH_CHECK: String = "override-health-check",
        "Present, with any value: the port, path and protocol of the health check are those of the next three.";
    HEALTHCHECK_PORT: String = "healthcheck-port",
        "The Service port whose node port is checked. Without it, the first TCP port.";
    HEALTHCHECK_PATH: String = "healthcheck-path", "The path of the health check.";
    #[unset("")] HEALTHCHECK_PROTOCOL: CheckProtocol = "healthcheck-protocol",
        "`tcp`, `http` or `https`. Without it, `http` if there is a path, else `tcp`.";
    HEALTHCHECK_INTERVAL: u32 = "healthcheck-check-interval-seconds",
        "The interval between health checks, 3 seconds by default.";
    HEALTHCHECK_TIMEOUT: u32 = "healthcheck-response-timeout-seconds",
        "The timeout of a health check, 5 seconds by default.";
    HEALTHCHECK_UNHEALTHY: u32 = "healthcheck-unhealthy-threshold",
        "Consecutive failures until a Node gets no traffic, 3 by default.";
    HEALTHCHECK_HEALTHY: u32 = "healthcheck-healthy-threshold",
        "Consecutive successes until a Node gets traffic again, 5 by default.";
}
