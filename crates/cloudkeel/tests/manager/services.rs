//! What Kubernetes' own end-to-end tests expect of load balancers, as far as it shows without Pods.

use std::time::Duration;

use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::Operation;
use cloudkeel_testkit::simulated_cloud::wire::{Probe, Protocol};
use serde_json::json;

use crate::service_fixture::{ServiceFixture, address, has_finalizer, join, node_port, port, spec};

on_both_apis![
    a_tcp_service_changes_types_and_ports_and_keeps_its_address,
    a_udp_service_changes_types_and_ports_and_keeps_its_address,
    source_ranges_are_followed_and_cleared,
    affinity_is_switched_off_and_on_again_with_the_policy_cluster,
    affinity_is_switched_off_and_on_again_with_the_policy_local,
    the_finalizer_comes_and_goes_with_the_type,
    the_finalizer_stays_until_the_cloud_has_let_go,
    a_service_without_node_ports_gets_an_event_and_is_served_when_it_has_them,
    tcp_and_udp_share_a_port_of_one_service,
    a_service_of_another_class_keeps_the_status_that_others_give_it,
    the_policy_local_is_checked_on_its_own_port_until_it_ends,
    nodes_that_come_become_targets,
    a_restart_changes_nothing_and_what_was_deleted_meanwhile_goes,
    a_service_that_was_recreated_never_gets_what_was_meant_for_its_predecessor,
];

/// From `ClusterIP` to `NodePort` to `LoadBalancer`, with other ports on the way, and back.
async fn goes_round_the_types(on: EitherApi, protocol: &str) {
    let fixture = ServiceFixture::open(on, 2).await;
    let builder = fixture.service("web").service_type("ClusterIP");
    let builder = match protocol {
        "UDP" => builder.udp_port("main", 80),
        _ => builder.port("main", 80),
    };
    let mut plain = builder.build();
    if let Some(spec) = &mut plain.spec {
        spec.load_balancer_class = None;
    }
    fixture.create_as(&plain).await;
    let with_node_port = fixture.patch("web", fixture.of_type("NodePort")).await;
    let first_port = node_port(&with_node_port).expect("a node port");
    assert!(fixture.balancers().is_empty());

    fixture.patch("web", fixture.of_type("LoadBalancer")).await;
    let ip = fixture.address("web").await;
    let served = fixture.until("web", has_finalizer).await;
    assert_eq!(
        node_port(&served),
        Some(first_port),
        "the node port is kept"
    );
    let expected = if protocol == "UDP" {
        Protocol::Udp
    } else {
        Protocol::Tcp
    };
    let balancer = fixture
        .balancer(|balancer| balancer.targets.len() == 2)
        .await;
    assert_eq!(balancer.listeners.len(), 1);
    let listener = balancer.listeners.first().expect("just counted");
    assert_eq!((listener.protocol, listener.port), (expected, 80));
    assert_eq!(i32::from(listener.target_port), first_port);

    let mut moved = port(&served).clone();
    moved.port = 81;
    moved.node_port = None;
    let changed = fixture
        .patch("web", json!({"spec": {"ports": [moved]}}))
        .await;
    let second_port = node_port(&changed).expect("a node port");
    fixture
        .balancer(|balancer| {
            let listener = balancer.listeners.first();
            listener.is_some_and(|listener| {
                listener.port == 81 && i32::from(listener.target_port) == second_port
            })
        })
        .await;
    assert_eq!(
        fixture.address("web").await,
        ip,
        "the address stays the same"
    );

    fixture.patch("web", fixture.of_type("ClusterIP")).await;
    let released = fixture.until_released("web").await;
    assert_eq!(address(&released), None);
    assert!(fixture.balancers().is_empty());
}

async fn a_tcp_service_changes_types_and_ports_and_keeps_its_address(on: EitherApi) {
    goes_round_the_types(on, "TCP").await;
}

async fn a_udp_service_changes_types_and_ports_and_keeps_its_address(on: EitherApi) {
    goes_round_the_types(on, "UDP").await;
}

async fn source_ranges_are_followed_and_cleared(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    fixture
        .balancer(|balancer| balancer.source_ranges.is_empty())
        .await;
    for ranges in [
        &["10.0.0.0/8", "192.0.2.0/24"][..],
        &["0.0.0.0/1", "128.0.0.0/1"],
        &["255.0.0.0/32"],
        &[],
    ] {
        let patch = json!({"spec": {"loadBalancerSourceRanges": ranges}});
        fixture.patch("web", patch).await;
        fixture
            .balancer(|balancer| {
                let mut now: Vec<_> = balancer
                    .source_ranges
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let mut wanted: Vec<_> = ranges.iter().map(ToString::to_string).collect();
                now.sort();
                wanted.sort();
                now == wanted
            })
            .await;
    }
    fixture.delete("web").await;
    fixture.until_gone("web").await;
    assert!(fixture.balancers().is_empty());
}

/// `ClientIP`, `None`, `ClientIP` again.
async fn toggles_affinity(on: EitherApi, local: bool) {
    let fixture = ServiceFixture::open(on, 1).await;
    let mut service = fixture.service("web").port("main", 80).client_ip_affinity();
    if local {
        service = service.external_traffic_local();
    }
    fixture.create(service).await;
    fixture
        .balancer(|balancer| balancer.affinity.is_some())
        .await;
    let ip = fixture.address("web").await;
    for sticky in [false, true] {
        let affinity = if sticky { "ClientIP" } else { "None" };
        let config = sticky.then(|| json!({"clientIP": {"timeoutSeconds": 600}}));
        let spec = json!({"sessionAffinity": affinity, "sessionAffinityConfig": config});
        fixture.patch("web", json!({"spec": spec})).await;
        fixture
            .balancer(|balancer| balancer.affinity.is_some() == sticky)
            .await;
    }
    assert_eq!(fixture.address("web").await, ip);
}

async fn affinity_is_switched_off_and_on_again_with_the_policy_cluster(on: EitherApi) {
    toggles_affinity(on, false).await;
}

async fn affinity_is_switched_off_and_on_again_with_the_policy_local(on: EitherApi) {
    toggles_affinity(on, true).await;
}

async fn the_finalizer_comes_and_goes_with_the_type(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    fixture.address("web").await;
    fixture.until("web", has_finalizer).await;
    fixture.patch("web", fixture.of_type("ClusterIP")).await;
    fixture.until_released("web").await;
    fixture.patch("web", fixture.of_type("LoadBalancer")).await;
    fixture.address("web").await;
    fixture.until("web", has_finalizer).await;
    fixture.delete("web").await;
    fixture.until_gone("web").await;
    assert!(fixture.balancers().is_empty());
    let reasons = fixture.reasons("web").await;
    for reason in [
        "EnsuringLoadBalancer",
        "EnsuredLoadBalancer",
        "DeletingLoadBalancer",
        "DeletedLoadBalancer",
    ] {
        assert!(
            reasons.iter().any(|it| it == reason),
            "{reason}: {reasons:?}"
        );
    }
}

async fn the_finalizer_stays_until_the_cloud_has_let_go(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    fixture.address("web").await;
    let cloud = &fixture.world.cloud;
    cloud.change_settings(|settings| settings.action_duration = Duration::from_secs(2));
    cloud.reset_calls();
    fixture.delete("web").await;
    fixture.wait_for_event("web", "DeletingLoadBalancer").await;
    let deleting = fixture.until("web", |_| true).await;
    assert!(deleting.metadata.deletion_timestamp.is_some());
    assert!(has_finalizer(&deleting));
    assert_eq!(fixture.balancers().len(), 1, "it is still being taken down");
    fixture.until_gone("web").await;
    assert!(fixture.balancers().is_empty());
    assert_eq!(cloud.calls().of(Operation::DeleteBalancer), 1);
}

/// The simulated cloud reaches targets by node ports only, so it cannot do without.
async fn a_service_without_node_ports_gets_an_event_and_is_served_when_it_has_them(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    let service = fixture.service("web").port("main", 80).without_node_ports();
    let made = fixture.create(service).await;
    assert_eq!(node_port(&made), None);
    let message = fixture
        .wait_for_event("web", "SyncLoadBalancerFailed")
        .await;
    assert!(
        message.contains("allocateLoadBalancerNodePorts"),
        "{message}"
    );
    let patch = json!({"spec": {"allocateLoadBalancerNodePorts": true}});
    let changed = fixture.patch("web", patch).await;
    let wanted = node_port(&changed).expect("a node port");
    fixture
        .balancer(|balancer| {
            let mut listeners = balancer.listeners.iter();
            listeners.any(|listener| i32::from(listener.target_port) == wanted)
        })
        .await;
    fixture.address("web").await;
}

async fn tcp_and_udp_share_a_port_of_one_service(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("dns").port("tcp", 53).udp_port("udp", 53))
        .await;
    fixture.address("dns").await;
    let balancer = fixture
        .balancer(|balancer| balancer.listeners.len() == 2)
        .await;
    let mut protocols: Vec<_> = balancer.listeners.iter().map(|l| l.protocol).collect();
    protocols.sort();
    assert_eq!(protocols, [Protocol::Tcp, Protocol::Udp]);
}

async fn a_service_of_another_class_keeps_the_status_that_others_give_it(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    let theirs = fixture.service("theirs").class("example.com/internal-vip");
    fixture.create(theirs.port("main", 80)).await;
    fixture
        .patch_status("theirs", json!([{"ip": "192.0.2.7"}]))
        .await;
    // Something that is served shows that enough time has passed.
    fixture
        .create(fixture.service("ours").port("main", 80))
        .await;
    fixture.address("ours").await;
    let theirs = fixture.until("theirs", |_| true).await;
    assert_eq!(address(&theirs).as_deref(), Some("192.0.2.7"));
    assert!(!has_finalizer(&theirs));
    assert_eq!(fixture.balancers().len(), 1);
}

async fn the_policy_local_is_checked_on_its_own_port_until_it_ends(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    let local = fixture
        .service("web")
        .port("main", 80)
        .external_traffic_local();
    let made = fixture.create(local).await;
    let health_port = spec(&made).health_check_node_port.expect("a health port");
    let is_asked_there = |balancer: &cloudkeel_testkit::simulated_cloud::wire::Balancer| {
        let check = balancer
            .listeners
            .first()
            .map(|listener| &listener.health_check);
        check.is_some_and(|check| check.port.map(i32::from) == Some(health_port))
    };
    let balancer = fixture.balancer(is_asked_there).await;
    let check = &balancer.listeners.first().expect("a listener").health_check;
    assert!(
        matches!(&check.probe, Probe::Http { path } if path == "/healthz"),
        "{check:?}"
    );
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    let changed = fixture.patch("web", cluster).await;
    let released = spec(&changed)
        .health_check_node_port
        .filter(|port| *port != 0);
    assert_eq!(released, None);
    fixture.balancer(|balancer| !is_asked_there(balancer)).await;
}

async fn nodes_that_come_become_targets(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    fixture
        .balancer(|balancer| balancer.targets.len() == 1)
        .await;
    join(&fixture.world).await;
    fixture
        .balancer(|balancer| balancer.targets.len() == 2)
        .await;
    assert_eq!(fixture.nodes.len(), 1);
}

async fn a_restart_changes_nothing_and_what_was_deleted_meanwhile_goes(on: EitherApi) {
    let mut fixture = ServiceFixture::open(on, 1).await;
    for name in ["stays", "goes"] {
        fixture.create(fixture.service(name).port("main", 80)).await;
        fixture.address(name).await;
    }
    let before = fixture
        .until("stays", has_finalizer)
        .await
        .metadata
        .resource_version;
    fixture.world.cloud.reset_calls();
    fixture.restart().await;
    assert_eq!(fixture.world.cloud.calls().mutations(), 0);
    let after = fixture
        .until("stays", |_| true)
        .await
        .metadata
        .resource_version;
    assert_eq!(after, before, "nothing is written");
    fixture.delete("goes").await;
    fixture.until_gone("goes").await;
    assert_eq!(fixture.balancers().len(), 1);
}

async fn a_service_that_was_recreated_never_gets_what_was_meant_for_its_predecessor(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    fixture.address("web").await;
    let first = fixture.balancer(|_| true).await;
    fixture.delete_by_force("web").await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    let second = fixture.balancer(|balancer| balancer.id != first.id).await;
    let ip = second.addresses.first().map(ToString::to_string);
    fixture.until("web", |service| address(service) == ip).await;
}
