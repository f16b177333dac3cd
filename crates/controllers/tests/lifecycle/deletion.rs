//! Machines that are really gone: their Nodes go, once, soon, and not all at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};
use crate::support::gate::What;

/// Every Node has it from the API server, until kube-controller-manager takes it away, which does not run here.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_gone_is_deleted_once_and_an_event_says_so() {
    let lab = Lab::settled(10).await;
    lab.lose([3]);
    lab.pass(SECOND * 25).await;
    assert_eq!(lab.deleted(), [""; 0], "one proof is not enough");
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted(), [lab.name(3)]);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.written(What::Delete), 1);
    let events = lab.api.events("DeletingNode");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (events[0].about.as_str(), events[0].count),
        (lab.name(3), 1)
    );
    assert_eq!(lab.api.world().nodes().len(), 9);
}

/// Every deletion of the `burst` may come at once; each further one waits its turn, `interval` after the one
/// before.
fn assert_limited(deletions: &[(String, Duration)], burst: usize, interval: Duration) {
    let (_, first) = deletions[0];
    for (index, (name, at)) in deletions.iter().enumerate() {
        let turns = u32::try_from((index + 1).saturating_sub(burst)).unwrap();
        let earliest = first + interval * turns;
        assert!(
            *at >= earliest,
            "{name} is number {index} and went at {at:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_are_gone_go_in_a_burst_and_then_a_fifth_of_the_cloud_in_a_minute() {
    let cases = [
        ("4 of 10", 10, 4, 10, SECOND * 10),
        ("20 of 100", 100, 20, 20, SECOND * 3),
        ("60 of 100", 100, 60, 20, SECOND * 3),
    ];
    for (name, nodes, gone, burst, interval) in cases {
        let lab = Lab::settled(nodes).await;
        lab.lose(0..gone);
        lab.pass(MINUTE * 5).await;
        let expected: BTreeSet<_> = (0..gone).map(|index| lab.name(index).to_owned()).collect();
        let deletions = lab.api.deletions();
        let deleted: BTreeSet<_> = deletions.iter().map(|(node, _)| node.clone()).collect();
        assert_eq!(deleted, expected, "{name}");
        assert_eq!(deletions.len(), gone, "{name}: each only once");
        assert_limited(&deletions, burst, interval);
        assert_eq!(lab.api.events("DeletingNode").len(), gone, "{name}");
        assert!(!lab.are_deletions_stopped(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn sixty_at_once_take_as_long_as_the_limiter_says() {
    let lab = Lab::settled(100).await;
    lab.lose(0..60);
    lab.pass(SECOND * 80).await;
    let so_far = lab.deleted().len();
    assert!((25..=45).contains(&so_far), "{so_far}");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_an_autoscaler_removes_do_not_count_against_the_limiter() {
    for taint in ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"] {
        let lab = Lab::settled(100).await;
        for index in 0..50 {
            let taints = json!([{"key": taint, "effect": "NoSchedule"}]);
            let patch = json!({"spec": {"taints": taints}});
            lab.api.world().change(lab.name(index), &patch);
        }
        lab.lose(0..60);
        lab.pass(MINUTE * 2).await;
        assert_eq!(lab.deleted().len(), 60, "{taint}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_refused_is_tried_again_until_it_is_done() {
    for (case, status, failures) in [
        ("no right to delete", 403, 1),
        ("trouble of the server", 500, 1),
        ("a conflicting write", 409, 0),
    ] {
        let lab = Lab::settled(10).await;
        (0..3).for_each(|_| lab.api.refuse(What::Delete, status));
        lab.lose([3]);
        lab.pass(MINUTE * 5).await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{case}");
        assert_eq!(lab.written(What::Delete), 4, "{case}");
        let events = lab.api.events("DeletingNodeFailed");
        assert_eq!(events.len(), failures, "{case}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_only_switched_off_keeps_its_node() {
    let lab = Lab::settled(10).await;
    lab.cloud.power_off(lab.machines[3].id).unwrap();
    lab.silence(3);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [""; 0]);
    let shutdown = "node.cloudprovider.kubernetes.io/shutdown";
    assert_eq!(lab.taints(3), [NOT_READY, shutdown]);
    let events = lab.api.events("MachineShutDown");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].about, lab.name(3));
    let taint = format!("{shutdown}:NoSchedule");
    assert!(events[0].message.contains(&taint), "{events:?}");
    assert_eq!(lab.api.events("MachineRunsAgain").len(), 0);
    lab.cloud.power_on(lab.machines[3].id).unwrap();
    lab.set_ready(3, "True");
    lab.pass(MINUTE).await;
    assert_eq!(lab.taints(3), [NOT_READY]);
    let events = lab.api.events("MachineRunsAgain");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].message.contains(&taint), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_recreated_under_its_name_survives() {
    for (case, moment) in [
        ("before it is read again", What::Read),
        ("before it is deleted", What::Delete),
    ] {
        let lab = Lab::settled(10).await;
        let name = lab.name(3).to_owned();
        lab.api.before(moment, move |world| {
            world.remove(&name);
            world.create(&name, &json!({}));
        });
        lab.lose([3]);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{case}");
        assert_eq!(lab.api.world().nodes().len(), 10, "{case}");
        let refused = lab.api.writes().iter().any(|write| write.status == 409);
        assert_eq!(refused, moment == What::Delete, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_recreated_with_the_same_machine_needs_proofs_of_its_own() {
    let lab = Lab::settled(10).await;
    let name = lab.name(3).to_owned();
    let before = lab.api.world().node(&name).unwrap();
    let spec = before["spec"].clone();
    lab.api.before(What::Read, move |world| {
        world.remove(&name);
        world.create(&name, &json!({"spec": spec}));
    });
    lab.lose([3]);
    let uid = |node: Option<Value>| node.map(|node| node["metadata"]["uid"].clone());
    for _ in 0..180 {
        lab.pass(SECOND).await;
        if uid(lab.api.world().node(lab.name(3))) != uid(Some(before.clone())) {
            break;
        }
    }
    lab.pass(SECOND * 25).await;
    assert_eq!(lab.written(What::Delete), 0);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted(), [lab.name(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_at_the_last_moment_is_decided_about_again() {
    let lab = Lab::settled(10).await;
    let name = lab.name(3).to_owned();
    lab.api.before(What::Delete, move |world| {
        let held = json!({"metadata": {"annotations": {"cloudkeel.dev/hold": "true"}}});
        world.change(&name, &held);
    });
    lab.lose([3]);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [""; 0]);
    assert_eq!(lab.written(What::Delete), 1, "refused once, then left");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_renews_its_lease_keeps_its_node_until_it_stops() {
    let lab = Lab::settled(10).await;
    lab.lose([3]);
    for _ in 0..60 {
        lab.renew_lease(3);
        lab.pass(SECOND * 10).await;
    }
    assert_eq!(lab.written(What::Delete), 0);
    assert_eq!(lab.api.events("NodeKept").len(), 1);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted(), [lab.name(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_ends_the_row_of_proofs() {
    let lab = Lab::settled(10).await;
    lab.live(lab.name(3));
    lab.lose([3]);
    lab.pass(SECOND * 25).await;
    let refused = 8;
    (0..refused).for_each(|_| lab.api.refuse(What::ReadLease, 500));
    lab.pass(MINUTE).await;
    assert_eq!(
        lab.written(What::Delete),
        0,
        "whether the kubelet reports is not known"
    );
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [lab.name(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_now_keeps_its_node_and_one_that_may_not_be_read_does_not() {
    for (case, status, refusals, is_kept) in [
        ("an API server in trouble", 503, 100, true),
        ("one that was in trouble", 503, 3, false),
        ("no right to read", 403, 100, false),
    ] {
        let lab = Lab::settled(10).await;
        (0..refusals).for_each(|_| lab.api.refuse(What::ReadLease, status));
        lab.lose([3]);
        lab.pass(MINUTE * 5).await;
        assert_eq!(lab.deleted().is_empty(), is_kept, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_a_stop_kept_from_being_used_are_not_all_used_when_it_ends() {
    let lab = Lab::settled(100).await;
    lab.lose(0..60);
    lab.pass(MINUTE).await;
    // Its kubelet lives, and its machine is gone.
    lab.live(lab.name(99));
    lab.destroy(99);
    lab.pass(MINUTE * 30).await;
    assert!(lab.are_deletions_stopped());
    let before = lab.api.deletions().len();
    assert!((20..40).contains(&before), "{before}");
    lab.silence(99);
    lab.pass(MINUTE * 5).await;
    let after = &lab.api.deletions()[before..];
    assert!(after.len() > 16, "{}", after.len());
    // A fifth of those that were left.
    assert_limited(after, 16, SECOND * 3);
}

#[tokio::test(start_paused = true)]
async fn turns_of_an_hour_without_an_api_server_are_not_all_used_when_it_is_back() {
    let lab = Lab::settled(100).await;
    (0..60).for_each(|index| lab.live(lab.name(index)));
    lab.lose(0..60);
    lab.pass(MINUTE).await;
    let before = lab.api.deletions().len();
    assert!((20..40).contains(&before), "{before}");
    (0..40 * 120).for_each(|_| lab.api.refuse(What::Read, 503));
    lab.pass(MINUTE * 60).await;
    assert_eq!(lab.api.deletions().len(), before);
    lab.api.end_refusals();
    lab.pass(MINUTE * 5).await;
    let after = &lab.api.deletions()[before..];
    assert!(after.len() > 16, "{}", after.len());
    assert_limited(after, 16, SECOND * 3);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_begins_the_proofs_anew() {
    for (case, is_quiet) in [
        ("a cluster in which nothing happens", true),
        ("a busy one", false),
    ] {
        let lab = Lab::settled(10).await;
        lab.lose([3]);
        lab.pass(SECOND * 25).await;
        lab.break_watch();
        if !is_quiet {
            lab.pass(SECOND).await;
            lab.annotate(5, "example.com/anything", "else");
        }
        lab.pass(SECOND * 25).await;
        assert_eq!(lab.deleted(), [""; 0], "{case}");
        lab.pass(if is_quiet { MINUTE * 2 } else { SECOND * 25 })
            .await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{case}");
    }
}
