//! Failures are reported with their cause and retried at the right time.

use std::sync::Arc;

use cloudkeel_api::CloudProvider;
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation, Settings};
use serde_json::json;
use tokio::time::Duration;

use crate::lab::{FINALIZER, Lab, MINUTE, SECOND, Site};
use crate::support::gate::What;

/// When calls of this kind arrived, in seconds after the first of them.
fn times(lab: &Lab, operation: Operation) -> Vec<u64> {
    let calls = lab.cloud.call_log().into_iter();
    let times: Vec<_> = calls
        .filter(|call| call.operation == operation)
        .map(|call| call.at)
        .collect();
    let since_first = |at: &Duration| at.saturating_sub(times[0]).as_secs();
    times.iter().map(since_first).collect()
}

/// The faults that the client itself does not try again.
fn refusal() -> Fault {
    Fault::status(422)
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_from_five_seconds_to_five_minutes() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::ListBalancers, Fault::MalformedJson);
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 30).await;
    let events = lab.events("svc-0", "SyncLoadBalancerFailed");
    assert!(events.len() >= 8, "{}", events.len());
    let text = &events[0];
    assert!(text.contains("failed to delete load balancer"), "{text}");
    for other in &events {
        assert_eq!(other, text, "one outage is one Event");
    }
    let seconds = times(&lab, Operation::ListBalancers);
    assert_eq!(seconds[..7], [0, 5, 15, 35, 75, 155, 315], "{seconds:?}");
    assert!(
        lab.has_finalizer("svc-0"),
        "an answer that cannot be read is no absence"
    );
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_and_counts_as_no_failure() {
    let lab = Lab::with_nodes(1).await;
    lab.cloud.faults().times(
        Operation::CreateBalancer,
        2,
        Fault::too_many_calls(Some(420)),
    );
    lab.cloud
        .faults()
        .once(Operation::CreateBalancer, refusal());
    lab.api.world().create_service("web", &json!({}));
    lab.pass(MINUTE * 25).await;
    let pauses = times(&lab, Operation::CreateBalancer);
    // Two waits of seven minutes, then a refusal that needs a change by the operator: five minutes.
    assert_eq!(pauses, [0, 420, 840, 1140]);
    let events = lab.events("web", "SyncLoadBalancerFailed");
    assert_eq!(events[0], events[1], "one outage is one Event");
    for changing in ["(request req-", "attempt", "next try", "retry after"] {
        assert!(!events[0].contains(changing), "{changing}: {events:?}");
    }
    assert_ne!(events[1], events[2], "another cause is another Event");
    assert!(lab.address("web").is_some());
}

/// Permissions that take effect late, or a token that is being rotated.
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_refused_for_seconds_delays_by_seconds() {
    for status in [401, 403] {
        let lab = Lab::with_nodes(1).await;
        lab.serve(1).await;
        let faults = lab.cloud.faults();
        faults.always(FaultMatch::any(), Fault::status(status));
        lab.api.world().delete_service("svc-0");
        lab.api.world().create_service("web", &json!({}));
        lab.pass(SECOND * 3).await;
        for (name, doing) in [("svc-0", "delete"), ("web", "ensure")] {
            let events = lab.events(name, "SyncLoadBalancerFailed");
            assert_eq!(events.len(), 1, "{status}: {events:?}");
            assert!(events[0].contains(doing), "{status}: {events:?}");
        }
        lab.cloud.faults().clear();
        lab.pass(SECOND * 30).await;
        assert_eq!(lab.api.world().service("svc-0"), None, "{status}");
        assert!(lab.address("web").is_some(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_retry_after_waits_exactly_that_long() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.cloud.faults().times(
        Operation::DeleteBalancer,
        2,
        Fault::too_many_calls(Some(420)),
    );
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 20).await;
    let pauses = times(&lab, Operation::DeleteBalancer);
    assert_eq!(pauses, [0, 420, 840]);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_cloud_is_waited_for_without_an_error() {
    let cloud = Settings {
        action_duration: MINUTE * 3,
        ..Settings::default()
    };
    let lab = Lab::with(2, cloud, ServiceSettings::default()).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(MINUTE * 5).await;
    assert!(lab.address("web").is_some());
    assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 1);
    assert_eq!(lab.events("web", "SyncLoadBalancerFailed"), [""; 0]);
    let pending = lab.events("web", "PendingLoadBalancer");
    assert!(!pending.is_empty() && pending.len() <= 2, "{pending:?}");
    assert_eq!(lab.events("web", "EnsuringLoadBalancer").len(), 1);
    assert_eq!(lab.events("web", "EnsuredLoadBalancer").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_balancers_hold_no_worker() {
    let cloud = Settings {
        action_duration: MINUTE * 3,
        ..Settings::default()
    };
    let settings = ServiceSettings {
        workers: 1,
        ..ServiceSettings::default()
    };
    let lab = Lab::with(1, cloud, settings).await;
    for index in 0..20 {
        lab.api
            .world()
            .create_service(&format!("svc-{index}"), &json!({}));
    }
    lab.pass(MINUTE * 4).await;
    for index in 0..20 {
        assert!(
            lab.address(&format!("svc-{index}")).is_some(),
            "svc-{index}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_reported_and_retried() {
    for (status, is_failure) in [(409, true), (500, true), (404, false)] {
        let lab = Lab::with_nodes(1).await;
        lab.cloud
            .change_settings(|settings| settings.latency.fixed = SECOND / 2);
        lab.api.world().create_service("web", &json!({}));
        lab.pass(SECOND / 4).await;
        assert!(lab.has_finalizer("web"));
        lab.api.refuse(What::WriteService, status);
        lab.pass(SECOND * 4).await;
        let events = lab.events("web", "SyncLoadBalancerFailed");
        assert_eq!(
            events.len(),
            usize::from(is_failure),
            "{status}: {events:?}"
        );
        if is_failure {
            let expected = "Error syncing load balancer: failed to update load balancer status: ";
            assert!(events[0].starts_with(expected), "{status}: {events:?}");
            lab.pass(SECOND * 5).await;
            assert!(lab.address("web").is_some(), "{status}");
            assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 1);
        }
    }
}

/// A cloud that is configured without load balancers.
struct WithoutBalancers;

impl CloudProvider for WithoutBalancers {
    fn name(&self) -> &'static str {
        "local"
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_gets_load_balancers_serves_the_services_that_waited_for_it() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    let provider = lab.provider_of(&lab.cloud).await;
    lab.set_sites(vec![Site {
        name: "local",
        class: None,
        provider: Arc::new(WithoutBalancers),
    }]);
    lab.start();
    lab.api.world().create_service("web", &json!({}));
    lab.pass(MINUTE * 20).await;
    let events = lab.events("web", "UnsupportedLoadBalancer");
    assert_eq!(events.len(), 1, "{events:?}");
    lab.reload(provider);
    lab.pass(SECOND * 5).await;
    assert!(lab.address("web").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_for_the_impossible_gets_one_event_with_everything() {
    let lab = Lab::with_nodes(1).await;
    let annotations = json!({
        "cloudkeel.dev/lb-algorithm": "magic",
        "cloudkeel.dev/lb-drain-seconds": "soon",
    });
    let wrong = json!({"metadata": {"annotations": annotations}});
    lab.api.world().create_service("web", &wrong);
    lab.pass(SECOND * 5).await;
    let events = lab.events("web", "SyncLoadBalancerFailed");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].contains("magic") && events[0].contains("soon"),
        "{events:?}"
    );
    assert_eq!(lab.cloud.calls().total(), 0);
    let mended = json!({"metadata": {"annotations": null}});
    lab.api.world().change_service("web", &mended);
    lab.pass(SECOND).await;
    assert!(lab.address("web").is_some(), "a change ends the wait");
}

/// A Service with a balancer that the cloud refuses to remove, and the wait until the operator changes that.
async fn refused_removal(case: &str, is_deleted: bool) -> Lab {
    let lab = Lab::with_nodes(1).await;
    let web = json!({"metadata": {
        "annotations": {"example.com/retain": "yes"},
        "finalizers": ["example.com/theirs"],
    }});
    lab.api.world().create_service("web", &web);
    lab.pass(SECOND * 5).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::DeleteBalancer, refusal());
    if is_deleted {
        lab.api.world().delete_service("web");
    } else {
        let other = json!({"spec": {"type": "ClusterIP"}});
        lab.api.world().change_service("web", &other);
    }
    lab.pass(SECOND * 20).await;
    assert_eq!(lab.cloud.calls().of(Operation::DeleteBalancer), 1, "{case}");
    lab
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_service_that_is_being_deleted_ends_the_wait() {
    let annotation = json!({"metadata": {"annotations": {"example.com/retain": null}}});
    let spec = json!({"spec": {"sessionAffinity": "ClientIP"}});
    let finalizer = json!({"metadata": {"finalizers": [FINALIZER]}});
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    for (case, is_deleted, change) in [
        ("an annotation", true, &annotation),
        ("the spec", true, &spec),
        ("the finalizer of another controller", true, &finalizer),
        ("a label", true, &label),
        ("an annotation, of another type", false, &annotation),
        ("a label, of another type", false, &label),
    ] {
        let lab = refused_removal(case, is_deleted).await;
        lab.cloud.faults().clear();
        lab.api.world().change_service("web", change);
        lab.pass(SECOND * 2).await;
        assert_eq!(lab.cloud.balancers(), [], "{case}");
        assert!(!lab.is_held("web"), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_does_not_help_begins_with_short_pauses_again() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let faults = lab.cloud.faults();
    faults.always(Operation::ListBalancers, Fault::MalformedJson);
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 9).await;
    lab.forget();
    let change = json!({"metadata": {"annotations": {"example.com/retain": "no"}}});
    lab.api.world().change_service("svc-0", &change);
    lab.pass(SECOND * 40).await;
    let seconds = times(&lab, Operation::ListBalancers);
    assert_eq!(seconds, [0, 5, 15, 35], "{seconds:?}");
}
