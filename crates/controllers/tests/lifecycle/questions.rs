//! How often the cloud is asked.

use cloudkeel_testkit::simulated_cloud::Operation;

use crate::lab::{Lab, MINUTE, TEN_MINUTES};

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
async fn nodes_that_wait_for_their_turn_are_asked_about_when_it_comes_and_not_before() {
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
async fn a_turn_that_is_not_needed_any_more_is_somebody_elses() {
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
    assert_eq!(lifecycle.deletions[0].pace.waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_with_many_suspects_does_not_ask_more_than_a_few_questions_for_each() {
    let lab = Lab::settled(100).await;
    lab.destroy(0);
    lab.lose(1..50);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.is_halted());
    lab.cloud.reset_calls();
    lab.pass(TEN_MINUTES).await;
    let calls = lab.cloud.calls();
    // Each suspect once a minute, by ID and with its witness; the Ready Node once for all of them.
    let most = 49 * 11 + 10 * 11;
    let asked = calls.of(Operation::GetMachine);
    assert!(asked <= most, "{calls:?}");
}
