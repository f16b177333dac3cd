//! What the node controllers report in `/status`.

use cloudkeel_testkit::simulated_cloud::Settings;

use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};

#[tokio::test(start_paused = true)]
async fn when_all_is_well_nothing_waits_and_the_whole_burst_is_left() {
    let lab = Lab::settled(10).await;
    let [node, lifecycle] = lab.reports();
    assert_eq!(node.waits_for, [""; 0]);
    assert_eq!(lifecycle.waits_for, [""; 0]);
    let [deletions] = lifecycle.deletions.as_slice() else {
        panic!("{lifecycle:?}");
    };
    assert_eq!(deletions.cloud, "local");
    assert_eq!(deletions.stopped, None);
    assert_eq!((deletions.limiter.burst, deletions.limiter.left), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_machine_is_named_with_the_reason() {
    let lab = Lab::empty(Settings::default()).await;
    lab.add_node("lonely", "False");
    lab.pass(MINUTE).await;
    let [node, _] = lab.reports();
    assert_eq!(node.waits_for.len(), 1, "{node:?}");
    assert!(node.waits_for[0].starts_with("lonely: "), "{node:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_taint_another_client_removed_waits_no_longer() {
    let lab = Lab::empty(Settings::default()).await;
    lab.add_node("lonely", "False");
    lab.pass(MINUTE).await;
    assert_eq!(lab.reports()[0].waits_for.len(), 1);
    let untainted = json!({"spec": {"taints": null}});
    lab.api.world().change("lonely", &untainted);
    lab.pass(MINUTE).await;
    assert_eq!(lab.reports()[0].waits_for, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_says_why_since_when_and_what_to_do() {
    let lab = Lab::settled(10).await;
    lab.live(lab.name(0));
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(TEN_MINUTES).await;
    let stopped = |lab: &Lab| lab.reports()[1].deletions[0].stopped.clone();
    let first = stopped(&lab).expect("a kubelet is heard without a machine");
    assert!(
        first
            .reason
            .contains("but its kubelet still sends heartbeats"),
        "{first:?}"
    );
    assert!(first.what_to_do.contains("credential"), "{first:?}");
    lab.pass(TEN_MINUTES).await;
    assert_eq!(stopped(&lab).unwrap().since, first.since, "it goes on");
    lab.silence(0);
    lab.pass(MINUTE * 3).await;
    assert_eq!(stopped(&lab), None);
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_a_node_is_no_longer_kept_for_it_while_its_deletion_is_confirmed() {
    let lab = Lab::settled(10).await;
    lab.live(lab.name(0));
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(TEN_MINUTES).await;
    let kept = || lab.reports()[1].waits_for.clone();
    assert!(kept()[0].contains("deletions are stopped"), "{:?}", kept());
    lab.silence(0);
    while lab.are_deletions_stopped() {
        lab.pass(SECOND).await;
    }
    // Every Node that is kept is checked again within this time.
    lab.pass(SECOND * 16).await;
    assert_eq!(lab.deleted(), [""; 0], "that takes more proofs");
    assert_eq!(kept(), [""; 0]);
    let pending = &lab.reports()[1].pending_deletions;
    assert!(!pending.is_empty(), "{pending:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_another_client_deletes_is_no_longer_kept() {
    let lab = Lab::settled(10).await;
    lab.annotate(3, "cloudkeel.dev/hold", "true");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
    lab.api.world().change(lab.name(3), &finalizer);
    lab.lose([3]);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.reports()[1].waits_for.len(), 1);
    lab.api.world().remove(lab.name(3));
    lab.pass(MINUTE * 2).await;
    assert!(lab.api.world().node(lab.name(3)).is_some(), "it waits");
    assert_eq!(lab.reports()[1].waits_for, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_wait_for_the_limiter_are_counted() {
    let lab = Lab::settled(100).await;
    lab.lose(0..40);
    lab.pass(MINUTE).await;
    let [_, lifecycle] = lab.reports();
    let waiting = lifecycle.deletions[0].limiter.waiting;
    assert!((10..=20).contains(&waiting), "{lifecycle:?}");
    let turns = lifecycle.waits_for.iter();
    assert!(
        turns.clone().any(|it| it.contains("a deletion slot")),
        "{lifecycle:?}"
    );
    assert!(
        turns.clone().any(|it| it.starts_with("and ")),
        "{lifecycle:?}"
    );
}
