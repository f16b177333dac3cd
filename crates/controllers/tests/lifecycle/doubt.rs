//! A picture that makes no sense: nothing is deleted until it does.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{
    MachineSpec, Operation, Permission, Settings, SimulatedCloud,
};

use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};
use crate::support::cluster::RecordedEvent;
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn when_every_machine_seems_gone_nothing_is_deleted_and_an_event_says_so() {
    for (case, strangers) in [("an empty project", 0), ("machines of others", 3)] {
        let lab = Lab::settled(10).await;
        let spec = |i| MachineSpec::named(format!("stranger-{i}"));
        lab.cloud.add_machines(strangers, spec).unwrap();
        lab.lose(0..10);
        lab.pass(TEN_MINUTES * 3).await;
        assert_eq!(lab.written(What::Delete), 0, "{case}");
        assert!(lab.are_deletions_stopped(), "{case}");
        let events = lab.api.events("NodeKept");
        assert_eq!(events.len(), 10, "{case}: once for each Node: {events:?}");
        let why = "the cloud shows none of the 10 machines of this cluster";
        assert!(events[0].message.contains(why), "{case}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_by_itself_when_a_machine_is_seen_again() {
    let mut lab = Lab::settled(10).await;
    let spec = MachineSpec::named("stranger");
    lab.cloud.add_machine(spec).unwrap();
    lab.lose(0..10);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.are_deletions_stopped());
    let gone: Vec<_> = lab.machines.iter().map(|m| m.name.clone()).collect();
    let newcomer = lab.cloud.add_machine(MachineSpec::named("newcomer"));
    lab.machines = vec![newcomer.unwrap()];
    lab.add_node("newcomer", "True");
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.deleted(), gone);
    assert!(!lab.are_deletions_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_live_kubelet_without_a_machine_stops_all_deletions_until_it_is_silent() {
    type Begin = fn(&Lab);
    let ways: [(&str, Begin); 3] = [
        ("Ready, with a lease", |lab| lab.live(lab.name(0))),
        ("not Ready, with a lease", |lab| {
            lab.live(lab.name(0));
            lab.set_ready(0, "False");
        }),
        ("Ready, without a lease", |lab| lab.report_status(0)),
    ];
    for (case, begin) in ways {
        let lab = Lab::settled(10).await;
        begin(&lab);
        lab.destroy(0);
        lab.lose([1, 2]);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.written(What::Delete), 0, "{case}");
        assert!(lab.are_deletions_stopped(), "{case}");
        let events = lab.api.events("NodeKept");
        let why = format!(
            "the machine of {} is not found, but its kubelet still sends heartbeats",
            lab.name(0)
        );
        for index in [1, 2] {
            let of_it: Vec<_> = events
                .iter()
                .filter(|t| t.about == lab.name(index))
                .collect();
            assert_eq!(of_it.len(), 1, "{case}: {events:?}");
            assert!(of_it[0].message.contains(&why), "{case}: {events:?}");
        }
        lab.silence(0);
        lab.pass(MINUTE * 3).await;
        let gone = [lab.name(0), lab.name(1), lab.name(2)];
        assert_eq!(lab.deleted(), gone, "{case}");
        assert!(!lab.are_deletions_stopped(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_runs_on_another_machine_of_its_name_stops_nothing() {
    let lab = Lab::settled(10).await;
    for index in 0..4 {
        // Rebuilt under its name, while its Node stays: that has the old ID for good.
        lab.live(lab.name(index));
        lab.destroy(index);
        let rebuilt = MachineSpec::named(lab.name(index));
        lab.cloud.add_machine(rebuilt).unwrap();
    }
    lab.lose([5]);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted(), [lab.name(5)]);
    assert!(!lab.are_deletions_stopped());
    // Its own Node is no less gone when its kubelet is silent.
    lab.silence(0);
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.deleted(), [lab.name(0), lab.name(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_ready_node_whose_machine_went_moments_ago_stops_nothing() {
    let lab = Lab::settled(10).await;
    (0..10).for_each(|index| lab.live(lab.name(index)));
    lab.mute(lab.name(0));
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(MINUTE).await;
    assert_eq!(lab.deleted(), [lab.name(1)]);
    assert!(!lab.are_deletions_stopped());
}

#[tokio::test(start_paused = true)]
async fn more_than_a_fifth_of_the_ready_nodes_without_machines_stop_all_deletions() {
    let cordon = json!({"spec": {
        "unschedulable": true,
        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    }});
    let autoscaler = json!({"spec": {"taints": [
        {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"},
    ]}});
    let karpenter = json!({"spec": {"taints": [
        {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
    ]}});
    for (case, missing, change, stops) in [
        ("two of nine", 2, json!({}), false),
        ("three of nine", 3, json!({}), true),
        ("three that are cordoned", 3, cordon, true),
        ("three that the autoscaler removes", 3, autoscaler, false),
        ("three that Karpenter removes", 3, karpenter, false),
    ] {
        let lab = Lab::settled(10).await;
        for index in 1..=missing {
            lab.api.world().change(lab.name(index), &change);
            lab.destroy(index);
        }
        lab.lose([0]);
        lab.pass(MINUTE * 2).await;
        let expected = if stops { vec![] } else { vec![lab.name(0)] };
        assert_eq!(lab.deleted(), expected, "{case}");
        assert_eq!(lab.are_deletions_stopped(), stops, "{case}");
        (1..=missing).for_each(|index| lab.silence(index));
        lab.pass(MINUTE * 2).await;
        assert_eq!(lab.deleted().len(), missing + 1, "{case}: all are gone");
    }
}

#[tokio::test(start_paused = true)]
async fn proofs_from_before_many_ready_nodes_were_missing_still_count_when_that_is_over() {
    let lab = Lab::settled(20).await;
    lab.lose([0]);
    lab.pass(SECOND * 20).await;
    // A list that shows how many are missing is made for the next suspect.
    (1..=5).for_each(|index| lab.destroy(index));
    lab.lose([6]);
    lab.pass(SECOND * 50).await;
    assert!(lab.are_deletions_stopped());
    assert_eq!(lab.deleted(), [""; 0]);
    (1..=5).for_each(|index| lab.silence(index));
    lab.pass(SECOND * 16).await;
    assert_eq!(lab.deleted(), [lab.name(0)], "it need not begin anew");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_when_the_operator_has_removed_the_contradiction() {
    let lab = Lab::settled(10).await;
    lab.live(lab.name(0));
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.are_deletions_stopped());
    for index in [0, 1] {
        lab.api.world().remove(lab.name(index));
    }
    lab.pass(MINUTE * 2).await;
    assert!(!lab.are_deletions_stopped(), "no suspect is left to end it");
}

#[tokio::test(start_paused = true)]
async fn clocks_of_machines_that_are_wrong_neither_delay_nor_cause_a_deletion() {
    for minutes in [-60, -1, 1, 60] {
        let lab = Lab::settled(10).await;
        lab.api.world().shift_leases(minutes);
        (0..10).for_each(|index| lab.live(lab.name(index)));
        lab.pass(MINUTE).await;
        lab.lose([3]);
        lab.pass(MINUTE).await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{minutes}");
        // Another one's machine is hidden, but its kubelet lives.
        lab.destroy(4);
        lab.set_ready(4, "Unknown");
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{minutes}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_leases_to_read_a_node_that_stays_ready_without_a_machine_stops_deletions() {
    let lab = Lab::settled(10).await;
    (0..10_000).for_each(|_| lab.api.refuse(What::ReadLease, 403));
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(MINUTE).await;
    assert_eq!(lab.deleted(), [lab.name(1)], "it may have gone moments ago");
    lab.pass(MINUTE * 2).await;
    lab.lose([2]);
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.deleted(), [lab.name(1)], "it is Ready for too long");
    assert!(lab.are_deletions_stopped());
}

#[tokio::test(start_paused = true)]
async fn what_another_project_said_does_not_count_when_the_right_one_is_back() {
    // A call takes a while, so the credential may come back between the answer and its judgement.
    let latency = Duration::from_secs(3);
    for moment in 0..40_u32 {
        let mut settings = Settings::default();
        settings.features.tells_project = false;
        let lab = Lab::settled_on(settings, 4).await;
        lab.cloud
            .change_settings(|settings| settings.latency.fixed = latency);
        lab.cloud.add_project("other");
        let stranger = MachineSpec::named("stranger").in_project("other");
        lab.cloud.add_machine(stranger).unwrap();
        let swap = |project| {
            let token = SimulatedCloud::TOKEN;
            lab.cloud.grant(token, project, Permission::ReadWrite);
        };
        swap("other");
        lab.silence(0);
        lab.pass(MINUTE * 2 + latency / 2 * moment).await;
        assert!(lab.are_deletions_stopped(), "{moment}");
        swap(SimulatedCloud::PROJECT);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{moment}");
    }
}

/// From now on the credential is that of another project.
fn swap_project(lab: &Lab) {
    lab.cloud.add_project("other");
    let (token, everything) = (SimulatedCloud::TOKEN, Permission::ReadWrite);
    lab.cloud.grant(token, "other", everything);
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_replaced_right_after_a_list_is_reported_at_the_next_check() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::settled_on(settings, 4).await;
    // A Node that goes makes the controller list the cloud.
    lab.lose([3]);
    lab.cloud.reset_calls();
    while lab.cloud.calls().of(Operation::ListMachines) == 0 {
        lab.pass(SECOND).await;
    }
    assert!(!lab.are_deletions_stopped());
    // IDs do not tell: the provider takes them for its own.
    lab.reload(|| swap_project(&lab)).await;
    lab.silence(0);
    lab.pass(SECOND * 2).await;
    assert!(lab.are_deletions_stopped());
    let events = lab.api.events("NodeKept");
    let is_about = |event: &&RecordedEvent| event.about == lab.name(0);
    assert_eq!(events.iter().filter(is_about).count(), 1, "{events:?}");
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_recognises_no_id_is_reported_for_nodes_that_are_its_clouds_by_their_labels()
 {
    let lab = Lab::settled(3).await;
    let label = |cloud: &str| json!({"metadata": {"labels": {"cloudkeel.dev/cloud": cloud}}});
    lab.api.world().change(lab.name(0), &label("local"));
    lab.api.world().change(lab.name(1), &label("another"));
    swap_project(&lab);
    lab.reload(|| ()).await;
    (0..3).for_each(|index| lab.silence(index));
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [""; 0]);
    let events = lab.api.events("NodeKept");
    let about: Vec<_> = events.iter().map(|event| event.about.as_str()).collect();
    assert_eq!(
        about,
        [lab.name(0)],
        "once, and no Node of others: {events:?}"
    );
    assert!(events[0].message.contains("another project"), "{events:?}");
}
