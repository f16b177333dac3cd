//! Services that go without ever having had a balancer, and those that may have had one.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{
    Fault, FaultMatch, Operation, Permission, Settings, SimulatedCloud,
};
use serde_json::{Value, json};

use crate::lab::{FINALIZER, Lab, MINUTE, SECOND};

/// A Service whose balancer the cloud does not make.
async fn unserved(fault: &Fault) -> Lab {
    let lab = Lab::with_nodes(2).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::CreateBalancer, fault.clone());
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 10).await;
    assert!(lab.has_finalizer("web"));
    lab
}

/// A Service that another process has put the finalizer on, deleted before this one begins.
async fn inherited(more: &Value) -> Lab {
    let lab = Lab::idle(2, Settings::default(), ServiceSettings::default()).await;
    let finalizer = json!({"metadata": {"finalizers": [FINALIZER]}});
    lab.api.world().create_service("web", &finalizer);
    lab.api.world().change_service("web", more);
    lab.api.world().delete_service("web");
    lab
}

fn is_there(lab: &Lab) -> bool {
    lab.api.world().service("web").is_some()
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_balancer_was_refused_is_deleted_at_once() {
    for (case, fault) in [
        ("denied", Fault::status(403)),
        ("invalid", Fault::status(422)),
        ("a quota", Fault::status(402)),
        ("not now", Fault::status(412)),
        ("a teapot", Fault::status(418)),
    ] {
        for restart in ["none", "before the deletion", "after the deletion"] {
            let mut lab = unserved(&fault).await;
            match restart {
                "before the deletion" => lab.restart().await,
                "after the deletion" => lab.stop().await,
                _ => {}
            }
            lab.pass(SECOND).await;
            lab.api.world().delete_service("web");
            if restart == "after the deletion" {
                lab.start();
            }
            lab.pass(SECOND * 2).await;
            assert!(!is_there(&lab), "{case}, restart: {restart}");
            assert_eq!(lab.remembered(), 0, "{case}, restart: {restart}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_no_cloud_was_asked_for_is_deleted_at_once() {
    let impossible = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-algorithm": "magic"}}});
    for (case, desired, machines) in [
        ("it makes no sense", &impossible, true),
        ("no machine is seen", &json!({}), false),
    ] {
        let lab = Lab::with_nodes(2).await;
        if !machines {
            for machine in &lab.machines {
                lab.cloud.destroy(machine.id).unwrap();
            }
        }
        lab.api.world().create_service("web", desired);
        lab.pass(SECOND * 10).await;
        lab.api.world().delete_service("web");
        lab.pass(SECOND * 2).await;
        assert!(!is_there(&lab), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_with_nothing_but_a_finalizer_is_deleted_at_once_after_a_start() {
    let mut lab = inherited(&json!({})).await;
    lab.start();
    lab.pass(SECOND * 2).await;
    assert!(!is_there(&lab));
}

#[tokio::test(start_paused = true)]
async fn after_a_start_such_a_service_waits_while_a_ready_node_contradicts_the_cloud() {
    for (case, readiness, stays) in [
        ("Ready", "True", true),
        ("without heartbeats", "Unknown", false),
    ] {
        let mut lab = inherited(&json!({})).await;
        let condition = json!({"status": {"conditions": [{"type": "Ready", "status": readiness}]}});
        for machine in &lab.machines {
            lab.cloud.destroy(machine.id).unwrap();
            lab.api.world().change(&machine.name, &condition);
        }
        lab.start();
        lab.pass(SECOND * 110).await;
        assert!(is_there(&lab), "{case}: it may be another project");
        lab.pass(SECOND * 20).await;
        assert_eq!(is_there(&lab), stays, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_leader_may_have_made_is_waited_for_although_this_one_failed() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let mut lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 10).await;
    // It died between the order and the write of the status.
    lab.stop().await;
    let unwritten = json!({"metadata": {"annotations": {"local.cloudkeel.dev/lb-id": null}},
                           "status": {"loadBalancer": null, "conditions": null}});
    lab.api.world().change_service("web", &unwritten);
    lab.cloud.add_project("other");
    let grant = |lab: &Lab, project| {
        let (token, everything) = (SimulatedCloud::TOKEN, Permission::ReadWrite);
        lab.cloud.grant(token, project, everything);
    };
    grant(&lab, "other");
    lab.start();
    lab.pass(MINUTE).await;
    let failed = lab.events("web", "SyncLoadBalancerFailed");
    assert!(!failed.is_empty(), "the credential is that of another");
    lab.api.world().delete_service("web");
    lab.pass(MINUTE * 10).await;
    assert!(is_there(&lab), "its balancer stands");
    grant(&lab, SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert!(!is_there(&lab));
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_leader_may_have_made_is_waited_for_while_lists_are_empty() {
    let mut lab = Lab::with_nodes(2).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 10).await;
    // It died between the order and the write of the status.
    lab.stop().await;
    let unwritten = json!({"metadata": {"annotations": {"local.cloudkeel.dev/lb-id": null}},
                           "status": {"loadBalancer": null, "conditions": null}});
    lab.api.world().change_service("web", &unwritten);
    lab.api.world().delete_service("web");
    let everything = FaultMatch::any();
    lab.cloud.faults().always(everything, Fault::EmptyList);
    lab.start();
    lab.pass(MINUTE * 5).await;
    assert!(is_there(&lab), "its balancer stands");
    assert_eq!(lab.cloud.balancers().len(), 1);
    lab.cloud.faults().clear();
    lab.pass(MINUTE).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert!(!is_there(&lab));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_points_at_a_balancer_waits_until_that_is_missed_twice() {
    let annotated = |key: &str| json!({"metadata": {"annotations": {key: "17"}}});
    let status = |entry: Value| json!({"status": {"loadBalancer": {"ingress": [entry]}}});
    for (case, points) in [
        ("an address", status(json!({"ip": "192.0.2.1"}))),
        ("a name", status(json!({"hostname": "lb.example.com"}))),
        ("a desired to adopt", annotated("cloudkeel.dev/adopt")),
        ("the cloud's ID", annotated("local.cloudkeel.dev/lb-id")),
    ] {
        let mut lab = inherited(&points).await;
        lab.start();
        lab.pass(SECOND * 110).await;
        assert!(is_there(&lab), "{case}");
        lab.pass(SECOND * 20).await;
        assert!(!is_there(&lab), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_answer_is_lost_is_waited_for() {
    for (case, fault, is_made) in [
        ("a lost answer", Fault::BrokenAfter, true),
        ("a broken answer", Fault::MalformedJson, true),
        ("no answer", Fault::NoAnswer, false),
        ("an overloaded cloud", Fault::status(503), false),
    ] {
        let lab = Lab::with_nodes(2).await;
        lab.pass(MINUTE * 2).await;
        let faults = lab.cloud.faults();
        faults.once(Operation::CreateBalancer, fault);
        lab.api.world().create_service("web", &json!({}));
        while lab.cloud.calls().of(Operation::CreateBalancer) == 0 {
            lab.pass(SECOND).await;
        }
        // The cloud shows late what it made.
        faults.always(Operation::ListBalancers, Fault::EmptyList);
        lab.api.world().delete_service("web");
        lab.pass(SECOND * 90).await;
        assert!(is_there(&lab), "{case}");
        assert_eq!(lab.cloud.balancers().len(), usize::from(is_made), "{case}");
        faults.clear();
        lab.pass(MINUTE).await;
        assert!(!is_there(&lab), "{case}");
        assert_eq!(lab.cloud.balancers(), [], "{case}");
    }
}
