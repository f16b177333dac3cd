//! The cloud throttles requests for ten minutes.

use std::time::Duration;

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually};
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation};
use serde_json::json;

use crate::cluster::{
    count, join, register, wait_for_address, wait_for_event, wait_for_initialized,
};
use crate::harness::{DEADLINE, World};
use crate::scrape::{free_port, get};
use crate::simulated::Simulated;

const MINUTE: Duration = Duration::from_mins(1);
const SERVICES: usize = 40;

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_it_cost_few_calls_and_are_made_up_for() {
    for (case, retry_after, most) in [
        ("it says a minute", Some(60), 12),
        // The cloud's `Retry-After` counts, for one request at a time.
        ("it says a second", Some(1), 610),
        ("it does not say", None, 20),
    ] {
        let mut simulated = Simulated::new();
        for number in 0..10 {
            simulated.join(&format!("node-{number}"));
        }
        let _manager = simulated.start("manager", &[]);
        simulated.serve("before", &json!({}));
        simulated.advance(MINUTE * 5).await;
        assert!(simulated.address("before").is_some(), "{case}");
        let faults = simulated.cloud.faults();
        faults.always(FaultMatch::any(), Fault::too_many_calls(retry_after));
        simulated.cloud.reset_calls();
        for number in 0..SERVICES {
            simulated.serve(&format!("web-{number}"), &json!({}));
        }
        for number in 10..20 {
            simulated.join(&format!("node-{number}"));
        }
        simulated.advance(MINUTE * 10).await;
        let calls = simulated.cloud.calls();
        eprintln!("{case}: {} calls", calls.total());
        assert!(calls.total() <= most, "{case}: {calls:?}");
        let events = simulated.events("web-0", "SyncLoadBalancerFailed");
        assert!(
            !events.is_empty() && events.len() <= 3,
            "{case}: {events:#?}"
        );
        for event in &events {
            let message = event["message"].as_str().unwrap_or_default();
            assert!(!message.contains("next try"), "{case}: {message}");
        }
        simulated.cloud.faults().clear();
        simulated.advance(MINUTE * 6).await;
        for number in 0..SERVICES {
            let name = format!("web-{number}");
            assert!(simulated.address(&name).is_some(), "{case}: {name}");
        }
        for number in 0..20 {
            assert!(
                simulated.is_initialized(&format!("node-{number}")),
                "{case}"
            );
        }
        assert_eq!(simulated.cloud.balancers().len(), SERVICES + 1, "{case}");
    }
}

/// The longest pause until the next try that a log names, in seconds.
fn longest_pause(log: &str) -> Option<u64> {
    let named = log.split("next try in ").skip(1);
    let seconds = named.filter_map(|rest| rest.split_once('s')?.0.parse().ok());
    seconds.max()
}

#[tokio::test]
async fn it_is_reported_with_the_next_retry_and_ends_when_the_cloud_says_so() {
    let world = World::new().await;
    let namespace = TestNamespace::create(&world.client, "failures").await;
    let namespace = namespace.expect("the namespace is made");
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let manager = world.start(&[
        &secure_port,
        "--bind-address=127.0.0.1",
        "--authorization-always-allow-paths=/metrics",
    ]);
    wait_for_initialized(&world, &join(&world).await.0).await;
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
    let message = wait_for_event(&world.client, namespace.name(), "web-0", reason).await;
    assert!(!message.contains("next try"), "{message}");
    let what = "a next try in fifteen seconds or a little less";
    eventually(what, DEADLINE, || async {
        longest_pause(&manager.log()).is_some_and(|seconds| (10..=15).contains(&seconds))
    })
    .await;
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
        wait_for_address(&world.client, namespace.name(), &format!("web-{number}")).await;
    }
    wait_for_initialized(&world, &name).await;
    assert_eq!(world.cloud.balancers_of(&world.id).len(), 10);
    assert!(
        count(&manager.log(), "next try in") <= 40,
        "{}",
        manager.log()
    );
}
