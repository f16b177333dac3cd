//! A cloud as digitalocean-cloud-controller-manager leaves it is taken over without a change.

use cloudkeel_api::{CloudProvider as _, DesiredState, LoadBalancerSpec, Outcome};
use cloudkeel_emulator_digitalocean::DigitalOceanCloud;
use cloudkeel_http::{Client, HeaderAuth, Request};
use cloudkeel_provider_digitalocean::{BalancerType, DigitalOceanProvider};
use serde_json::{Value, json};

use crate::lab::{ID, Lab, PREFIX, UID, annotate, attempt, balancers, spec};

/// A Service: its annotations, and what the Go CCM sends for it beside what every request has.
struct Made {
    case: &'static str,
    annotations: &'static [(&'static str, &'static str)],
    sent: fn() -> Value,
}

fn rule(protocol: &str, port: u16, target: u16) -> Value {
    json!({
        "entry_protocol": protocol, "entry_port": port,
        "target_protocol": protocol, "target_port": target,
    })
}

const MADE: [Made; 4] = [
    Made {
        case: "the default type",
        annotations: &[],
        sent: || {
            json!({
                "type": "REGIONAL_NETWORK", "network_stack": "DUALSTACK",
                "forwarding_rules": [rule("tcp", 80, 80), rule("tcp", 443, 443)],
            })
        },
    },
    Made {
        case: "regional with HTTP",
        annotations: &[
            ("type", "REGIONAL"),
            ("protocol", "http"),
            ("enable-proxy-protocol", "true"),
        ],
        sent: || {
            json!({
                "type": "REGIONAL", "network_stack": "DUALSTACK", "enable_proxy_protocol": true,
                "forwarding_rules": [rule("http", 80, 30080), rule("http", 443, 30443)],
            })
        },
    },
    Made {
        case: "sized, with rules and sticky sessions",
        annotations: &[
            ("type", "REGIONAL"),
            ("size-unit", "2"),
            ("deny-rules", "cidr:1.2.0.0/16"),
            ("sticky-sessions-type", "cookies"),
            ("sticky-sessions-cookie-name", "lb"),
            ("sticky-sessions-cookie-ttl", "300"),
        ],
        sent: || {
            json!({
                "type": "REGIONAL", "network_stack": "DUALSTACK", "size_unit": 2,
                "firewall": {"deny": ["cidr:1.2.0.0/16"]},
                "sticky_sessions": {
                    "type": "cookies", "cookie_name": "lb", "cookie_ttl_seconds": 300,
                },
                "forwarding_rules": [rule("tcp", 80, 30080), rule("tcp", 443, 30443)],
            })
        },
    },
    Made {
        case: "internal",
        annotations: &[("network", "INTERNAL"), ("name", "inside")],
        sent: || {
            json!({
                "type": "REGIONAL_NETWORK", "network": "INTERNAL", "network_stack": "IPV4",
                "name": "inside",
                "forwarding_rules": [rule("tcp", 80, 80), rule("tcp", 443, 443)],
            })
        },
    },
];

/// What the Go CCM's request always has.
fn request(lab: &Lab, made: &Made) -> Value {
    let ids: Vec<u64> = lab
        .cloud
        .droplets()
        .iter()
        .map(|droplet| droplet.id)
        .collect();
    let name = format!("a{}", UID.replace('-', ""));
    let mut body = json!({
        "name": name[..32], "algorithm": "round_robin", "region": "nyc3", "network": "EXTERNAL",
        "health_check": {
            "protocol": "http", "port": 10256, "path": "/healthz", "check_interval_seconds": 3,
            "response_timeout_seconds": 5, "healthy_threshold": 5, "unhealthy_threshold": 3,
            "proxy_protocol": false,
        },
        "sticky_sessions": {"type": "none"}, "droplet_ids": ids, "tags": ["k8s:prod"],
        "firewall": {}, "disable_lets_encrypt_dns_records": false,
    });
    let fields = (made.sent)().as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    body
}

/// A Service and its load balancer, as the Go CCM leaves both.
async fn taken_over(lab: &Lab, made: &Made) -> (DigitalOceanProvider, LoadBalancerSpec) {
    let client = Client::builder(cloudkeel_emulator_digitalocean::InProcess::URL)
        .transport(std::sync::Arc::new(lab.cloud.transport()))
        .authorizer(HeaderAuth::bearer(DigitalOceanCloud::TOKEN.into()))
        .build()
        .unwrap();
    let created: Value = client
        .fetch(Request::post("/v2/load_balancers").json(request(lab, made)))
        .await
        .unwrap();
    let balancer = &created["load_balancer"];
    let provider = lab
        .provider_with(|config| config.cluster_id = Some("prod".to_owned()))
        .await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80, 443], &nodes);
    annotate(&mut desired, made.annotations);
    let id = balancer["id"].as_str().unwrap();
    let kind = balancer["type"].as_str().unwrap();
    annotate(&mut desired, &[(ID, id), ("type", kind)]);
    (provider, desired)
}

#[tokio::test(start_paused = true)]
async fn what_the_go_ccm_made_is_taken_over_without_a_change_and_deleted_with_its_service() {
    for made in &MADE {
        let lab = Lab::new(3);
        let (provider, desired) = taken_over(&lab, made).await;
        let before = lab.balancer();
        let outcome = attempt(&provider, &desired).await;
        let Outcome::Settled { changes, done, .. } = outcome else {
            panic!("{}: {outcome:?}", made.case);
        };
        assert!(
            changes.is_empty() && done.is_empty(),
            "{}: {changes:?} {done}",
            made.case
        );
        let calls = lab.cloud.calls();
        assert_eq!(
            (calls.mutations(), calls.total()),
            (0, 1),
            "{}: {calls:?}",
            made.case
        );
        for observed in balancers(&provider)
            .observe_all(std::slice::from_ref(&desired))
            .await
        {
            assert!(observed.unwrap().plan.is_empty(), "{}", made.case);
        }
        assert_eq!(lab.balancer(), before, "{}", made.case);
        let absent = DesiredState::Absent(&desired.balancer_ref);
        balancers(&provider).apply(absent).await.unwrap();
        assert!(lab.cloud.load_balancers().is_empty(), "{}", made.case);
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_service_without_the_annotation_is_recognised_by_its_address() {
    let lab = Lab::new(2);
    let (provider, mut desired) = taken_over(&lab, &MADE[0]).await;
    let balancer = lab.balancer();
    desired.balancer_ref.annotations.clear();
    let unknown = crate::lab::refused(&provider, &desired).await;
    assert!(
        unknown.contains("does not carry the owner label"),
        "{unknown}"
    );
    let ip = balancer.addresses()[0];
    let mode = cloudkeel_api::IpMode::Vip;
    desired.balancer_ref.ingress = vec![cloudkeel_api::Ingress::Ip { ip, mode }];
    let Outcome::Settled { changes, .. } = attempt(&provider, &desired).await else {
        panic!("it is not recognised");
    };
    assert_eq!(changes.annotations[ID].as_ref(), Some(&balancer.id));
    let kind = &changes.annotations[&format!("{PREFIX}type")];
    assert_eq!(kind.as_deref(), Some("REGIONAL_NETWORK"));
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_type_of_a_load_balancer_is_written_back_and_never_changed() {
    let lab = Lab::new(2);
    let (provider, mut desired) = taken_over(&lab, &MADE[0]).await;
    annotate(&mut desired, &[("type", "REGIONAL")]);
    let Outcome::Settled { changes, .. } = attempt(&provider, &desired).await else {
        panic!("it does not settle");
    };
    let kind = &changes.annotations[&format!("{PREFIX}type")];
    assert_eq!(kind.as_deref(), Some("REGIONAL_NETWORK"));
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_an_id_has_no_tag_sync_and_types_have_their_profiles() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    assert!(provider.background_controllers().is_empty());
    let plain = spec(&[80], &[]).balancer_ref;
    let mut regional = plain.clone();
    let key = format!("{PREFIX}type");
    let kind = BalancerType::Regional.as_str().to_owned();
    regional.annotations.insert(key, kind);
    let proxies = |it| balancers(&provider).profile(it).features.proxy_protocol;
    assert_eq!(proxies(&plain), cloudkeel_api::ProxyProtocols::None);
    assert_eq!(proxies(&regional), cloudkeel_api::ProxyProtocols::V1);
}
