//! What operators ask for in so many words: pause, retain, share and drain, on both API servers.

use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, TargetState};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::service_fixture::ServiceFixture;

on_both_apis![
    a_paused_service_stays_as_it_is_until_the_pause_ends,
    a_retained_balancer_gives_its_address_to_a_successor,
    a_shared_balancer_keeps_what_others_have_on_it,
    a_drain_goes_on_under_the_next_leader,
];

async fn a_paused_service_stays_as_it_is_until_the_pause_ends(on: EitherApi) {
    let mut fixture = ServiceFixture::open(on, 1).await;
    fixture
        .create(fixture.service("web").port("main", 80))
        .await;
    let before = fixture.balancer(|it| it.targets.len() == 1).await;
    fixture.address("web").await;
    let pause = |value| json!({"metadata": {"annotations": {"cloudkeel.dev/paused": value}}});
    fixture.patch("web", pause(Some("true"))).await;
    let said = fixture.wait_for_event("web", "Paused").await;
    assert!(said.contains("cloudkeel.dev/paused"), "{said}");
    fixture
        .patch("web", json!({"spec": {"externalTrafficPolicy": "Local"}}))
        .await;
    fixture.delete("web").await;
    fixture.manager.signal("TERM");
    assert_eq!(fixture.manager.ended().await.code(), Some(0));
    fixture.manager = fixture.world.start(&["--controllers=service"]);
    fixture.manager.wait_for_log("service is paused").await;
    let [after] = fixture.balancers().try_into().expect("one balancer");
    assert_eq!((after.id, after.version), (before.id, before.version));
    fixture.patch("web", pause(None)).await;
    fixture.until_gone("web").await;
    assert!(fixture.balancers().is_empty());
}

async fn a_retained_balancer_gives_its_address_to_a_successor(on: EitherApi) {
    let fixture = ServiceFixture::open(on, 1).await;
    let retained = fixture
        .service("old")
        .port("main", 80)
        .annotation("cloudkeel.dev/lb-retain", "true");
    fixture.create(retained).await;
    let address = fixture.address("old").await;
    fixture.delete("old").await;
    fixture.until_gone("old").await;
    let said = fixture.wait_for_event("old", "RetainedLoadBalancer").await;
    let [left] = fixture.balancers().try_into().expect("one balancer");
    assert!(said.contains(&left.id.to_string()), "{said}");
    let successor = fixture
        .service("new")
        .port("main", 80)
        .annotation("cloudkeel.dev/adopt", left.id.to_string());
    fixture.create(successor).await;
    assert_eq!(fixture.address("new").await, address);
    assert_eq!(fixture.balancers().len(), 1);
}

async fn a_shared_balancer_keeps_what_others_have_on_it(on: EitherApi) {
    let mut fixture = ServiceFixture::open(on, 1).await;
    let theirs = fixture
        .service("theirs")
        .port("main", 80)
        .annotation("cloudkeel.dev/lb-retain", "true");
    fixture.create(theirs).await;
    fixture.address("theirs").await;
    fixture.delete("theirs").await;
    fixture.until_gone("theirs").await;
    let [left] = fixture.balancers().try_into().expect("one balancer");
    let shared = fixture
        .service("web")
        .port("main", 443)
        .annotation("cloudkeel.dev/adopt", left.id.to_string())
        .annotation("cloudkeel.dev/lb-exclusive", "false");
    fixture.create(shared).await;
    let ports = |it: &Balancer| it.listeners.iter().map(|it| it.port).collect::<Vec<_>>();
    let both = fixture.balancer(|it| ports(it) == [80, 443]).await;
    assert_eq!(both.name, left.name);
    fixture.address("web").await;
    fixture.restart().await;
    let [after] = fixture.balancers().try_into().expect("one balancer");
    assert_eq!((after.id, after.version), (both.id, both.version));
    let other = json!([{"name": "main", "port": 8443, "protocol": "TCP"}]);
    fixture
        .patch("web", json!({"spec": {"ports": other}}))
        .await;
    fixture.balancer(|it| ports(it) == [80, 8443]).await;
    fixture.delete("web").await;
    fixture.until_gone("web").await;
    fixture
        .wait_for_event("web", "SharedLoadBalancerLeft")
        .await;
    let [after] = fixture.balancers().try_into().expect("one balancer");
    assert_eq!((ports(&after), after.targets), (vec![80], left.targets));
    assert_eq!(after.labels, left.labels);
}

async fn a_drain_goes_on_under_the_next_leader(on: EitherApi) {
    let mut fixture = ServiceFixture::open(on, 2).await;
    let patient = fixture
        .service("web")
        .port("main", 80)
        .annotation("cloudkeel.dev/lb-drain-seconds", "600");
    fixture.create(patient).await;
    fixture.address("web").await;
    fixture.balancer(|it| it.targets.len() == 2).await;
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(fixture.world.client.clone());
    let gone = fixture.nodes.first().expect("a node");
    let deleted = nodes.delete(gone, &DeleteParams::default()).await;
    deleted.expect("the node goes");
    let drains = |state: TargetState| state == TargetState::Draining;
    let is_draining = |it: &Balancer| {
        it.targets
            .iter()
            .filter(|target| drains(target.state))
            .count()
            == 1
    };
    let before = fixture.balancer(is_draining).await;
    fixture.restart().await;
    fixture
        .patch("web", json!({"spec": {"sessionAffinity": "ClientIP"}}))
        .await;
    let after = fixture.balancer(|it| it.version != before.version).await;
    assert!(is_draining(&after), "{:?}", after.targets);
}
