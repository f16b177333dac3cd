//! The cloud answers "too many requests" for ten minutes.

use std::time::Duration;

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace};
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation};
use serde_json::json;

use crate::harness::World;
use crate::inside::Inside;
use crate::people::{count, hears, initialised, join, register, served};
use crate::scrape::{free_port, get};

const MINUTE: Duration = Duration::from_mins(1);
const SERVICES: usize = 40;

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_it_cost_few_calls_and_are_made_up_for() {
    for (case, retry_after, most) in [
        ("it says a minute", Some(60), 12),
        // The cloud's own word counts, for one call at a time.
        ("it says a second", Some(1), 610),
        ("it does not say", None, 20),
    ] {
        let mut inside = Inside::new();
        for number in 0..10 {
            inside.join(&format!("node-{number}"));
        }
        let _manager = inside.start("manager", &[]);
        inside.serve("before", &json!({}));
        inside.pass(MINUTE * 5).await;
        assert!(inside.address("before").is_some(), "{case}");
        let faults = inside.cloud.faults();
        faults.always(FaultMatch::any(), Fault::too_many_calls(retry_after));
        inside.cloud.reset_calls();
        for number in 0..SERVICES {
            inside.serve(&format!("web-{number}"), &json!({}));
        }
        for number in 10..20 {
            inside.join(&format!("node-{number}"));
        }
        inside.pass(MINUTE * 10).await;
        let calls = inside.cloud.calls();
        eprintln!("{case}: {} calls", calls.total());
        assert!(calls.total() <= most, "{case}: {calls:?}");
        let told = inside.told("web-0", "SyncLoadBalancerFailed");
        assert!(!told.is_empty() && told.len() <= 3, "{case}: {told:#?}");
        for event in &told {
            let message = event["message"].as_str().unwrap_or_default();
            assert!(!message.contains("next try"), "{case}: {message}");
        }
        inside.cloud.faults().clear();
        inside.pass(MINUTE * 6).await;
        for number in 0..SERVICES {
            let name = format!("web-{number}");
            assert!(inside.address(&name).is_some(), "{case}: {name}");
        }
        for number in 0..20 {
            assert!(inside.is_initialised(&format!("node-{number}")), "{case}");
        }
        assert_eq!(inside.cloud.balancers().len(), SERVICES + 1, "{case}");
    }
}

#[tokio::test]
async fn it_is_told_with_the_next_try_and_over_when_the_cloud_says_so() {
    let world = World::new().await;
    let namespace = TestNamespace::create(&world.client, "night").await;
    let namespace = namespace.expect("the namespace is made");
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let manager = world.start(&[
        &secure_port,
        "--bind-address=127.0.0.1",
        "--authorization-always-allow-paths=/metrics",
    ]);
    initialised(&world, &join(&world).await.0).await;
    let faults = world.cloud.faults();
    faults.always(FaultMatch::any(), Fault::too_many_calls(Some(15)));
    world.cloud.reset_calls();
    for number in 0..10 {
        let service = ServiceBuilder::new(namespace.name(), format!("web-{number}"));
        let service = service.class(world.class()).port("main", 80);
        let made = service.create(&world.client).await;
        made.expect("the service is made");
    }
    let name = cloudkeel_testkit::cluster::unique_name("node");
    world.machine(&name);
    register(&world, &name).await;
    let reason = "SyncLoadBalancerFailed";
    let message = hears(&world.client, namespace.name(), "web-0", reason).await;
    assert!(!message.contains("next try"), "{message}");
    // Fifteen seconds or a little less.
    manager.says("next try in 1").await;
    let calls = world.cloud.calls();
    assert!(calls.total() <= 5, "one is refused, all wait: {calls:?}");
    assert_eq!(calls.of(Operation::CreateBalancer), 0, "{calls:?}");
    let (_, metrics) = get(port, "/metrics", None).await;
    let throttled = metrics
        .lines()
        .any(|line| line.starts_with("cloudkeel_cloud_calls_total") && line.contains("throttled"));
    assert!(throttled, "{metrics}");
    world.cloud.faults().clear();
    for number in 0..10 {
        served(&world.client, namespace.name(), &format!("web-{number}")).await;
    }
    initialised(&world, &name).await;
    assert_eq!(world.cloud.balancers_of(&world.id).len(), 10);
    assert!(
        count(&manager.log(), "next try in") <= 40,
        "{}",
        manager.log()
    );
}
