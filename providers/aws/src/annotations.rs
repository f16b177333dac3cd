//! The annotations of Services that the Go CCM knows. They win over the neutral ones.

use std::collections::BTreeMap;

use cloudkeel_api::{LabelSelector, Problem};
use cloudkeel_toolkit::{ExtraTags, annotations};

annotations! {
    /// The prefix of all of them.
    pub const PREFIX = "service.beta.kubernetes.io/aws-load-balancer-";

    #[choices("nlb", "classic", "external", "nlb-ip")]
    TYPE: String = "type",
        "`nlb` for a network load balancer, `classic` for a classic one. `external` and `nlb-ip` leave the Service to \
         the AWS Load Balancer Controller. It cannot be changed later.";
    #[choices("true", "false")]
    INTERNAL: String = "internal",
        "Anything but `false` makes a load balancer that is only reachable inside. It cannot be changed later.";
    SUBNETS: Vec<String> = "subnets",
        "The subnets of the load balancer, by ID or by their Name tag, in place of those that are found by tags.";
    ADDITIONAL_TAGS: ExtraTags = "additional-resource-tags",
        "More tags of the load balancer and its parts: `key=value,key2=,key3`.";
    TARGET_NODE_LABELS: String = "target-node-labels",
        "Only Nodes with all of these labels are targets: `key=value,key2=`; without a value the label has to exist.";
    SSL_CERT: String = "ssl-cert",
        "The ARN of the certificate of TLS ports.";
    SSL_PORTS: Vec<String> = "ssl-ports",
        "The ports with the certificate, by number or name; `*` or nothing for all.";
    SSL_NEGOTIATION_POLICY: String = "ssl-negotiation-policy",
        "The security policy of TLS ports, such as `ELBSecurityPolicy-TLS13-1-2-2021-06`.";
    #[choices("http", "https", "ssl", "tcp", "HTTP", "HTTPS", "SSL", "TCP")]
    BACKEND_PROTOCOL: String = "backend-protocol",
        "What targets speak: `http`, `https`, `ssl` or `tcp`. A network load balancer only knows `ssl`.";
    SECURITY_GROUPS: Vec<String> = "security-groups",
        "The security groups of the load balancer, in place of one of its own. They are never changed. Of network load \
         balancers only with NLBSecurityGroupMode=Managed.";
    EXTRA_SECURITY_GROUPS: Vec<String> = "extra-security-groups",
        "More security groups of a classic load balancer.";
    #[choices("*")]
    PROXY_PROTOCOL: String = "proxy-protocol",
        "`*` sends the client's address to all targets of a classic load balancer by PROXY protocol.";
    ACCESS_LOG_ENABLED: bool = "access-log-enabled", "Whether connections are logged to a bucket.";
    ACCESS_LOG_BUCKET: String = "access-log-s3-bucket-name", "The bucket.";
    ACCESS_LOG_PREFIX: String = "access-log-s3-bucket-prefix", "What names in the bucket begin with.";
    #[choices("5", "60")]
    ACCESS_LOG_INTERVAL: u32 = "access-log-emit-interval",
        "How often a classic load balancer writes its log: every 5 or 60 minutes.";
    DRAINING_ENABLED: bool = "connection-draining-enabled",
        "Whether connections of targets that leave a classic load balancer may end.";
    #[range(1, 3600)]
    DRAINING_TIMEOUT: u32 = "connection-draining-timeout", "For how many seconds at most.";
    #[range(1, 4000)]
    IDLE_TIMEOUT: u32 = "connection-idle-timeout",
        "After how many seconds a classic load balancer closes an idle connection: 60 if not given.";
    CROSS_ZONE: bool = "cross-zone-load-balancing-enabled",
        "Whether targets in all zones get connections of all zones.";
    #[choices("tcp", "http", "https", "TCP", "HTTP", "HTTPS")]
    HEALTH_PROTOCOL: String = "healthcheck-protocol", "How targets are checked: `tcp`, `http` or `https`.";
    HEALTH_PORT: String = "healthcheck-port", "On which port: a number, or `traffic-port`.";
    HEALTH_PATH: String = "healthcheck-path", "The path of a check by HTTP.";
    #[range(5, 300)]
    HEALTH_INTERVAL: u32 = "healthcheck-interval", "The seconds between two checks.";
    #[range(2, 60)]
    HEALTH_TIMEOUT: u32 = "healthcheck-timeout",
        "How many seconds a check may take. Network load balancers ignore it, as those of the Go CCM do.";
    #[range(2, 10)]
    HEALTHY_THRESHOLD: u32 = "healthcheck-healthy-threshold", "Successes in a row until a target is in.";
    #[range(2, 10)]
    UNHEALTHY_THRESHOLD: u32 = "healthcheck-unhealthy-threshold", "Failures in a row until a target is out.";
    TARGET_GROUP_ATTRIBUTES: BTreeMap<String, String> = "target-group-attributes",
        "Attributes of a network load balancer's target groups: `preserve_client_ip.enabled` and \
         `proxy_protocol_v2.enabled`, each `true` or `false`. Without it they stay as they are.";
    EIP_ALLOCATIONS: Vec<String> = "eip-allocations",
        "Elastic IPs of a new network load balancer, one for each subnet.";
    PRIVATE_IPV4: Vec<String> = "private-ipv4-addresses",
        "Addresses of a new internal network load balancer, one in each subnet.";
}

/// Nodes with all of these labels: a label without a value has to exist.
pub(crate) fn node_selector(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<LabelSelector>, Problem> {
    let Some(text) = TARGET_NODE_LABELS.get(annotations)? else {
        return Ok(None);
    };
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let terms: Vec<_> = pairs
        .map(|pair| pair.strip_suffix('=').unwrap_or(pair))
        .collect();
    let wrong = |_| {
        let expected = "labels such as `pool=web,zone=`";
        Problem::unexpected(TARGET_NODE_LABELS.name(), &text, expected)
    };
    terms.join(",").parse().map(Some).map_err(wrong)
}
