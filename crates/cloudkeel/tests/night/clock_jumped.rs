//! The wall clock of the leader is set an hour ahead, or back.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{LocalId, MachineSpec, SimulatedCloud};
use serde_json::json;

use crate::inside::Inside;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3600;

/// There and back, whichever comes first.
const JUMPS: [(&str, i64); 2] = [("ahead", HOUR), ("back", -HOUR)];

#[tokio::test(start_paused = true)]
async fn nobody_loses_the_lease_or_takes_it_too_early() {
    for (case, jump) in JUMPS {
        for whose in ["the leader", "the standby"] {
            let inside = Inside::new();
            let first = inside.start("first", &[]);
            inside.pass(MINUTE).await;
            let second = inside.start("second", &[]);
            inside.pass(MINUTE).await;
            let before = inside.leader();
            assert_eq!(before.0, "first");
            let clock = if whose == "the leader" {
                first.clock.clone()
            } else {
                second.clock.clone()
            };
            for jump in [jump, -jump] {
                clock.jump(jump);
                inside.pass(MINUTE * 5).await;
                assert_eq!(inside.leader(), before, "{whose}, {case}");
            }
            clock.jump(jump);
            drop(first);
            inside.pass(Duration::from_secs(10)).await;
            assert_eq!(
                inside.leader(),
                before,
                "{whose}, {case}: it is not over yet"
            );
            inside.pass(Duration::from_secs(20)).await;
            assert_eq!(inside.leader().0, "second", "{whose}, {case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_is_heard_keeps_its_node_by_any_clock() {
    for (case, jump) in JUMPS {
        let mut inside = Inside::new();
        let machines = ["a", "b", "c"].map(|name| inside.join(name));
        let manager = inside.start("manager", &[]);
        inside.pass(MINUTE * 5).await;
        assert!(inside.is_initialised("a"));
        // The cloud has forgotten a machine that runs, and something on it is not well.
        inside.cloud.destroy(machines[0]).expect("it is there");
        inside.set_ready("a", "False");
        for jump in [jump, -jump] {
            manager.clock.jump(jump);
            inside.pass(MINUTE * 10).await;
            assert!(inside.node("a").is_some(), "{case}");
        }
        let kept = inside.told("a", "NodeKept");
        let message = kept[0]["message"].as_str().unwrap_or_default();
        let why = "but its kubelet is heard";
        assert!(message.contains(why), "{case}: {message}");
        manager.clock.jump(jump);
        inside.hush("a");
        inside.pass(MINUTE * 5).await;
        assert!(
            inside.node("a").is_none(),
            "{case}: nobody is heard any more"
        );
        assert!(inside.node("b").is_some() && inside.node("c").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_the_cloud_shows_late_is_no_older_by_a_jump() {
    let mut inside = Inside::new();
    for name in ["a", "b", "c"] {
        inside.join(name);
    }
    let manager = inside.start("manager", &[]);
    inside.pass(MINUTE * 5).await;
    // It knows its own ID, and the cloud will know it in three minutes. Nobody has heard of its kubelet yet.
    let next = inside.cloud.add_machine(MachineSpec::named("newcomer"));
    let next = next.expect("a machine").id;
    inside.cloud.destroy(next).expect("it is there");
    let id = LocalId::new(SimulatedCloud::PROJECT, next).provider_id();
    inside.register("newcomer", &json!({"providerID": id}));
    inside.hush("newcomer");
    inside.set_ready("newcomer", "Unknown");
    manager.clock.jump(HOUR);
    inside.pass(MINUTE * 3).await;
    assert!(inside.node("newcomer").is_some(), "it is three minutes old");
    let seen = inside
        .cloud
        .revive_machine(next, MachineSpec::named("newcomer"));
    seen.expect("now it is shown");
    inside.pass(MINUTE * 5).await;
    assert!(inside.is_initialised("newcomer"));
}
