//! How often the cloud is asked.

use cloudkeel_testkit::simulated_cloud::{LocalId, Operation, Settings, SimulatedCloud};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};

#[tokio::test(start_paused = true)]
async fn a_node_that_stays_not_ready_is_asked_about_ever_less_often() {
    let lab = Lab::settled(10).await;
    lab.silence(3);
    let before = lab.looks();
    lab.pass(TEN_MINUTES).await;
    // After 0, 5, 10, 20, 40 seconds more, and then once a minute; upstream asks 120 times.
    let looks = lab.looks() - before;
    assert!((9..=15).contains(&looks), "{looks}");
    let calls = lab.cloud.calls();
    assert!(calls.total() <= 16, "{calls:?}");
    let before = lab.looks();
    lab.pass(TEN_MINUTES).await;
    let looks = lab.looks() - before;
    assert!((9..=11).contains(&looks), "{looks}: once a minute");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_wait_for_the_limiter_are_looked_up_when_their_slot_comes_and_not_before() {
    let lab = Lab::settled(100).await;
    lab.lose(0..60);
    lab.pass(MINUTE * 12).await;
    assert_eq!(lab.deleted().len(), 60);
    // Proofs in a row until it is enough, and one when the turn has come.
    let calls = lab.cloud.calls();
    let asked = calls.of(Operation::GetMachine);
    assert!(asked <= 60 * 6, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_not_needed_any_more_is_another_nodes() {
    let lab = Lab::settled(100).await;
    lab.lose(0..30);
    lab.pass(MINUTE).await;
    let deleted = lab.deleted().len();
    assert!((20..30).contains(&deleted), "{deleted}");
    let kept: Vec<_> = (0..30)
        .filter(|index| lab.api.world().node(lab.name(*index)).is_some())
        .collect();
    let (last, others) = kept.split_last().unwrap();
    for index in others {
        lab.api.world().remove(lab.name(*index));
    }
    lab.pass(MINUTE * 3).await;
    assert!(lab.api.world().node(lab.name(*last)).is_none());
    let [_, lifecycle] = lab.reports();
    assert_eq!(lifecycle.deletions[0].limiter.waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_with_many_suspects_does_not_ask_more_than_a_few_questions_for_each() {
    let lab = Lab::settled(100).await;
    lab.live(lab.name(0));
    lab.destroy(0);
    lab.lose(1..50);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.are_deletions_stopped());
    lab.cloud.reset_calls();
    lab.pass(TEN_MINUTES).await;
    let calls = lab.cloud.calls();
    // Each suspect once a minute, by ID and with its known instance; the Ready Node once for all of them.
    let most = 49 * 11 + 10 * 11;
    let asked = calls.of(Operation::GetMachine);
    assert!(asked <= most, "{calls:?}");
}

/// Nodes with machines, initialised long ago, so many of which are stopped.
async fn lab_with_stopped(nodes: usize, stopped: usize) -> Lab {
    let mut lab = Lab::empty(Settings::default()).await;
    lab.add_machines(nodes);
    for (index, machine) in lab.machines.iter().enumerate() {
        let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
        let ready = if index < stopped { "Unknown" } else { "True" };
        lab.add_node_with(&machine.name, ready, &json!({"spec": {"providerID": id}}));
        if index < stopped {
            lab.cloud.power_off(machine.id).unwrap();
        }
    }
    lab.pass(MINUTE * 30).await;
    lab.cloud.reset_calls();
    lab
}

#[tokio::test(start_paused = true)]
async fn stopped_machines_cost_one_look_up_a_minute_each_and_no_list() {
    for (nodes, stopped, most_a_minute) in [(1000, 1, 4), (2000, 20, 28)] {
        let lab = lab_with_stopped(nodes, stopped).await;
        lab.pass(MINUTE * 30).await;
        let calls = lab.cloud.calls();
        let most = most_a_minute * 30;
        assert!(calls.total() <= most, "{stopped} of {nodes}: {calls:?}");
        let shutdown = "node.cloudprovider.kubernetes.io/shutdown".to_owned();
        assert!(lab.taints(0).contains(&shutdown), "it was looked up");
    }
}

#[tokio::test(start_paused = true)]
async fn many_stopped_machines_share_a_list() {
    let lab = lab_with_stopped(500, 200).await;
    lab.pass(MINUTE * 30).await;
    let calls = lab.cloud.calls();
    // A list is 10 calls, and one a minute will do.
    assert!(calls.total() <= 30 * 12, "{calls:?}");
    assert_eq!(calls.of(Operation::GetMachine), 0, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn the_suspects_of_half_a_minute_share_a_list() {
    let lab = Lab::settled(100).await;
    for index in 0..20 {
        lab.lose([index]);
        lab.pass(SECOND * 5).await;
    }
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted().len(), 20);
    let calls = lab.cloud.calls();
    // Most proofs ask for a known instance besides, in a list of a few. A whole list is two pages, and one that is begun
    // in 20 seconds serves all suspects of that time. With one for each of them it would be a hundred calls.
    assert!(calls.of(Operation::ListMachines) <= 84, "{calls:?}");
}
