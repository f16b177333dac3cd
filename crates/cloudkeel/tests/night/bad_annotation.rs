//! One Service with a bad annotation among five hundred good ones.

use std::time::Duration;

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::harness::{DEADLINE, World};
use crate::inside::Inside;
use crate::people::{address, count, hears, initialised, join, served, told};

const GOOD: usize = 500;
const KEY: &str = "cloudkeel.dev/lb-algorithm";
const FAILED: &str = "SyncLoadBalancerFailed";

#[tokio::test]
async fn the_others_go_on_and_it_is_told_once_what_would_be_right() {
    let world = World::new().await;
    let namespace = TestNamespace::create(&world.client, "night").await;
    let namespace = namespace.expect("the namespace is made");
    let namespace = namespace.name();
    let manager = world.start(&[]);
    initialised(&world, &join(&world).await.0).await;
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
    let message = hears(&world.client, namespace, "bad", FAILED).await;
    for part in [
        KEY,
        "\"magic\"",
        "round-robin",
        "somebody has to change something first",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let events = told(&world.client, namespace, "bad", FAILED).await;
    let counts: Vec<_> = events.iter().filter_map(|event| event.count).collect();
    assert_eq!(counts, [1], "{events:#?}");
    let log = manager.log();
    assert_eq!(count(&log, "failed to ensure load balancer"), 1, "{log}");

    let right = json!({"metadata": {"annotations": {KEY: "round-robin"}}});
    let patched = all
        .patch("bad", &PatchParams::default(), &Patch::Merge(right))
        .await;
    patched.expect("the service is there");
    served(&world.client, namespace, "bad").await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_night_of_it_is_one_event_and_no_call() {
    let mut inside = Inside::new();
    inside.join("node");
    let _manager = inside.start("manager", &[]);
    inside.pass(Duration::from_mins(5)).await;
    inside.serve("bad", &json!({KEY: "magic"}));
    for number in 0..50 {
        inside.serve(&format!("good-{number}"), &json!({}));
    }
    inside.pass(Duration::from_mins(5)).await;
    for number in 0..50 {
        let name = format!("good-{number}");
        assert!(inside.address(&name).is_some(), "{name}");
    }
    inside.cloud.reset_calls();
    inside.pass(Duration::from_hours(8)).await;
    assert_eq!(inside.cloud.calls().mutations(), 0);
    let told = inside.told("bad", FAILED);
    assert_eq!(told.len(), 1, "{told:#?}");
    // Events are forgotten after an hour unless they come again.
    let count = told[0]["count"].as_u64().unwrap_or_default();
    assert!(
        (2..=8 * 12 + 2).contains(&count),
        "every five minutes: {count}"
    );
}
