//! Services as people annotate them for hcloud-cloud-controller-manager, each with what that makes of it.

use cloudkeel_emulator_hetzner::LoadBalancer;
use serde_json::{Value, json};

/// A Service and its balancer.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    /// Without their common prefix.
    pub(crate) annotations: &'static [(&'static str, &'static str)],
    /// Protocol and number.
    pub(crate) ports: &'static [(&'static str, i32)],
    pub(crate) local: bool,
    /// What the call that creates the balancer says besides name, type and label.
    pub(crate) creation: fn() -> Value,
    /// What the call that attaches it says besides the network.
    pub(crate) attachment: fn() -> Value,
    /// The name behind its IPv4 address.
    pub(crate) pointer: Option<&'static str>,
    /// How a port is served, by port, node port and the certificate.
    pub(crate) service: fn(i32, i32, u64) -> Value,
    /// The Nodes that are targets, and whether they are reached through the network.
    pub(crate) targets: (&'static [&'static str], bool),
    /// What is published of the balancer.
    pub(crate) ingress: fn(&LoadBalancer) -> Value,
}

/// Every Node but the one that is excluded.
const ALL: &[&str] = &["node-1", "node-2", "node-3"];

const PLAIN: Made = Made {
    name: "plain",
    annotations: &[],
    ports: &[("TCP", 80), ("TCP", 443)],
    local: false,
    creation: || json!({"location": "fsn1"}),
    attachment: || json!({}),
    pointer: None,
    service: |port, node_port, _| tcp(port, node_port),
    targets: (ALL, false),
    ingress: |balancer| {
        let public = balancer.public.as_ref().expect("addresses");
        json!([
            vip(&public.ipv4),
            vip(&public.ipv6),
            vip(&private(balancer))
        ])
    },
};

pub(crate) const SERVICES: [Made; 8] = [
    PLAIN,
    Made {
        name: "named",
        annotations: &[
            ("name", "front-door"),
            ("location", "nbg1"),
            ("type", "lb21"),
            ("algorithm-type", "least_connections"),
            ("uses-proxyprotocol", "true"),
            ("ipv6-disabled", "true"),
            ("disable-private-ingress", "true"),
            ("ipv4-rdns", "front.example.com"),
        ],
        creation: || {
            json!({
                "name": "front-door",
                "load_balancer_type": 2,
                "location": "nbg1",
                "algorithm": {"type": "least_connections"},
            })
        },
        pointer: Some("front.example.com"),
        service: |port, node_port, _| {
            let mut service = tcp(port, node_port);
            service["proxyprotocol"] = json!(true);
            service
        },
        ingress: |balancer| {
            let public = balancer.public.as_ref().expect("addresses");
            json!([{"ip": public.ipv4, "ipMode": "Proxy"}])
        },
        ..PLAIN
    },
    Made {
        name: "private",
        annotations: &[
            // The empty one takes away what the environment says.
            ("location", ""),
            ("network-zone", "eu-central"),
            ("use-private-ip", "true"),
            ("disable-public-network", "true"),
            ("private-ipv4", "10.0.200.7"),
        ],
        creation: || json!({"network_zone": "eu-central", "public_interface": false}),
        attachment: || json!({"ip": "10.0.200.7"}),
        targets: (ALL, true),
        ingress: |balancer| json!([vip(&private(balancer))]),
        ..PLAIN
    },
    Made {
        name: "tls",
        annotations: &[
            ("protocol", "https"),
            ("http-certificates", "shop"),
            ("http-redirect-http", "true"),
            ("http-sticky-sessions", "true"),
            ("http-cookie-name", "SHOP"),
            ("http-cookie-lifetime", "10m"),
            ("health-check-protocol", "http"),
            ("health-check-port", "30099"),
            ("health-check-interval", "20s"),
            ("health-check-timeout", "5s"),
            ("health-check-retries", "2"),
            ("health-check-http-domain", "shop.example.com"),
            ("health-check-http-path", "/healthz"),
            ("http-status-codes", "200,204"),
            ("hostname", "shop.example.com"),
        ],
        ports: &[("TCP", 443)],
        service: |port, node_port, certificate| {
            json!({
                "protocol": "https",
                "listen_port": port,
                "destination_port": node_port,
                "http": {
                    "certificates": [certificate],
                    "redirect_http": true,
                    "sticky_sessions": true,
                    "cookie_name": "SHOP",
                    "cookie_lifetime": 600,
                },
                "health_check": {
                    "protocol": "http", "port": 30_099, "interval": 20, "timeout": 5, "retries": 2,
                    "http": {
                        "domain": "shop.example.com",
                        "path": "/healthz",
                        "status_codes": ["200", "204"],
                    },
                },
            })
        },
        ingress: |_| json!([{"hostname": "shop.example.com"}]),
        ..PLAIN
    },
    Made {
        name: "managed",
        annotations: &[
            ("protocol", "HTTPS"),
            ("certificate-type", "managed"),
            (
                "http-managed-certificate-domains",
                "a.example.com,b.example.com",
            ),
            ("http-timeout-idle", "30s"),
        ],
        ports: &[("TCP", 443)],
        service: |port, node_port, certificate| {
            let mut service = tcp(port, node_port);
            service["protocol"] = json!("https");
            service["http"] = json!({"certificates": [certificate], "timeout_idle": 30});
            service
        },
        ..PLAIN
    },
    Made {
        name: "local",
        annotations: &[
            ("node-selector", "pool=edge"),
            ("disable-public-network", "false"),
            ("private-subnet-ip-range", "10.0.0.0/16"),
        ],
        ports: &[("TCP", 8080)],
        local: true,
        creation: || json!({"location": "fsn1", "public_interface": true}),
        attachment: || json!({"ip_range": "10.0.0.0/16"}),
        targets: (&["node-3"], false),
        ..PLAIN
    },
    Made {
        name: "web",
        annotations: &[("protocol", "http"), ("health-check-interval", "30s")],
        ports: &[("TCP", 80)],
        service: |port, node_port, _| {
            json!({
                "protocol": "http",
                "listen_port": port,
                "destination_port": node_port,
                "health_check": {"protocol": "http", "port": node_port, "interval": 30, "http": {}},
            })
        },
        ..PLAIN
    },
    Made {
        // Of its two ports the cloud can serve one.
        name: "dns",
        ports: &[("TCP", 53), ("UDP", 53)],
        ..PLAIN
    },
];

fn tcp(port: i32, node_port: i32) -> Value {
    json!({
        "protocol": "tcp",
        "listen_port": port,
        "destination_port": node_port,
        "health_check": {"protocol": "tcp", "port": node_port},
    })
}

fn vip(ip: &impl ToString) -> Value {
    json!({"ip": ip.to_string(), "ipMode": "VIP"})
}

fn private(balancer: &LoadBalancer) -> std::net::Ipv4Addr {
    let (_, ip) = balancer.private_net.expect("it is in the network");
    ip
}
