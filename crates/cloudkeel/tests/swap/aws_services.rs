//! Services as people annotate them for aws-cloud-controller-manager, by the settings that they are made under.

use serde_json::{Map, Value, json};

const PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-";

/// The first node port; each port of each Service has one of its own, so that a record is the same every time.
const FIRST_NODE_PORT: usize = 30_100;

/// A Service.
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    /// Without their common prefix.
    annotations: &'static [(&'static str, &'static str)],
    ports: &'static [u16],
    protocol: &'static str,
    ranges: &'static [&'static str],
    is_local: bool,
}

/// Settings and the Services that are made under them.
pub(crate) struct Scenario {
    /// Of the record.
    pub(crate) name: &'static str,
    /// Lines of `[Global]` in cloud.conf.
    pub(crate) settings: &'static str,
    pub(crate) services: &'static [Asked],
    /// The calls by which cloudkeel follows a new Node, and then deletes the first Service.
    pub(crate) changes: &'static [(&'static str, usize)],
}

const PLAIN: Asked = Asked {
    name: "plain",
    annotations: &[],
    ports: &[80],
    protocol: "TCP",
    ranges: &[],
    is_local: false,
};

const NLB: (&str, &str) = ("type", "nlb");
const CERTIFICATE: (&str, &str) = ("ssl-cert", "{certificate}");
const RANGES: &[&str] = &["10.0.0.0/8", "192.168.0.0/16"];
const TLS_POLICY: (&str, &str) = (
    "ssl-negotiation-policy",
    "ELBSecurityPolicy-TLS-1-2-2017-01",
);

const CHECKS: [(&str, &str); 7] = [
    ("healthcheck-protocol", "HTTP"),
    ("healthcheck-port", "8080"),
    ("healthcheck-path", "/ready"),
    ("healthcheck-interval", "20"),
    ("healthcheck-timeout", "6"),
    ("healthcheck-healthy-threshold", "4"),
    ("healthcheck-unhealthy-threshold", "4"),
];

pub(crate) const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "usual",
        settings: "",
        changes: &[
            ("CreateRoute", 1),
            ("ModifyInstanceAttribute", 1),
            // One Service takes only Nodes with a label.
            ("RegisterInstancesWithLoadBalancer", 13),
            ("RegisterTargets", 15),
            ("DeleteLoadBalancer", 1),
            ("RevokeSecurityGroupIngress", 1),
            // The balancer holds it for a while.
            ("DeleteSecurityGroup", 2),
        ],
        services: &[
            PLAIN,
            Asked {
                name: "three",
                ports: &[80, 443, 8080],
                ..PLAIN
            },
            Asked {
                name: "internal",
                annotations: &[("internal", "true")],
                ..PLAIN
            },
            Asked {
                name: "ranges",
                ranges: RANGES,
                ..PLAIN
            },
            Asked {
                name: "proxy",
                annotations: &[("proxy-protocol", "*")],
                ports: &[80, 443],
                ..PLAIN
            },
            Asked {
                name: "https",
                annotations: &[
                    CERTIFICATE,
                    TLS_POLICY,
                    ("ssl-ports", "443"),
                    ("backend-protocol", "http"),
                ],
                ports: &[80, 443],
                ..PLAIN
            },
            Asked {
                name: "ssl",
                annotations: &[CERTIFICATE, ("backend-protocol", "ssl")],
                ports: &[443],
                ..PLAIN
            },
            Asked {
                name: "checked",
                annotations: &CHECKS,
                ..PLAIN
            },
            Asked {
                name: "local",
                is_local: true,
                ..PLAIN
            },
            Asked {
                name: "attributes",
                annotations: &[
                    ("access-log-enabled", "true"),
                    ("access-log-s3-bucket-name", "logs"),
                    ("access-log-s3-bucket-prefix", "web"),
                    ("access-log-emit-interval", "5"),
                    ("connection-draining-enabled", "true"),
                    ("connection-draining-timeout", "120"),
                    ("connection-idle-timeout", "90"),
                    ("cross-zone-load-balancing-enabled", "true"),
                    ("additional-resource-tags", "team=web,tier="),
                ],
                ..PLAIN
            },
            Asked {
                name: "own-group",
                annotations: &[("security-groups", "{group brought}")],
                ..PLAIN
            },
            Asked {
                name: "extra-group",
                annotations: &[("extra-security-groups", "{group brought}")],
                ..PLAIN
            },
            Asked {
                name: "subnet",
                annotations: &[("subnets", "{subnet public 1}")],
                ..PLAIN
            },
            Asked {
                name: "selected",
                annotations: &[("target-node-labels", "role=web")],
                ..PLAIN
            },
            Asked {
                name: "nlb",
                annotations: &[NLB],
                ..PLAIN
            },
            Asked {
                name: "nlb-three",
                annotations: &[NLB],
                ports: &[80, 443, 8080],
                ..PLAIN
            },
            Asked {
                name: "nlb-internal",
                annotations: &[NLB, ("internal", "true")],
                ..PLAIN
            },
            Asked {
                name: "nlb-udp",
                annotations: &[NLB],
                ports: &[53],
                protocol: "UDP",
                ..PLAIN
            },
            Asked {
                name: "nlb-ranges",
                annotations: &[NLB],
                ranges: RANGES,
                ..PLAIN
            },
            Asked {
                name: "nlb-tls",
                annotations: &[
                    NLB,
                    CERTIFICATE,
                    TLS_POLICY,
                    ("ssl-ports", "443"),
                    ("backend-protocol", "ssl"),
                ],
                ports: &[80, 443],
                ..PLAIN
            },
            Asked {
                name: "nlb-tls-plain",
                annotations: &[NLB, CERTIFICATE],
                ports: &[443],
                ..PLAIN
            },
            Asked {
                name: "nlb-checked",
                annotations: &[
                    NLB, CHECKS[0], CHECKS[1], CHECKS[2], CHECKS[3], CHECKS[4], CHECKS[5],
                    CHECKS[6],
                ],
                ..PLAIN
            },
            Asked {
                name: "nlb-local",
                annotations: &[NLB],
                is_local: true,
                ..PLAIN
            },
            Asked {
                name: "nlb-attributes",
                annotations: &[
                    NLB,
                    ("access-log-enabled", "true"),
                    ("access-log-s3-bucket-name", "logs"),
                    ("access-log-s3-bucket-prefix", "web"),
                    ("cross-zone-load-balancing-enabled", "true"),
                    ("additional-resource-tags", "team=web"),
                    (
                        "target-group-attributes",
                        "preserve_client_ip.enabled=false,proxy_protocol_v2.enabled=true",
                    ),
                ],
                ..PLAIN
            },
            Asked {
                name: "nlb-addresses",
                annotations: &[NLB, ("eip-allocations", "{eip 0},{eip 1}")],
                ..PLAIN
            },
            Asked {
                name: "nlb-private",
                annotations: &[
                    NLB,
                    ("internal", "true"),
                    ("private-ipv4-addresses", "10.0.16.9,10.0.32.9"),
                ],
                ..PLAIN
            },
        ],
    },
    Scenario {
        name: "managed",
        settings: "NLBSecurityGroupMode = Managed\n",
        changes: &[
            ("CreateRoute", 1),
            ("ModifyInstanceAttribute", 1),
            ("RegisterTargets", 4),
            ("DeleteLoadBalancer", 1),
            ("DeleteTargetGroup", 2),
            ("RevokeSecurityGroupIngress", 1),
            ("DeleteSecurityGroup", 2),
        ],
        services: &[
            Asked {
                name: "managed",
                annotations: &[NLB],
                ports: &[80, 443],
                ..PLAIN
            },
            Asked {
                name: "managed-ranges",
                annotations: &[NLB],
                ranges: RANGES,
                ..PLAIN
            },
            Asked {
                name: "brought",
                annotations: &[NLB, ("security-groups", "{group brought}")],
                ..PLAIN
            },
        ],
    },
    Scenario {
        name: "shared",
        settings: "ElbSecurityGroup = {group brought}\nClusterServiceLoadBalancerHealthProbeMode = Shared\n",
        changes: &[
            ("CreateRoute", 1),
            ("ModifyInstanceAttribute", 1),
            ("RegisterInstancesWithLoadBalancer", 2),
            ("RegisterTargets", 2),
            // The security group is the operator's, and other balancers have it.
            ("DeleteLoadBalancer", 1),
        ],
        services: &[
            PLAIN,
            Asked {
                name: "local",
                is_local: true,
                ..PLAIN
            },
            Asked {
                name: "nlb",
                annotations: &[NLB],
                ..PLAIN
            },
            Asked {
                name: "nlb-local",
                annotations: &[NLB],
                is_local: true,
                ..PLAIN
            },
        ],
    },
];

impl Scenario {
    /// The objects that people post, with the names of things in place of their IDs.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let mut node_ports = FIRST_NODE_PORT..;
        let mut take = || node_ports.next().expect("there are enough");
        self.services
            .iter()
            .map(|asked| object(asked, &mut take))
            .collect()
    }
}

fn object(asked: &Asked, node_port: &mut impl FnMut() -> usize) -> Value {
    let annotations = asked.annotations.iter();
    let annotations = annotations.map(|(key, value)| (format!("{PREFIX}{key}"), json!(value)));
    let ports: Vec<_> = asked
        .ports
        .iter()
        .map(|port| {
            json!({"name": format!("p{port}"), "port": port, "protocol": asked.protocol, "nodePort": node_port()})
        })
        .collect();
    let mut spec = json!({
        "type": "LoadBalancer", "selector": {"app": asked.name}, "ports": ports,
    });
    if !asked.ranges.is_empty() {
        spec["loadBalancerSourceRanges"] = json!(asked.ranges);
    }
    if asked.is_local {
        spec["externalTrafficPolicy"] = json!("Local");
        spec["healthCheckNodePort"] = json!(node_port());
    }
    json!({
        "apiVersion": "v1", "kind": "Service", "spec": spec,
        "metadata": {
            "name": asked.name, "namespace": "default", "annotations": annotations.collect::<Map<_, _>>(),
        },
    })
}
