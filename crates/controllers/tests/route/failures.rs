//! Failures are reported and retried.

use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewRoute};
use cloudkeel_testkit::simulated_cloud::{Fault, Limits, Operation, Settings};
use serde_json::json;

use crate::lab::{HOUR, Lab, MINUTE, SECOND};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn a_failed_creation_is_an_event_on_the_node_and_retried() {
    let lab = Lab::settled(1).await;
    lab.cloud
        .faults()
        .always(Operation::BatchRoutes, Fault::status(423));
    let machine = lab.join(1);
    lab.pass(SECOND * 3).await;
    assert!(lab.is_unavailable("node-1"));
    assert!(lab.is_available("node-0"), "its route is there");
    assert_eq!(lab.observed()[0], ("error", "node_change"));
    let uid = lab.api.world().node(&machine.name).unwrap()["metadata"]["uid"].clone();
    let events = lab.api.events("FailedToCreateRoute").remove(0);
    assert_eq!(
        (events.source.as_str(), events.about.as_str()),
        ("route_controller", "node-1")
    );
    let beginning = format!(
        "Could not create route {} 10.244.1.0/24 for node node-1 after ",
        uid.as_str().unwrap()
    );
    assert!(events.message.starts_with(&beginning), "{}", events.message);

    lab.cloud.faults().clear();
    lab.pass(MINUTE).await;
    assert!(lab.is_available("node-1"));
    assert_eq!(lab.routes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_destroyed_gets_an_event_only_if_it_stays() {
    let lab = Lab::settled(1).await;
    let machine = lab.machine(1);
    lab.cloud.destroy(machine.id).unwrap();
    lab.add_node(&machine, &json!({}));
    lab.pass(MINUTE * 2).await;
    assert!(lab.is_unavailable("node-1"), "it was tried");
    let warnings = || lab.api.events("FailedToCreateRoute");
    assert_eq!(warnings(), [], "as when a machine is replaced");
    lab.pass(MINUTE * 30).await;
    let events = warnings();
    assert!(!events.is_empty());
    assert!(events[0].message.contains("no machine"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_credential_ends_the_wait_that_the_one_before_it_began() {
    let lab = Lab::settled(1).await;
    lab.cloud
        .faults()
        .always(Operation::ListRoutes, Fault::status(401));
    lab.join(2);
    lab.pass(MINUTE).await;
    assert_eq!(lab.routes().len(), 1);
    lab.cloud.faults().clear();
    lab.reload().await;
    lab.pass(SECOND * 5).await;
    assert!(lab.is_available("node-2"));
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_ever_more_slowly() {
    let lab = Lab::settled(1).await;
    lab.cloud
        .faults()
        .always(Operation::BatchRoutes, Fault::status(423));
    lab.join(1);
    lab.pass(HOUR).await;
    let looks = lab.observed().len();
    assert!((8..=16).contains(&looks), "{looks}");
    assert_eq!(lab.written(), 1, "an equal condition is not written again");
}

#[tokio::test(start_paused = true)]
async fn one_route_that_cannot_be_made_holds_back_no_other() {
    let settings = Settings {
        limits: Limits {
            routes: 2,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let lab = Lab::with(settings, |_| {}).await;
    for index in 0..3 {
        lab.join(index);
    }
    lab.pass(SECOND * 3).await;
    assert_eq!(lab.routes().len(), 2);
    assert!(lab.is_available("node-0") && lab.is_available("node-1"));
    assert!(lab.is_unavailable("node-2"));
    let events = lab.api.events("FailedToCreateRoute");
    assert!(
        events[0].message.contains("has 2 routes already"),
        "{events:?}"
    );
    // It needs a change by the user, and is retried without a sign of it.
    lab.cloud
        .change_settings(|settings| settings.limits.routes = 3);
    lab.pass(MINUTE * 11).await;
    assert!(lab.is_available("node-2"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_made_good_without_a_second_route() {
    let lab = Lab::settled(1).await;
    lab.cloud
        .faults()
        .once(Operation::BatchRoutes, Fault::BrokenAfter);
    lab.join(1);
    lab.pass(MINUTE).await;
    assert!(lab.is_available("node-1"));
    assert_eq!(lab.routes().len(), 2);
    assert_eq!(lab.cloud.calls().of(Operation::BatchRoutes), 1);
}

#[tokio::test(start_paused = true)]
async fn whatever_a_list_answers_badly_no_route_is_lost() {
    for (case, fault) in [
        ("401", Fault::status(401)),
        ("403", Fault::status(403)),
        ("404", Fault::status(404)),
        ("429", Fault::too_many_calls(None)),
        ("503", Fault::status(503)),
        ("no answer", Fault::NoAnswer),
        ("broken connection", Fault::BrokenBefore),
        ("empty list", Fault::EmptyList),
        ("truncated page", Fault::TruncatedPage),
        ("missing next link", Fault::LostNextPage),
        ("malformed JSON", Fault::MalformedJson),
        ("HTML", Fault::Html),
        ("empty body", Fault::EmptyBody),
        ("stale", Fault::Stale { by: MINUTE * 5 }),
        (
            "another project",
            Fault::OtherProject {
                project: "other".into(),
            },
        ),
    ] {
        let lab = Lab::settled(3).await;
        let before = lab.routes();
        lab.cloud.faults().always(Operation::ListRoutes, fault);
        lab.join(7);
        lab.pass(MINUTE * 5).await;
        let during = lab.routes();
        assert!(
            before.iter().all(|r| during.contains(r)),
            "{case}: {during:?}"
        );
        lab.cloud.faults().clear();
        lab.pass(MINUTE * 15).await;
        assert_eq!(lab.routes().len(), 4, "{case}");
        assert!(lab.is_available("node-7"), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_meets_a_conflict_is_written_again_at_once() {
    let lab = Lab::new().await;
    lab.api.refuse(What::WriteConditions, 409);
    lab.api.refuse(What::WriteConditions, 409);
    lab.join(1);
    lab.pass(SECOND * 2).await;
    assert!(lab.is_available("node-1"));
    let statuses: Vec<_> = lab.api.writes().iter().map(|write| write.status).collect();
    assert_eq!(statuses, [409, 409, 200]);
    assert_eq!(lab.observed(), [("changed", "node_change")]);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_could_not_be_written_is_written_later() {
    for (case, status) in [("broken", 500), ("forbidden", 403)] {
        let lab = Lab::new().await;
        lab.api.refuse(What::WriteConditions, status);
        lab.join(1);
        lab.pass(SECOND * 2).await;
        assert_eq!(lab.network_unavailable("node-1"), None, "{case}");
        assert_eq!(lab.observed(), [("error", "node_change")], "{case}");
        lab.pass(MINUTE * 11).await;
        assert!(lab.is_available("node-1"), "{case}");
        assert_eq!(lab.routes().len(), 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_route_outside_the_cluster_cidr_is_in_the_way_and_stays() {
    let lab = Lab::settled(1).await;
    let machine = lab.machine(3);
    let theirs = NewRoute {
        destination: "10.99.3.0/24".parse().unwrap(),
        hop: Hop::Machine(lab.machine(4).id),
    };
    let theirs = lab.cloud.add_route(theirs).unwrap();
    let outside = serde_json::json!({"spec": {"podCIDRs": ["10.99.3.0/24"]}});
    lab.add_node(&machine, &outside);
    lab.pass(MINUTE * 5).await;
    assert!(lab.cloud.routes().contains(&theirs));
    assert!(lab.is_unavailable("node-3"));
    assert!(!lab.api.events("FailedToCreateRoute").is_empty());
}
