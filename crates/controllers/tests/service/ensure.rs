//! How a Service gets its balancer.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Operation, Settings};
use serde_json::json;

use crate::lab::{FINALIZER, Lab, SECOND};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn a_new_service_costs_two_patches_and_one_mutating_call() {
    let lab = Lab::with_nodes(3).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 5).await;
    let balancer = lab.balancer("web").unwrap();
    assert_eq!(lab.address("web"), Some(balancer.addresses[0].to_string()));
    assert_eq!(lab.targets("web"), ["node-000", "node-001", "node-002"]);
    let patches = lab.patched("web");
    assert_eq!(patches.len(), 2, "{patches:?}");
    assert_eq!(patches[0].0["metadata"]["finalizers"], json!([FINALIZER]));
    let ingress = &patches[1].0["status"]["loadBalancer"]["ingress"];
    let expected = json!([{"ip": balancer.addresses[0].to_string(), "ipMode": "VIP"}]);
    assert_eq!(*ingress, expected);
    assert_eq!(lab.cloud.calls().mutations(), 1);
    assert_eq!(
        lab.events("web", "EnsuringLoadBalancer"),
        ["Ensuring load balancer"]
    );
    assert_eq!(
        lab.events("web", "EnsuredLoadBalancer"),
        [format!(
            "Ensured load balancer {} at {}",
            balancer.id, balancer.addresses[0]
        )]
    );
    assert_eq!(lab.observed.published.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_another_process_is_confirmed_by_a_write_that_changes_nothing() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    let with_finalizer = json!({"metadata": {"finalizers": [FINALIZER]}});
    lab.api.world().create_service("web", &with_finalizer);
    let version = lab.api.world().service("web").unwrap()["metadata"]["resourceVersion"].clone();
    lab.start();
    lab.pass(SECOND * 5).await;
    let patches = lab.patched("web");
    assert_eq!(patches.len(), 2);
    let confirmed = &patches[0].0["metadata"];
    assert_eq!(confirmed["finalizers"], json!([FINALIZER]));
    assert_eq!(confirmed["resourceVersion"], version);
    assert!(lab.address("web").is_some());
    lab.restart().await;
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.patched("web").len(), 2, "it has a balancer");
}

#[tokio::test(start_paused = true)]
async fn no_balancer_is_created_for_a_service_that_is_not_what_the_watch_showed() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    let with_finalizer = json!({"metadata": {"finalizers": [FINALIZER]}});
    lab.api.world().create_service("web", &with_finalizer);
    lab.api.before(What::WriteService, |world| {
        let released = json!({"metadata": {"finalizers": null}, "spec": {"type": "ClusterIP"}});
        world.change_service("web", &released);
    });
    lab.start();
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.patched("web")[0].1, 409);
    assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 0);
    assert!(!lab.has_finalizer("web"));
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_before_the_cloud_is_asked_for_anything() {
    let lab = Lab::with_nodes(1).await;
    lab.api.refuse(What::WriteService, 500);
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 4).await;
    assert_eq!(lab.cloud.calls().total(), 0);
    let events = lab.events("web", "SyncLoadBalancerFailed");
    let expected = "Error syncing load balancer: failed to add load balancer cleanup finalizer: ";
    assert!(events[0].starts_with(expected), "{events:?}");
    lab.pass(SECOND * 2).await;
    assert!(lab.address("web").is_some());
    assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 1);
}

#[tokio::test(start_paused = true)]
async fn a_typo_in_an_annotation_of_the_cloud_itself_is_reported() {
    let lab = Lab::with_nodes(1).await;
    let annotations = json!({
        "local.cloudkeel.dev/lb-tipe": "big", "cloudkeel.dev/lb-nam": "x", "other.example.com/tipe": "y",
    });
    let service = json!({"metadata": {"annotations": annotations}});
    lab.api.world().create_service("web", &service);
    lab.pass(SECOND * 5).await;
    let mut events = lab.events("web", "UnknownAnnotation");
    events.sort();
    let expected = [
        "cloudkeel.dev/lb-nam is not a known annotation: did you mean cloudkeel.dev/lb-name?",
        "local.cloudkeel.dev/lb-tipe is not a known annotation: did you mean local.cloudkeel.dev/lb-type?",
    ];
    assert_eq!(events, expected);
    assert!(lab.address("web").is_some());
}
