//! One Service with an invalid annotation among five hundred valid ones.

use std::time::Duration;

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::cluster::{
    address, count, events, join, wait_for_address, wait_for_event, wait_for_initialized,
};
use crate::harness::{DEADLINE, World};
use crate::simulated::Simulated;

const GOOD: usize = 500;
const KEY: &str = "cloudkeel.dev/lb-algorithm";
const FAILED: &str = "SyncLoadBalancerFailed";

#[tokio::test]
async fn the_others_are_served_and_one_event_says_what_would_be_right() {
    let world = World::new().await;
    let namespace = TestNamespace::create(&world.client, "failures").await;
    let namespace = namespace.expect("the namespace is made");
    let namespace = namespace.name();
    let manager = world.start(&[]);
    wait_for_initialized(&world, &join(&world).await.0).await;
    let service = |name: String| ServiceBuilder::new(namespace, name).class(world.class());
    let bad = service("bad".to_owned()).annotation(KEY, "magic");
    let bad = bad.port("main", 80).create(&world.client).await;
    bad.expect("the service is made");
    let good = (0..GOOD).map(|number| {
        let good = service(format!("good-{number}")).port("main", 80);
        let client = &world.client;
        async move { good.create(client).await.expect("the service is made") }
    });
    let made: Vec<_> = futures::stream::iter(good)
        .buffer_unordered(16)
        .collect()
        .await;
    assert_eq!(made.len(), GOOD);
    let all: Api<Service> = Api::namespaced(world.client.clone(), namespace);
    eventually("all but one are served", DEADLINE * 2, || async {
        let services = all.list(&ListParams::default()).await?;
        let waiting = services.iter().filter(|it| address(it).is_none()).count();
        Ok::<_, kube::Error>((waiting == 1).then_some(()))
    })
    .await;
    assert_eq!(world.cloud.balancers_of(&world.id).len(), GOOD);
    let message = wait_for_event(&world.client, namespace, "bad", FAILED).await;
    for part in [
        KEY,
        "\"magic\"",
        "round-robin",
        "needs a change of the Service or the configuration",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let events = events(&world.client, namespace, "bad", FAILED).await;
    let counts: Vec<_> = events.iter().filter_map(|event| event.count).collect();
    assert_eq!(counts, [1], "{events:#?}");
    let log = manager.log();
    assert_eq!(count(&log, "failed to ensure load balancer"), 1, "{log}");

    let right = json!({"metadata": {"annotations": {KEY: "round-robin"}}});
    let patched = all
        .patch("bad", &PatchParams::default(), &Patch::Merge(right))
        .await;
    patched.expect("the service is there");
    wait_for_address(&world.client, namespace, "bad").await;
}

#[tokio::test(start_paused = true)]
async fn eight_hours_of_it_are_one_event_and_no_call() {
    let mut simulated = Simulated::new();
    simulated.join("node");
    let _manager = simulated.start("manager", &[]);
    simulated.advance(Duration::from_mins(5)).await;
    simulated.serve("bad", &json!({KEY: "magic"}));
    for number in 0..50 {
        simulated.serve(&format!("good-{number}"), &json!({}));
    }
    simulated.advance(Duration::from_mins(5)).await;
    for number in 0..50 {
        let name = format!("good-{number}");
        assert!(simulated.address(&name).is_some(), "{name}");
    }
    simulated.cloud.reset_calls();
    simulated.advance(Duration::from_hours(8)).await;
    assert_eq!(simulated.cloud.calls().mutations(), 0);
    let events = simulated.events("bad", FAILED);
    assert_eq!(events.len(), 1, "{events:#?}");
    // Events expire after an hour unless they are repeated.
    let count = events[0]["count"].as_u64().unwrap_or_default();
    assert!(
        (2..=8 * 12 + 2).contains(&count),
        "every five minutes: {count}"
    );
}
