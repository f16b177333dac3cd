//! What one who may write Services, and nothing else, can do to the balancer of another Service. In each test `svc-0` is
//! the victim's, and `evil` the attacker's.

use cloudkeel_testkit::simulated_cloud::Operation;
use cloudkeel_testkit::simulated_cloud::wire::Balancer;
use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND};

fn annotated(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

async fn with_victim() -> (Lab, Balancer) {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    let theirs = lab.balancer("svc-0").unwrap();
    (lab, theirs)
}

/// The victim's balancer as it is now, but for its version.
fn now(lab: &Lab, theirs: &Balancer) -> Option<Balancer> {
    let now = lab.cloud.balancer(theirs.id)?;
    Some(Balancer {
        version: theirs.version,
        ..now
    })
}

/// Every way to refer to the victim's balancer.
fn references(theirs: &Balancer) -> Vec<(&'static str, Value)> {
    let id = theirs.id.to_string();
    let parts = json!({
        "balancer": id, "isAdopted": false, "listeners": ["80/TCP"], "targets": [],
    });
    vec![
        ("adopt", json!({"cloudkeel.dev/adopt": id})),
        ("its name", json!({"cloudkeel.dev/lb-name": theirs.name})),
        ("the written ID", json!({"cloudkeel.dev/lb-id": id})),
        (
            "parts of it",
            json!({
                "cloudkeel.dev/adopt": id,
                "cloudkeel.dev/lb-exclusive": "false",
                "cloudkeel.dev/lb-own-parts": parts.to_string(),
            }),
        ),
        (
            "retained",
            json!({"cloudkeel.dev/adopt": id, "cloudkeel.dev/lb-retain": "true"}),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn no_reference_to_anothers_balancer_changes_or_deletes_it() {
    let (lab, theirs) = with_victim().await;
    for (case, annotations) in references(&theirs) {
        lab.api
            .world()
            .create_service("evil", &annotated(&annotations));
        lab.pass(MINUTE * 3).await;
        assert_eq!(now(&lab, &theirs).as_ref(), Some(&theirs), "{case}");
        lab.api.world().delete_service("evil");
        lab.pass(MINUTE * 10).await;
        assert_eq!(lab.api.world().service("evil"), None, "{case}");
        assert_eq!(now(&lab, &theirs).as_ref(), Some(&theirs), "{case}");
        assert_eq!(lab.cloud.balancers().len(), 1, "{case}");
    }
    assert_eq!(lab.address("svc-0"), Some(theirs.addresses[0].to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_forged_status_takes_no_balancer_and_is_replaced() {
    let (lab, theirs) = with_victim().await;
    let ip = theirs.addresses[0].to_string();
    let forged = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
    lab.api.world().create_service("evil", &json!({}));
    lab.api.world().change_service("evil", &forged);
    lab.pass(MINUTE * 10).await;
    assert_eq!(now(&lab, &theirs).as_ref(), Some(&theirs));
    let own = lab.balancer("evil").unwrap();
    assert_ne!(own.id, theirs.id);
    assert_eq!(lab.address("evil"), Some(own.addresses[0].to_string()));
    lab.api.world().change_service("evil", &forged);
    lab.pass(MINUTE).await;
    assert_eq!(lab.address("evil"), Some(own.addresses[0].to_string()));
    lab.api.world().change_service("evil", &forged);
    lab.api.world().delete_service("evil");
    lab.pass(MINUTE * 10).await;
    assert_eq!(now(&lab, &theirs).as_ref(), Some(&theirs));
    assert_eq!(lab.cloud.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_without_labels_is_not_adopted_while_another_service_has_its_address() {
    let (lab, theirs) = with_victim().await;
    // As a Go CCM or an operator leaves it.
    let unlabelled = lab.cloud.edit_balancer(theirs.id, |it| it.labels.clear());
    let unlabelled = unlabelled.unwrap();
    let adopt = annotated(&json!({"cloudkeel.dev/adopt": theirs.id.to_string()}));
    lab.api.world().create_service("evil", &adopt);
    lab.pass(MINUTE).await;
    assert_eq!(now(&lab, &unlabelled).as_ref(), Some(&unlabelled));
    let events = lab.events("evil", "SyncLoadBalancerFailed");
    assert!(
        events[0].contains("belongs to Service default/svc-0"),
        "{events:?}"
    );
    lab.api.world().delete_service("evil");
    lab.pass(MINUTE * 5).await;
    assert_eq!(now(&lab, &unlabelled).as_ref(), Some(&unlabelled));
    // The victim itself may have it back.
    lab.api.world().change_service("svc-0", &adopt);
    lab.pass(MINUTE).await;
    assert_eq!(lab.balancer("svc-0").unwrap().id, theirs.id);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_each_second_leaves_the_budget_to_others() {
    let (lab, _) = with_victim().await;
    lab.api.world().create_service("evil", &json!({}));
    lab.pass(SECOND * 5).await;
    lab.forget();
    for second in 0..600 {
        let change = json!({"example.com/second": second.to_string()});
        lab.api.world().change_service("evil", &annotated(&change));
        lab.pass(SECOND).await;
        if second == 300 {
            let ports = json!({"spec": {"ports": [{"name": "x", "protocol": "TCP", "port": 443}]}});
            lab.api.world().change_service("svc-0", &ports);
        }
        if second == 305 {
            let ports = lab.balancer("svc-0").unwrap().listeners;
            assert_eq!(ports[0].port, 443, "others do not wait");
        }
    }
    let calls = lab.cloud.calls().total();
    assert!(calls < 120, "{calls} calls in ten minutes");
    let events = lab.events("evil", "PendingLoadBalancer");
    assert!(
        events.iter().any(|it| it.contains("changed too often")),
        "{events:?}"
    );
    // What it asks for at last, it gets.
    let last = annotated(&json!({"cloudkeel.dev/lb-algorithm": "source-ip"}));
    lab.api.world().change_service("evil", &last);
    lab.pass(MINUTE).await;
    let algorithm = format!("{:?}", lab.balancer("evil").unwrap().algorithm);
    assert!(algorithm.to_lowercase().contains("source"), "{algorithm}");
}

#[tokio::test(start_paused = true)]
async fn values_of_any_size_and_with_line_breaks_make_short_events_on_one_line() {
    let (lab, _) = with_victim().await;
    let huge = "x".repeat(200_000);
    let forged = "a\nE1119 12:00:00 forged line\r\u{1b}[2J";
    for (case, key, value) in [
        ("huge", "cloudkeel.dev/lb-algorithm", huge.as_str()),
        ("huge ID", "cloudkeel.dev/adopt", huge.as_str()),
        ("lines", "cloudkeel.dev/lb-type", forged),
        ("lines in a name", "cloudkeel.dev/lb-name", forged),
        ("lines in an ID", "cloudkeel.dev/adopt", forged),
        (
            "lines in a path",
            "cloudkeel.dev/lb-health-check-path",
            "/ HTTP/1.1\r\nX: y",
        ),
    ] {
        lab.forget();
        let annotations = json!({key: value});
        lab.api
            .world()
            .create_service("evil", &annotated(&annotations));
        lab.pass(MINUTE).await;
        let events = lab.events("evil", "SyncLoadBalancerFailed");
        let event = &events[0];
        assert!(event.len() < 5_000, "{case}: {} bytes", event.len());
        assert!(!event.contains(char::is_control), "{case}: {event:?}");
        assert!(event.contains(key), "{case}: {event}");
        let service = lab.api.world().service("evil").unwrap();
        let conditions = service["status"]["conditions"].to_string();
        assert!(conditions.contains("cloudkeel.dev/Programmed"), "{case}");
        assert!(conditions.len() < 20_000, "{case}: {}", conditions.len());
        assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 0, "{case}");
        lab.api.world().delete_service("evil");
        lab.pass(MINUTE * 5).await;
        assert_eq!(lab.api.world().service("evil"), None, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_cannot_lead_to_another_path_of_the_clouds_api() {
    let (lab, _) = with_victim().await;
    for id in [
        "..",
        ".",
        "../machines/1",
        "1?force=true",
        "1/actions",
        "%2e%2e",
    ] {
        lab.forget();
        let annotations = json!({"cloudkeel.dev/adopt": id, "cloudkeel.dev/lb-id": id});
        lab.api
            .world()
            .create_service("evil", &annotated(&annotations));
        lab.pass(MINUTE).await;
        lab.api.world().delete_service("evil");
        lab.pass(MINUTE * 5).await;
        assert_eq!(lab.api.world().service("evil"), None, "{id}");
        assert_eq!(lab.cloud.calls().mutations(), 0, "{id}");
        let events = lab.events("evil", "SyncLoadBalancerFailed");
        assert!(!events.is_empty(), "{id}");
    }
    assert_eq!(lab.cloud.balancers().len(), 1);
}
