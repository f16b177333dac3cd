//! Balancers that outlive their Services.

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};
use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND};

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

/// One Service, served, that says this about its balancer.
async fn served(retain: &str) -> Lab {
    let lab = Lab::with_nodes(2).await;
    let service = annotated("cloudkeel.dev/lb-retain", retain);
    lab.api.world().create_service("old", &service);
    lab.pass(SECOND * 5).await;
    lab.forget();
    lab
}

#[tokio::test(start_paused = true)]
async fn a_retained_balancer_loses_its_owner_labels_and_a_successor_gets_its_address() {
    let lab = served("true").await;
    let before = lab.balancer("old").unwrap();
    lab.api.world().delete_service("old");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.api.world().service("old"), None, "it does not wait");
    let [left] = lab.cloud.balancers().try_into().unwrap();
    assert_eq!(
        (left.id, &left.listeners, &left.targets),
        (before.id, &before.listeners, &before.targets)
    );
    assert!(
        !left.labels.contains_key("cloudkeel.dev/service-uid"),
        "{:?}",
        left.labels
    );
    let events = lab.events("old", "RetainedLoadBalancer");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains(&left.id.to_string()), "{events:?}");
    for reason in ["DeletingLoadBalancer", "DeletedLoadBalancer"] {
        assert_eq!(lab.events("old", reason), [""; 0]);
    }
    lab.pass(MINUTE * 30).await;
    assert_eq!(
        *lab.observed.left_over.lock().unwrap(),
        0,
        "it is no orphan"
    );

    let adopt = annotated("cloudkeel.dev/adopt", &left.id.to_string());
    lab.api.world().create_service("new", &adopt);
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.balancer("new").unwrap().id, before.id);
    assert_eq!(lab.address("new"), Some(before.addresses[0].to_string()));
    assert_eq!(lab.cloud.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_a_clear_no_deletes_a_balancer() {
    for (retain, left) in [("true", 1), ("perhaps", 1), ("false", 0)] {
        let lab = Lab::with_nodes(1).await;
        lab.serve(1).await;
        let service = annotated("cloudkeel.dev/lb-retain", retain);
        lab.api.world().change_service("svc-0", &service);
        lab.pass(SECOND * 2).await;
        let other = json!({"spec": {"type": "ClusterIP"}});
        lab.api.world().change_service("svc-0", &other);
        lab.pass(SECOND * 5).await;
        assert!(!lab.has_finalizer("svc-0"), "{retain}");
        assert_eq!(lab.cloud.balancers().len(), left, "{retain}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_after_the_release_leaves_the_balancer_and_no_finalizer() {
    let mut lab = served("true").await;
    lab.cloud
        .faults()
        .once(Operation::ChangeBalancer, Fault::BrokenAfter);
    lab.api.world().delete_service("old");
    lab.pass(SECOND).await;
    lab.restart().await;
    lab.pass(MINUTE * 4).await;
    assert_eq!(lab.api.world().service("old"), None);
    assert_eq!(lab.cloud.balancers().len(), 1);
}
