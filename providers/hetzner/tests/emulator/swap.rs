//! What the Go CCM made, call by call, is right as it is.

use cloudkeel_api::{LoadBalancerSpec, NodeFacts, Shared};
use cloudkeel_emulator_hetzner::RobotServer;
use serde_json::{Value, json};

use crate::lab::{Lab, annotate, drift, instances, planned, routes, settle, spec};

/// The Go CCM's way of making a balancer.
struct Go<'a> {
    lab: &'a Lab,
    id: u64,
}

impl<'a> Go<'a> {
    /// Creates with the label, then attaches to the network if there is one.
    async fn create(lab: &'a Lab, new: Value, network: bool) -> Self {
        let mut body = json!({
            "name": "au1",
            "load_balancer_type": 1,
            "labels": {"hcloud-ccm/service-uid": "u-1"},
            "location": "fsn1",
        });
        for (key, value) in new.as_object().unwrap() {
            body[key] = value.clone();
        }
        let made = lab.post("/load_balancers", body).await;
        let id = made["load_balancer"]["id"].as_u64().unwrap();
        let go = Self { lab, id };
        if network {
            go.act("attach_to_network", json!({"network": lab.network}))
                .await;
        }
        go
    }

    async fn act(&self, verb: &str, body: Value) {
        let path = format!("/load_balancers/{}/actions/{verb}", self.id);
        self.lab.post(&path, body).await;
    }

    /// Adds a service, and updates it without a change, as every later pass does.
    async fn service(&self, service: Value) {
        self.act("add_service", service.clone()).await;
        self.act("update_service", service).await;
    }

    async fn servers(&self, nodes: &[NodeFacts], private: bool) {
        // The Go CCM's order is random.
        for node in nodes.iter().rev() {
            let id = node.provider_id.as_ref().unwrap();
            let Ok(id) = id.rest().parse::<u64>() else {
                panic!("{id}");
            };
            let target = json!({"type": "server", "server": {"id": id}, "use_private_ip": private});
            self.act("add_target", target).await;
        }
    }
}

fn tcp(port: u16) -> Value {
    let node_port = 30_000 + port % 1_000;
    json!({
        "protocol": "tcp",
        "listen_port": port,
        "destination_port": node_port,
        "health_check": {"protocol": "tcp", "port": node_port},
    })
}

async fn nothing_changes(
    lab: &Lab,
    provider: &cloudkeel_provider_hetzner::HetznerProvider,
    desired: &LoadBalancerSpec,
) {
    lab.cloud.reset_calls();
    assert_eq!(planned(provider, desired).await, "nothing to do");
    settle(provider, desired).await;
    assert_eq!(drift(provider, std::slice::from_ref(desired)).await, [0]);
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plain_balancer_stays_as_it_is() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let go = Go::create(&lab, json!({}), false).await;
    go.service(tcp(80)).await;
    go.service(tcp(443)).await;
    go.servers(&nodes, false).await;
    let mut desired = spec(&[80, 443], &nodes);
    nothing_changes(&lab, &provider, &desired).await;
    desired.traffic_policy = cloudkeel_api::TrafficPolicy::Local;
    desired.health_check_node_port = Some(32_000);
    nothing_changes(&lab, &provider, &desired).await;
    assert_eq!(lab.balancer().labels.len(), 1, "no mark is filled in later");
}

#[tokio::test(start_paused = true)]
async fn a_private_balancer_with_everything_stays_as_it_is() {
    let lab = Lab::new(2);
    let provider = lab
        .provider_with(|config| {
            config.network = Some("kube".to_owned());
            config.load_balancers.use_private_ip = true;
            config.load_balancers.uses_proxy_protocol = Some(true);
            config.load_balancers.health_check_interval = Some(std::time::Duration::from_secs(20));
        })
        .await;
    let nodes = lab.nodes(&provider).await;
    let new = json!({
        "name": "web",
        "algorithm": {"type": "least_connections"},
        "public_interface": false,
    });
    let go = Go::create(&lab, new, true).await;
    let http = json!({"cookie_name": "c", "cookie_lifetime": 600, "sticky_sessions": true});
    go.service(json!({
        "protocol": "http",
        "listen_port": 80,
        "destination_port": 30_080,
        "proxyprotocol": true,
        "http": http,
        "health_check": {
            "protocol": "http", "port": 30_080, "interval": 20, "retries": 2,
            "http": {"path": "/healthz", "status_codes": ["200"]},
        },
    }))
    .await;
    go.servers(&nodes, true).await;
    let mut desired = spec(&[80], &nodes);
    annotate(
        &mut desired,
        &[
            ("name", "web"),
            ("algorithm-type", "least_connections"),
            ("disable-public-network", "true"),
            ("protocol", "http"),
            ("http-cookie-name", "c"),
            ("http-cookie-lifetime", "10m"),
            ("http-sticky-sessions", "true"),
            ("health-check-retries", "2"),
            ("health-check-http-path", "/healthz"),
            ("http-status-codes", "200"),
        ],
    );
    nothing_changes(&lab, &provider, &desired).await;
}

#[tokio::test(start_paused = true)]
async fn https_with_a_managed_certificate_stays_as_it_is() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let certificate = json!({
        "name": "ccm-managed-certificate-u-1",
        "type": "managed",
        "domain_names": ["a.example"],
        "labels": {"hcloud-ccm/service-uid": "u-1"},
    });
    let made = lab.post("/certificates", certificate).await;
    let go = Go::create(&lab, json!({}), false).await;
    let mut service = tcp(443);
    service["protocol"] = json!("https");
    service["http"] = json!({"certificates": [made["certificate"]["id"]], "redirect_http": true});
    go.service(service).await;
    go.servers(&nodes, false).await;
    let mut desired = spec(&[443], &nodes);
    annotate(
        &mut desired,
        &[
            ("protocol", "https"),
            ("certificate-type", "managed"),
            ("http-managed-certificate-domains", "a.example"),
            ("http-redirect-http", "true"),
        ],
    );
    nothing_changes(&lab, &provider, &desired).await;
}

#[tokio::test(start_paused = true)]
async fn a_renamed_balancer_with_a_ptr_and_dedicated_targets_stays_as_it_is() {
    let lab = Lab::new(1);
    lab.cloud.set_robot_login("robot", "secret");
    let metal = RobotServer::new(321, "metal", [192, 0, 2, 7].into());
    lab.cloud.add_robot_server(metal);
    let provider = lab
        .provider_with(|config| {
            config.robot.enabled = true;
            config.robot.login = Some(("robot".to_owned(), "secret".into()));
        })
        .await;
    let nodes = lab.nodes(&provider).await;
    let go = Go::create(&lab, json!({}), false).await;
    let path = format!("/load_balancers/{}", go.id);
    lab.put(&path, json!({"name": "web"})).await;
    let ip = lab.balancer().public.unwrap().ipv4;
    go.act(
        "change_dns_ptr",
        json!({"ip": ip, "dns_ptr": "web.example"}),
    )
    .await;
    go.service(tcp(80)).await;
    go.servers(&nodes[..1], false).await;
    go.act(
        "add_target",
        json!({"type": "ip", "ip": {"ip": "192.0.2.7"}}),
    )
    .await;
    // A target by label was added by hand, and stays.
    let selector = json!({"type": "label_selector", "label_selector": {"selector": "a=b"}});
    go.act("add_target", selector).await;
    let mut desired = spec(&[80], &nodes);
    annotate(
        &mut desired,
        &[("name", "web"), ("ipv4-rdns", "web.example")],
    );
    nothing_changes(&lab, &provider, &desired).await;
    assert_eq!(lab.balancer().targets.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn nodes_and_routes_stay_as_they_are() {
    let lab = Lab::new(2);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    for (number, server) in lab.cloud.servers().iter().enumerate() {
        let route = json!({
            "destination": format!("10.244.{number}.0/24"),
            "gateway": server.private_net[0].ip,
        });
        let path = format!("/networks/{}/actions/add_route", lab.network);
        lab.post(&path, route).await;
    }
    lab.cloud.reset_calls();
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    let targets: Vec<_> = listed.iter().map(|r| r.target.node_name()).collect();
    assert_eq!(targets, [Some("node-000"), Some("node-001")]);
    let list = instances(&provider).list().await.unwrap();
    for node in &nodes {
        let found = instances(&provider).identify(node, &list);
        let cloudkeel_api::Match::One(found) = found else {
            panic!("{found:?}");
        };
        assert_eq!(instances(&provider).addresses(found, node), node.addresses);
    }
    assert_eq!(lab.mutations(), 0);
}
