//! OpenStack's own annotations of Services. They win over the neutral ones.

use cloudkeel_toolkit::annotations;

annotations! {
    /// The prefix of most of them.
    pub const PREFIX = "loadbalancer.openstack.org/";

    INTERNAL: bool = ["service.beta.kubernetes.io/openstack-internal-load-balancer"],
        "Whether the load balancer gets no floating IP.";
    FLOATING_NETWORK_ID: String = "floating-network-id",
        "The network of the floating IP, by ID. An empty value overrides the configured default: the first external \
         network is used.";
    FLOATING_SUBNET_ID: String = "floating-subnet-id", "The subnet of the floating IP, by ID.";
    FLOATING_SUBNET: String = "floating-subnet",
        "Subnets of the floating IP, by name: a glob, or a regular expression behind `~`; `!` in front negates.";
    FLOATING_SUBNET_TAGS: String = "floating-subnet-tags",
        "Subnets of the floating IP, by tags: any of them; behind `&` all, behind `!` not all, behind `!&` none.";
    CLASS: String = "class", "A class of load balancers, from the configuration.";
    SUBNET_ID: String = "subnet-id", "The subnet of the load balancer, by ID.";
    NETWORK_ID: String = "network-id", "The network of the load balancer, by ID.";
    MEMBER_SUBNET_ID: String = "member-subnet-id", "The subnet of the targets, by ID.";
    PORT_ID: String = "port-id", "An existing port whose address a new load balancer gets.";
    #[default("-1")]
    CONNECTION_LIMIT: i32 = "connection-limit", "How many connections a listener takes; -1 is any number.";
    #[default("false")]
    KEEP_FLOATINGIP: bool = "keep-floatingip", "Whether the floating IP stays when the Service goes.";
    #[choices("true", "v1", "v2", "false")]
    PROXY_PROTOCOL: String = "proxy-protocol",
        "PROXY protocol towards the targets: `true` or `v1`, or `v2`; anything else switches it off.";
    #[default("false")]
    X_FORWARDED_FOR: bool = "x-forwarded-for",
        "Whether requests carry the client's address in `X-Forwarded-For`. Listeners then speak HTTP.";
    DEFAULT_TLS_CONTAINER_REF: String = "default-tls-container-ref",
        "The certificate of the listeners, by its reference in Barbican. TLS then ends at the load balancer.";
    #[choices("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")]
    LB_METHOD: String = "lb-method",
        "How connections are distributed: `ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP` or `SOURCE_IP_PORT`.";
    #[default("50000")]
    #[range(0, 31_536_000_000)]
    TIMEOUT_CLIENT_DATA: u32 = "timeout-client-data", "Milliseconds until an idle client is cut off.";
    #[default("5000")]
    #[range(0, 31_536_000_000)]
    TIMEOUT_MEMBER_CONNECT: u32 = "timeout-member-connect", "Milliseconds that a target has to accept a connection.";
    #[default("50000")]
    #[range(0, 31_536_000_000)]
    TIMEOUT_MEMBER_DATA: u32 = "timeout-member-data", "Milliseconds until an idle target is cut off.";
    #[default("0")]
    #[range(0, 31_536_000_000)]
    TIMEOUT_TCP_INSPECT: u32 = "timeout-tcp-inspect", "Milliseconds to wait for more of a connection's content.";
    ENABLE_HEALTH_MONITOR: bool = "enable-health-monitor", "Whether targets are checked.";
    HEALTH_MONITOR_DELAY: u32 = "health-monitor-delay", "Seconds between two checks.";
    HEALTH_MONITOR_TIMEOUT: u32 = "health-monitor-timeout", "Seconds that a check may take.";
    #[range(1, 10)]
    HEALTH_MONITOR_MAX_RETRIES: u32 = "health-monitor-max-retries", "Successes until a target is in again.";
    #[range(1, 10)]
    HEALTH_MONITOR_MAX_RETRIES_DOWN: u32 = "health-monitor-max-retries-down", "Failures until a target is out.";
    FLAVOR_ID: String = "flavor-id", "The flavor of a new load balancer, by ID. Later changes have no effect.";
    AVAILABILITY_ZONE: String = "availability-zone",
        "The availability zone of a new load balancer. Later changes have no effect.";
    LOAD_BALANCER_ID: String = "load-balancer-id",
        "The Service's load balancer. Written when it is created; written by you, the Service shares it.";
    LOAD_BALANCER_ADDRESS: String = "load-balancer-address", "The address of the load balancer. Only written.";
    HOSTNAME: String = "hostname", "A name to publish in the Service's status in place of the address.";
    NODE_SELECTOR: String = "node-selector",
        "Only Nodes with all these labels are targets: `key=value`, or a key alone for any value.";
}
