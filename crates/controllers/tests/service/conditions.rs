//! Conditions that say what is wrong with a balancer.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND};

/// Type, status and reason of the conditions of a Service, in order of their types.
fn conditions(lab: &Lab, service: &str) -> Vec<String> {
    let service = lab.api.world().service(service).unwrap();
    let conditions = service["status"]["conditions"].as_array().cloned();
    let conditions = conditions.unwrap_or_default().into_iter();
    let mut conditions: Vec<_> = conditions
        .map(|it| {
            let text = |field: &str| it[field].as_str().unwrap().to_owned();
            let kind = text("type").replace("cloudkeel.dev/", "");
            format!("{kind}={} {}", text("status"), text("reason"))
        })
        .collect();
    conditions.sort();
    conditions
}

fn message(lab: &Lab, service: &str, kind: &str) -> String {
    let service = lab.api.world().service(service).unwrap();
    let conditions = service["status"]["conditions"].as_array().unwrap();
    let mut conditions = conditions.iter();
    let condition = conditions.find(|it| it["type"] == format!("cloudkeel.dev/{kind}"));
    condition.unwrap()["message"].as_str().unwrap().to_owned()
}

const GOOD: [&str; 2] = ["Accepted=True Accepted", "Programmed=True Programmed"];

#[tokio::test(start_paused = true)]
async fn a_service_that_makes_no_sense_is_not_accepted_until_it_does() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let drain = |value: &str| json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": value}}});
    lab.api.world().change_service("svc-0", &drain("soon"));
    lab.pass(SECOND * 2).await;
    let bad = ["Accepted=False Invalid", "Programmed=False Failed"];
    assert_eq!(conditions(&lab, "svc-0"), bad);
    let message = message(&lab, "svc-0", "Accepted");
    assert!(
        message.starts_with("served by cloud local; cloudkeel.dev/lb-drain-seconds"),
        "{message}"
    );
    assert_eq!(lab.patched("svc-0").len(), 1);
    lab.pass(MINUTE * 30).await;
    assert_eq!(lab.patched("svc-0").len(), 1, "it is said once");
    lab.api.world().change_service("svc-0", &drain("30"));
    lab.pass(SECOND * 2).await;
    assert_eq!(conditions(&lab, "svc-0"), GOOD);
    assert_eq!(lab.patched("svc-0").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_was_never_made_keeps_no_service_from_being_deleted() {
    let lab = Lab::with_nodes(1).await;
    let full = Fault::status(422);
    lab.cloud.faults().always(Operation::CreateBalancer, full);
    lab.api.world().create_service("web", &json!({}));
    lab.pass(MINUTE).await;
    let none = ["Accepted=True Accepted", "Programmed=False NotCreated"];
    assert_eq!(conditions(&lab, "web"), none);
    assert!(message(&lab, "web", "Programmed").contains("HTTP 422"));
    lab.api.world().delete_service("web");
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.api.world().service("web"), None, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_short_failure_is_no_condition_and_a_long_one_is_until_it_ends() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.cloud
        .faults()
        .always(Operation::SetListeners, Fault::status(503));
    let ports = json!({"spec": {"ports": [{"name": "a", "port": 81, "nodePort": 30081}]}});
    lab.api.world().change_service("svc-0", &ports);
    lab.pass(SECOND * 4).await;
    assert_eq!(conditions(&lab, "svc-0"), GOOD);
    lab.pass(MINUTE * 20).await;
    let failed = ["Accepted=True Accepted", "Programmed=False Failed"];
    assert_eq!(conditions(&lab, "svc-0"), failed);
    assert_eq!(lab.patched("svc-0").len(), 1);
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 6).await;
    assert_eq!(conditions(&lab, "svc-0"), GOOD);
}

#[tokio::test(start_paused = true)]
async fn conditions_that_are_switched_off_are_not_written_for_a_failure() {
    let settings = ServiceSettings {
        conditions: false,
        ..ServiceSettings::default()
    };
    let lab = Lab::with(1, Settings::default(), settings).await;
    lab.serve(1).await;
    let bad = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-drain-seconds": "soon"}}});
    lab.api.world().change_service("svc-0", &bad);
    lab.pass(MINUTE).await;
    assert_eq!(conditions(&lab, "svc-0"), GOOD);
    assert_eq!(lab.patched("svc-0"), []);
}
