//! The wall clock of the leader is set an hour ahead, or back.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{LocalId, MachineSpec, SimulatedCloud};
use serde_json::json;

use crate::simulated::Simulated;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3600;

/// Ahead and back, in both orders.
const JUMPS: [(&str, i64); 2] = [("ahead", HOUR), ("back", -HOUR)];

#[tokio::test(start_paused = true)]
async fn no_candidate_loses_the_lease_or_takes_it_too_early() {
    for (case, jump) in JUMPS {
        for whose in ["the leader", "the standby"] {
            let simulated = Simulated::new();
            let first = simulated.start("first", &[]);
            simulated.advance(MINUTE).await;
            let second = simulated.start("second", &[]);
            simulated.advance(MINUTE).await;
            let before = simulated.leader();
            assert_eq!(before.0, "first");
            let clock = if whose == "the leader" {
                first.clock.clone()
            } else {
                second.clock.clone()
            };
            for jump in [jump, -jump] {
                clock.jump(jump);
                simulated.advance(MINUTE * 5).await;
                assert_eq!(simulated.leader(), before, "{whose}, {case}");
            }
            clock.jump(jump);
            drop(first);
            simulated.advance(Duration::from_secs(10)).await;
            assert_eq!(
                simulated.leader(),
                before,
                "{whose}, {case}: it is not over yet"
            );
            simulated.advance(Duration::from_secs(20)).await;
            assert_eq!(simulated.leader().0, "second", "{whose}, {case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_is_heard_keeps_its_node_by_any_clock() {
    for (case, jump) in JUMPS {
        let mut simulated = Simulated::new();
        let machines = ["a", "b", "c"].map(|name| simulated.join(name));
        let manager = simulated.start("manager", &[]);
        simulated.advance(MINUTE * 5).await;
        assert!(simulated.is_initialized("a"));
        // The cloud does not show an instance that runs, and its Node is not ready.
        simulated.cloud.destroy(machines[0]).expect("it is there");
        simulated.set_ready("a", "False");
        for jump in [jump, -jump] {
            manager.clock.jump(jump);
            simulated.advance(MINUTE * 10).await;
            assert!(simulated.node("a").is_some(), "{case}");
        }
        let kept = simulated.events("a", "NodeKept");
        let message = kept[0]["message"].as_str().unwrap_or_default();
        let why = "but its kubelet still sends heartbeats";
        assert!(message.contains(why), "{case}: {message}");
        manager.clock.jump(jump);
        simulated.stop_heartbeats("a");
        simulated.advance(MINUTE * 5).await;
        assert!(
            simulated.node("a").is_none(),
            "{case}: no kubelet reports any more"
        );
        assert!(simulated.node("b").is_some() && simulated.node("c").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_the_cloud_shows_late_is_no_older_by_a_jump() {
    let mut simulated = Simulated::new();
    for name in ["a", "b", "c"] {
        simulated.join(name);
    }
    let manager = simulated.start("manager", &[]);
    simulated.advance(MINUTE * 5).await;
    // It knows its own ID, and the cloud will know it in three minutes. Its kubelet has not reported yet.
    let next = simulated.cloud.add_machine(MachineSpec::named("newcomer"));
    let next = next.expect("a machine").id;
    simulated.cloud.destroy(next).expect("it is there");
    let id = LocalId::new(SimulatedCloud::PROJECT, next).provider_id();
    simulated.register("newcomer", &json!({"providerID": id}));
    simulated.stop_heartbeats("newcomer");
    simulated.set_ready("newcomer", "Unknown");
    manager.clock.jump(HOUR);
    simulated.advance(MINUTE * 3).await;
    assert!(
        simulated.node("newcomer").is_some(),
        "it is three minutes old"
    );
    let seen = simulated
        .cloud
        .revive_machine(next, MachineSpec::named("newcomer"));
    seen.expect("now it is shown");
    simulated.advance(MINUTE * 5).await;
    assert!(simulated.is_initialized("newcomer"));
}
