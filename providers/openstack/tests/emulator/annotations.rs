//! Annotations and settings that the kit does not know.

use std::time::Duration;

use cloudkeel_api::{
    DesiredState, HealthCheck, HealthProbe, Ingress, IpMode, Outcome, TrafficPolicy,
};
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud, Operation, Settings};
use serde_json::{Value, json};

use crate::lab::{Lab, annotate, spec};

#[tokio::test(start_paused = true)]
async fn listeners_get_what_annotations_ask_for() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(1);
    for (name, value, field, expected) in [
        ("connection-limit", "7", "connection_limit", json!(7)),
        ("timeout-client-data", "1", "timeout_client_data", json!(1)),
        (
            "timeout-member-connect",
            "2",
            "timeout_member_connect",
            json!(2),
        ),
        ("timeout-member-data", "3", "timeout_member_data", json!(3)),
        ("timeout-tcp-inspect", "4", "timeout_tcp_inspect", json!(4)),
    ] {
        let mut asked = spec(&[80], &nodes);
        annotate(&mut asked, name, value);
        lab.settle(&asked).await;
        assert_eq!(lab.only(Kind::Listener)[field], expected, "{name}");
    }
    lab.settle(&spec(&[80], &nodes)).await;
    assert_eq!(lab.only(Kind::Listener)["connection_limit"], -1);
}

#[tokio::test(start_paused = true)]
async fn forwarded_for_and_tls_make_the_listener_anew_and_back() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(1);
    let secret = lab.cloud.add(Kind::Secret, json!({"name": "certificate"}));
    let reference = format!("https://keys/v1/secrets/{secret}");
    for (annotation, protocol, pool) in [
        (None, "TCP", "TCP"),
        (Some(("x-forwarded-for", "true")), "HTTP", "HTTP"),
        (
            Some(("default-tls-container-ref", reference.as_str())),
            "TERMINATED_HTTPS",
            "HTTP",
        ),
        (Some(("proxy-protocol", "v2")), "TCP", "PROXYV2"),
        (None, "TCP", "TCP"),
    ] {
        let mut asked = spec(&[443], &nodes);
        if let Some((name, value)) = annotation {
            annotate(&mut asked, name, value);
        }
        lab.settle(&asked).await;
        let (listener, pool_now) = (lab.only(Kind::Listener), lab.only(Kind::Pool));
        assert_eq!(
            (&listener["protocol"], &pool_now["protocol"]),
            (&json!(protocol), &json!(pool)),
            "{annotation:?}"
        );
        assert_eq!(lab.cloud.all(Kind::Member).len(), 1);
        let header = &listener["insert_headers"]["X-Forwarded-For"];
        assert_eq!(*header == "true", protocol == "HTTP", "{header}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_not_there_is_said_and_nothing_else_kept_back() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(2);
    lab.settle(&spec(&[443], &nodes[..1])).await;
    let mut asked = spec(&[443], &nodes);
    annotate(
        &mut asked,
        "default-tls-container-ref",
        "https://keys/v1/containers/nothing",
    );
    let outcome = lab.apply(DesiredState::Present(&asked)).await.unwrap();
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        failures.message.contains("no such certificate"),
        "{}",
        failures.message
    );
    assert_eq!(lab.only(Kind::Listener)["protocol"], "TCP");
}

#[tokio::test(start_paused = true)]
async fn local_traffic_is_checked_on_the_health_port_of_each_target() {
    let lab = Lab::new("").await;
    let mut asked = spec(&[80], &lab.nodes(2));
    annotate(&mut asked, "enable-health-monitor", "true");
    asked.traffic_policy = TrafficPolicy::Local;
    asked.health_check_node_port = Some(32_100);
    asked.listeners[0].health_check = HealthCheck {
        probe: HealthProbe::Http {
            path: "/healthz".to_owned(),
        },
        port: Some(32_100),
        interval: Some(Duration::from_secs(9)),
        ..HealthCheck::tcp()
    };
    lab.settle(&asked).await;
    let monitor = lab.only(Kind::Monitor);
    let shown = [
        "type",
        "url_path",
        "http_method",
        "expected_codes",
        "delay",
        "timeout",
    ]
    .map(|field| monitor[field].clone());
    assert_eq!(
        json!(shown),
        json!(["HTTP", "/healthz", "GET", "200", 9, 3])
    );
    assert!(
        lab.cloud
            .all(Kind::Member)
            .iter()
            .all(|member| member["monitor_port"] == 32_100)
    );
    lab.cloud.reset_calls();
    lab.settle(&asked).await;
    assert_eq!(lab.mutating(), 0);
    // On OVN, which cannot do that, by a connection, and this costs nothing either when it is repeated.
    let lab = Lab::new("lb-provider=ovn\nlb-method=SOURCE_IP_PORT\ncreate-monitor=true").await;
    let mut asked_of_ovn = spec(&[80], &lab.nodes(1));
    asked_of_ovn.listeners = asked.listeners.clone();
    lab.settle(&asked_of_ovn).await;
    assert_eq!(lab.only(Kind::Monitor)["type"], "TCP");
    lab.cloud.reset_calls();
    lab.settle(&asked_of_ovn).await;
    assert_eq!(lab.mutating(), 0);
}

#[tokio::test(start_paused = true)]
async fn security_groups_let_the_load_balancer_in_and_go_with_the_service() {
    let lab = Lab::new("manage-security-groups=true").await;
    let nodes = lab.nodes(2);
    let mut asked = spec(&[80], &nodes);
    asked.health_check_node_port = Some(32_100);
    lab.settle(&asked).await;
    let group = lab.only(Kind::SecurityGroup);
    let uid = &asked.balancer_ref.service.uid;
    assert_eq!(group["name"], format!("lb-sg-{uid}-default-web"));
    let rules: Vec<_> = group["security_group_rules"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let ports: Vec<_> = rules
        .iter()
        .map(|rule| rule["port_range_min"].clone())
        .collect();
    assert_eq!(
        json!(ports),
        json!([32_100, 30_080]),
        "the egress rule that Neutron adds is gone"
    );
    assert!(
        rules
            .iter()
            .all(|rule| rule["remote_ip_prefix"] == "10.6.0.0/16")
    );
    let has_it = |port: &&Value| {
        port["security_groups"]
            .as_array()
            .unwrap()
            .contains(&group["id"])
    };
    assert_eq!(lab.cloud.all(Kind::Port).iter().filter(has_it).count(), 2);
    lab.cloud.reset_calls();
    lab.settle(&asked).await;
    assert_eq!(lab.mutating(), 0);
    lab.remove(&asked.balancer_ref).await;
    assert!(lab.cloud.all(Kind::SecurityGroup).is_empty());
    assert_eq!(lab.cloud.all(Kind::Port).iter().filter(has_it).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_is_kept_on_request_and_one_of_the_users_always() {
    for keep in ["true", "false"] {
        let lab = Lab::new("").await;
        let mut asked = spec(&[80], &lab.nodes(1));
        annotate(&mut asked, "keep-floatingip", keep);
        lab.settle(&asked).await;
        lab.remove(&asked.balancer_ref).await;
        assert_eq!(
            lab.cloud.all(Kind::FloatingIp).len(),
            usize::from(keep == "true")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_external_network_the_address_inside_is_published_with_an_event() {
    let lab = Lab::new("").await;
    lab.cloud.remove(Kind::Network, OpenStackCloud::EXTERNAL);
    let Outcome::Settled { status, .. } = lab.settle(&spec(&[80], &lab.nodes(1))).await else {
        unreachable!("settle checks it");
    };
    let vip = lab.only(Kind::LoadBalancer)["vip_address"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        status.ingress,
        [Ingress::Ip {
            ip: vip,
            mode: IpMode::Vip
        }]
    );
    assert_eq!(lab.reasons(), ["LoadBalancerForcedInternal"]);
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_is_published_as_a_hostname_where_configured() {
    let lab = Lab::new("enable-ingress-hostname=true\ningress-hostname-suffix=lb.example").await;
    let mut asked = spec(&[80], &lab.nodes(1));
    annotate(&mut asked, "proxy-protocol", "true");
    let Outcome::Settled { status, .. } = lab.settle(&asked).await else {
        unreachable!("settle checks it");
    };
    let ip = lab.only(Kind::FloatingIp)["floating_ip_address"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        status.ingress,
        [Ingress::Hostname(format!("{ip}.lb.example"))]
    );
}

#[tokio::test(start_paused = true)]
async fn classes_choose_networks_and_an_unknown_one_is_named() {
    let class = format!(
        "[LoadBalancerClass \"inside\"]\nfloating-network-id={}",
        OpenStackCloud::EXTERNAL
    );
    let lab = Lab::new(&class).await;
    let mut asked = spec(&[80], &lab.nodes(1));
    annotate(&mut asked, "class", "inside");
    lab.settle(&asked).await;
    annotate(&mut asked, "class", "outside");
    let error = lab.apply(DesiredState::Present(&asked)).await.unwrap_err();
    assert!(
        error.message().contains("\"outside\"") && error.message().contains("[inside]"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_takes_one_piece_at_a_time_gets_them_so() {
    let lab = Lab::new(
        "provider-requires-serial-api-calls=true\ncascade-delete=false\ncreate-monitor=true",
    )
    .await;
    let nodes = lab.nodes(2);
    let asked = spec(&[80], &nodes);
    lab.settle(&asked).await;
    let calls = lab.cloud.calls();
    assert_eq!(
        (
            calls.of(Operation::CreateMember),
            calls.of(Operation::SetMembers)
        ),
        (2, 0)
    );
    let names: Vec<_> = lab
        .cloud
        .all(Kind::Member)
        .iter()
        .map(|member| member["name"].to_string())
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("\"member_node-")),
        "{names:?}"
    );
    lab.settle(&spec(&[80], &nodes[1..])).await;
    assert_eq!(lab.cloud.calls().of(Operation::DeleteMember), 1);
    lab.remove(&asked.balancer_ref).await;
    assert!(lab.cloud.all(Kind::Pool).is_empty() && lab.cloud.all(Kind::LoadBalancer).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_old_octavia_is_asked_for_nothing_that_it_does_not_know() {
    let settings = |version: &str| Settings {
        octavia_version: version.to_owned(),
        ..Settings::default()
    };
    let lab = Lab::with(settings("v2.5"), "availability-zone=az1").await;
    let mut asked = spec(&[80], &lab.nodes(1));
    asked.source_ranges = vec!["10.0.0.0/8".parse().unwrap()];
    lab.settle(&asked).await;
    assert_eq!(lab.only(Kind::Listener)["allowed_cidrs"], Value::Null);
    let mut reasons = lab.reasons();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "LoadBalancerAvailabilityZonesIgnored",
            "LoadBalancerSourceRangesIgnored"
        ]
    );
    let lab = Lab::with(settings("v2.4"), "").await;
    let error = lab.apply(DesiredState::Present(&asked)).await.unwrap_err();
    assert!(
        error.message().contains("v2.4") && lab.mutating() == 0,
        "{error}"
    );
}
