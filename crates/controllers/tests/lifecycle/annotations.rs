//! Annotations on a Node, and Nodes of other owners.

use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn a_node_that_is_held_is_kept_until_it_is_let_go() {
    for (case, value) in [("held", "true"), ("a value that cannot be read", "perhaps")] {
        let lab = Lab::settled(10).await;
        lab.annotate(3, "cloudkeel.dev/hold", value);
        lab.lose([3]);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.written(What::Delete), 0, "{case}");
        let events = lab.api.events("NodeKept");
        assert_eq!(events.len(), 1, "{case}: {events:?}");
        assert!(
            events[0].message.contains("held by annotation"),
            "{case}: {events:?}"
        );
        lab.annotate(3, "cloudkeel.dev/hold", "false");
        lab.pass(MINUTE * 2).await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_node_is_neither_written_nor_deleted_nor_asked_about() {
    for value in ["true", "perhaps"] {
        let lab = Lab::settled(10).await;
        lab.annotate(3, "cloudkeel.dev/paused", value);
        lab.annotate(4, "cloudkeel.dev/paused", value);
        lab.pass(SECOND).await;
        let events = lab.api.events("Paused");
        assert_eq!(events.len(), 2, "{value}: {events:?}");
        lab.api.forget();
        lab.lose([3]);
        lab.cloud.power_off(lab.machines[4].id).unwrap();
        lab.silence(4);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.api.writes(), [], "{value}");
        let waits_for = lab.reports().map(|report| report.waits_for).concat();
        assert_eq!(waits_for.len(), 2, "{value}: {waits_for:?}");
        for node in [3, 4] {
            lab.annotate(node, "cloudkeel.dev/paused", "false");
        }
        lab.pass(MINUTE * 2).await;
        assert_eq!(lab.deleted(), [lab.name(3)], "{value}");
        let shutdown = "node.cloudprovider.kubernetes.io/shutdown".to_owned();
        assert!(lab.taints(4).contains(&shutdown), "{:?}", lab.taints(4));
        assert_eq!(lab.api.events("Resumed").len(), 2, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_paused_is_initialized_when_the_pause_ends() {
    let mut lab = Lab::settled(0).await;
    lab.add_machines(1);
    let name = lab.name(0).to_owned();
    let mut node = crate::lab::tainted();
    node["metadata"]["annotations"] = json!({"cloudkeel.dev/paused": "true"});
    lab.add_node_with(&name, "True", &node);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.is_tainted(&name));
    assert_eq!(lab.api.writes(), []);
    lab.annotate(0, "cloudkeel.dev/paused", "false");
    lab.pass(SECOND * 5).await;
    assert!(!lab.is_tainted(&name));
}

#[tokio::test(start_paused = true)]
async fn delete_now_replaces_confirmation_and_doubt_but_not_the_proof() {
    let key = "cloudkeel.dev/delete-now";
    let lab = Lab::settled(10).await;
    lab.pass(MINUTE).await;
    lab.annotate(3, key, "true");
    lab.annotate(4, key, "true");
    lab.lose([3]);
    lab.silence(4);
    lab.pass(SECOND).await;
    assert_eq!(lab.deleted(), [lab.name(3)], "the first proof is enough");
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [lab.name(3)], "the machine of node 4 exists");

    let lab = Lab::settled(10).await;
    lab.live(lab.name(0));
    lab.destroy(0);
    lab.lose([1, 2]);
    lab.pass(MINUTE * 5).await;
    assert!(lab.are_deletions_stopped());
    lab.annotate(1, key, "true");
    lab.pass(MINUTE).await;
    assert_eq!(lab.deleted(), [lab.name(1)], "in spite of the stop");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_is_kept_in_spite_of_delete_now() {
    let lab = Lab::settled(10).await;
    lab.annotate(3, "cloudkeel.dev/delete-now", "true");
    lab.destroy(3);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.written(What::Delete), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_not_ours_are_left_alone() {
    let unmanaged = json!({
        "metadata": {"labels": {"cloudkeel.dev/unmanaged": "true"}},
        "spec": {"providerID": "local://demo/9999"},
    });
    let with_id = |id: &str| json!({"spec": {"providerID": id}});
    let cases: [(&str, Value); 5] = [
        ("unmanaged", unmanaged),
        ("another cloud", with_id("hcloud://7")),
        ("another project", with_id("local://other/7")),
        ("a malformed ID", with_id("local://demo/x")),
        ("no ID at all", json!({})),
    ];
    for (case, node) in cases {
        let lab = Lab::settled(3).await;
        lab.add_node_with("stranger", "Unknown", &node);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.api.writes(), [], "{case}");
        assert_eq!(lab.api.world().nodes().len(), 4, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_labels_of_nodes_that_are_not_ours_are_left_alone() {
    let own = json!({"failure-domain.beta.kubernetes.io/zone": "a"});
    let labels = |more: Value| {
        let mut labels = own.clone();
        json_patch::merge(&mut labels, &more);
        labels
    };
    let unmanaged = json!({"cloudkeel.dev/unmanaged": "true"});
    let of = |cloud: &str| json!({"cloudkeel.dev/cloud": cloud});
    let cases = [
        ("ours by its ID", "local://demo/1", json!({}), true),
        ("ours by its label", "", of("local"), true),
        ("unmanaged", "local://demo/1", unmanaged.clone(), false),
        ("unmanaged without an ID", "", unmanaged, false),
        ("another cloud", "hcloud://7", json!({}), false),
        ("another project", "local://other/7", json!({}), false),
        ("a malformed ID", "local://demo/x", json!({}), false),
        (
            "an ID that cannot be read",
            "local://demo/1 2",
            json!({}),
            false,
        ),
        ("a label that names no cloud here", "", of("moon"), false),
        ("owner not known", "", json!({}), false),
    ];
    for (case, id, more, is_ours) in cases {
        let lab = Lab::empty(cloudkeel_testkit::simulated_cloud::Settings::default()).await;
        let spec = json!({"providerID": id});
        let node = json!({"metadata": {"labels": labels(more)}, "spec": spec});
        lab.add_node_with("node", "True", &node);
        lab.pass(MINUTE).await;
        assert_eq!(lab.written(What::Write), usize::from(is_ours), "{case}");
        let conditions = json!([{"type": "Ready", "status": "Unknown"}]);
        let silent = json!({"status": {"conditions": conditions}});
        lab.api.world().change("node", &silent);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.api.writes().len(), usize::from(is_ours), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_taint_on_a_node_that_is_not_ours_stays() {
    let shutdown = "node.cloudprovider.kubernetes.io/shutdown";
    let taints = json!([{"key": shutdown, "effect": "NoSchedule"}]);
    let unmanaged = json!({"cloudkeel.dev/unmanaged": "true"});
    for (case, id, labels, is_ours) in [
        ("ours", "local://demo/1", json!({}), true),
        ("unmanaged", "local://demo/1", unmanaged, false),
        ("another cloud", "hcloud://7", json!({}), false),
        ("another project", "local://other/7", json!({}), false),
    ] {
        let lab = Lab::empty(cloudkeel_testkit::simulated_cloud::Settings::default()).await;
        let spec = json!({"providerID": id, "taints": taints});
        let node = json!({"metadata": {"labels": labels}, "spec": spec});
        lab.add_node_with("node", "True", &node);
        lab.pass(MINUTE).await;
        assert_eq!(lab.api.writes().len(), usize::from(is_ours), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_nodes_of_another_cloud_cost_nothing() {
    let lab = Lab::empty(cloudkeel_testkit::simulated_cloud::Settings::default()).await;
    for number in 0..500 {
        let id = format!("hcloud://{number}");
        let name = format!("stranger-{number}");
        lab.add_node_with(&name, "Unknown", &json!({"spec": {"providerID": id}}));
    }
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.api.writes(), []);
    assert_eq!(lab.cloud.calls().total(), 0, "{:?}", lab.cloud.call_log());
}
