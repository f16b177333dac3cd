//! How a balancer goes, and what is left alone.

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{
    Fault, FaultMatch, Operation, Permission, Settings, SimulatedCloud,
};
use serde_json::json;

use crate::lab::{FINALIZER, Lab, MINUTE, SECOND};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn a_deleted_service_goes_after_its_balancer_with_one_patch() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.api.world().delete_service("svc-0");
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.cloud.calls().mutations(), 1);
    let patches = lab.patched("svc-0");
    assert_eq!(
        patches.len(),
        1,
        "finalizer and status at once: {patches:?}"
    );
    assert_eq!(
        lab.events("svc-0", "DeletingLoadBalancer"),
        ["Deleting load balancer"]
    );
    assert_eq!(
        lab.events("svc-0", "DeletedLoadBalancer"),
        ["Deleted load balancer"]
    );
    assert_eq!(lab.remembered(), 0, "nothing is remembered of it");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_before_the_patch_arrives_is_patched_as_it_is_then() {
    for (case, change, asks_again) in [
        ("labels", json!({"metadata": {"labels": {"a": "b"}}}), false),
        ("its type", json!({"spec": {"type": "LoadBalancer"}}), true),
    ] {
        let lab = Lab::with_nodes(2).await;
        lab.serve(1).await;
        let before = lab.cloud.balancers();
        let other = json!({"spec": {"type": "ClusterIP"}});
        lab.api.world().change_service("svc-0", &other);
        lab.api.before(What::WriteService, move |world| {
            world.change_service("svc-0", &change);
        });
        lab.pass(SECOND * 5).await;
        assert_eq!(lab.has_finalizer("svc-0"), asks_again, "{case}");
        let after = lab.cloud.balancers();
        assert_eq!(after.len(), usize::from(asks_again), "{case}");
        assert!(!after.iter().any(|it| it.id == before[0].id), "{case}");
        let removals = lab
            .patched("svc-0")
            .into_iter()
            .filter_map(|(patch, status)| {
                let removed = &patch["metadata"]["$deleteFromPrimitiveList/finalizers"];
                (!removed.is_null()).then_some(status)
            });
        let expected: &[u16] = if asks_again { &[409] } else { &[409, 200] };
        assert_eq!(removals.collect::<Vec<_>>(), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_stay() {
    let lab = Lab::with_nodes(1).await;
    let theirs = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
    lab.api.world().create_service("web", &theirs);
    lab.pass(SECOND * 2).await;
    assert!(lab.has_finalizer("web"));
    lab.api.world().delete_service("web");
    lab.pass(SECOND * 2).await;
    let left = lab.api.world().service("web").unwrap();
    assert_eq!(
        left["metadata"]["finalizers"],
        json!(["example.com/theirs"])
    );
    assert_eq!(lab.cloud.balancers(), []);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_stays_until_the_cloud_has_let_go() {
    let settings = Settings {
        action_duration: MINUTE,
        ..Settings::default()
    };
    let lab = Lab::with(1, settings, ServiceSettings::default()).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(MINUTE * 2).await;
    assert!(lab.address("web").is_some());
    lab.api.world().delete_service("web");
    lab.pass(SECOND * 50).await;
    assert!(
        lab.has_finalizer("web"),
        "the balancer is still being taken down"
    );
    assert_eq!(lab.cloud.balancers().len(), 1);
    lab.pass(SECOND * 30).await;
    assert_eq!(lab.api.world().service("web"), None);
    assert_eq!(lab.cloud.calls().of(Operation::DeleteBalancer), 1);
    assert_eq!(lab.events("web", "SyncLoadBalancerFailed"), [""; 0]);
    assert_eq!(lab.events("web", "DeletingLoadBalancer").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_type_loses_its_balancer_and_gets_it_back() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.api
        .world()
        .change_service("svc-0", &json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(SECOND * 2).await;
    assert!(!lab.has_finalizer("svc-0"));
    assert_eq!(lab.address("svc-0"), None);
    assert_eq!(lab.cloud.balancers(), []);
    lab.api
        .world()
        .change_service("svc-0", &json!({"spec": {"type": "LoadBalancer"}}));
    lab.pass(SECOND * 2).await;
    assert!(lab.has_finalizer("svc-0"));
    assert!(lab.address("svc-0").is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_or_retyped_while_no_manager_ran_is_cleaned_up() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(3).await;
    lab.stop().await;
    lab.api.world().delete_service("svc-0");
    lab.api
        .world()
        .change_service("svc-1", &json!({"spec": {"type": "NodePort"}}));
    lab.start();
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.api.world().services(), ["svc-1", "svc-2"]);
    assert!(!lab.has_finalizer("svc-1") && lab.address("svc-1").is_none());
    assert_eq!(lab.cloud.balancers().len(), 1);
    assert!(lab.balancer("svc-2").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_class_is_not_touched() {
    let lab = Lab::with_nodes(1).await;
    let of_class = json!({"spec": {"loadBalancerClass": "example.com/internal-vip"}});
    lab.api.world().create_service("theirs", &of_class);
    lab.pass(MINUTE).await;
    lab.api.world().delete_service("theirs");
    lab.pass(MINUTE).await;
    assert_eq!(lab.api.writes(), []);
    assert_eq!(lab.cloud.calls().total(), 0);
    assert_eq!(lab.remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_recreated_has_its_predecessors_balancer_removed_first() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let first = lab.balancer("svc-0").unwrap();
    // Another client removes the finalizer, deletes the Service, and creates it again.
    lab.api.world().delete_service("svc-0");
    lab.api
        .world()
        .change_service("svc-0", &json!({"metadata": {"finalizers": null}}));
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(SECOND * 5).await;
    let balancers = lab.cloud.balancers();
    assert_eq!(balancers.len(), 1);
    assert_ne!(balancers[0].id, first.id);
    let order: Vec<_> = lab
        .cloud
        .call_log()
        .into_iter()
        .map(|call| call.operation)
        .filter(|operation| operation.is_mutating())
        .collect();
    assert_eq!(
        order,
        [Operation::DeleteBalancer, Operation::CreateBalancer]
    );
    assert_eq!(
        lab.address("svc-0"),
        Some(balancers[0].addresses[0].to_string())
    );
    assert_eq!(lab.remembered(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_went_without_its_finalizer_loses_its_balancer_after_a_second_check() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.cloud
        .faults()
        .once(Operation::ListBalancers, Fault::MalformedJson);
    lab.api.world().delete_service("svc-0");
    lab.api
        .world()
        .change_service("svc-0", &json!({"metadata": {"finalizers": null}}));
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.cloud.balancers().len(), 1, "the cloud did not answer");
    assert_eq!(lab.remembered(), 1, "so it is remembered");
    let events = lab.events("svc-0", "DeleteLoadBalancerFailed");
    assert!(
        events[0].starts_with("Error deleting load balancer: "),
        "{events:?}"
    );
    lab.pass(SECOND * 10).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_served_goes_without_a_call() {
    let lab = Lab::with_nodes(1).await;
    lab.api
        .world()
        .create_service("plain", &json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(SECOND).await;
    lab.api.world().delete_service("plain");
    lab.pass(SECOND).await;
    assert_eq!(lab.cloud.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_taken_away_from_a_living_service_comes_back() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.api
        .world()
        .change_service("svc-0", &json!({"metadata": {"finalizers": null}}));
    lab.pass(SECOND * 2).await;
    assert!(lab.has_finalizer("svc-0"));
    assert_eq!(lab.cloud.calls().mutations(), 0);
    let patches = lab.patched("svc-0");
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].0["metadata"]["finalizers"], json!([FINALIZER]));
}

/// Lists are empty, and a balancer is not found by its ID either.
fn show_nothing(lab: &Lab) {
    let faults = lab.cloud.faults();
    faults.always(Operation::GetBalancer, Fault::status(404));
    faults.always(FaultMatch::any(), Fault::EmptyList);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_shows_nothing_at_all_is_no_proof_that_a_balancer_is_gone() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    show_nothing(&lab);
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 3).await;
    assert!(lab.has_finalizer("svc-0"), "its balancer stands");
    assert_eq!(lab.cloud.balancers().len(), 1);
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_lists_do_not_show_is_deleted_by_the_id_on_its_service() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.cloud
        .faults()
        .always(FaultMatch::any(), Fault::EmptyList);
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_another_client_deleted_is_missed_twice_before_the_service_goes() {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.pass(MINUTE * 3).await;
    let balancer = lab.cloud.balancers().remove(0);
    lab.cloud.drop_balancer(balancer.id).unwrap();
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE).await;
    assert!(lab.has_finalizer("svc-0"), "one look is not enough");
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_credential_of_another_project_makes_no_second_balancer_there() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.serve(1).await;
    lab.cloud.add_project("other");
    let everything = Permission::ReadWrite;
    lab.cloud.grant(SimulatedCloud::TOKEN, "other", everything);
    let ports = json!({"spec": {"ports": [{"port": 443, "nodePort": 30443, "protocol": "TCP"}]}});
    lab.api.world().change_service("svc-0", &ports);
    lab.pass(MINUTE * 20).await;
    assert_eq!(
        lab.cloud.balancers_of("other"),
        [],
        "it is not ours to fill"
    );
    lab.cloud
        .grant(SimulatedCloud::TOKEN, SimulatedCloud::PROJECT, everything);
    lab.pass(MINUTE * 12).await;
    let balancers = lab.cloud.balancers();
    assert_eq!(balancers.len(), 1);
    assert_eq!(balancers[0].listeners[0].port, 443);
}

/// Two Nodes and a cloud that does not say to which project a credential belongs, beside another project.
async fn beside_another_project() -> Lab {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.cloud.add_project("other");
    lab
}

fn swap_credential(lab: &Lab, project: &str) {
    let everything = Permission::ReadWrite;
    lab.cloud.grant(SimulatedCloud::TOKEN, project, everything);
}

#[tokio::test(start_paused = true)]
async fn a_new_service_gets_no_balancer_in_another_project() {
    let lab = beside_another_project().await;
    swap_credential(&lab, "other");
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(MINUTE * 3).await;
    assert_eq!(
        lab.cloud.balancers_of("other"),
        [],
        "it would never be found"
    );
    let events = lab.events("svc-0", "SyncLoadBalancerFailed");
    assert!(
        events[0].contains("shows no machine of this cluster"),
        "{events:?}"
    );
    swap_credential(&lab, SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.cloud.balancers().len(), 1);
    assert_eq!(lab.cloud.balancers_of("other"), []);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_another_project_answers_is_no_removal() {
    let mut caught = 0;
    // Calls take a second. At some of these moments the balancer has been seen, and the order to
    // remove it meets "no such balancer".
    for moment in 1..40 {
        let lab = beside_another_project().await;
        lab.serve(1).await;
        lab.cloud
            .change_settings(|settings| settings.latency.fixed = SECOND);
        lab.api.world().delete_service("svc-0");
        lab.pass(SECOND * moment / 10).await;
        swap_credential(&lab, "other");
        lab.pass(MINUTE * 5).await;
        let stands = !lab.cloud.balancers().is_empty();
        caught += u32::from(stands);
        if stands {
            assert!(lab.has_finalizer("svc-0"), "{moment}: its balancer stands");
        }
        swap_credential(&lab, SimulatedCloud::PROJECT);
        lab.pass(MINUTE * 10).await;
        assert_eq!(lab.cloud.balancers(), [], "{moment}");
        assert_eq!(lab.api.world().service("svc-0"), None, "{moment}");
    }
    assert!(caught > 0, "no moment was early enough");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_the_cloud_does_not_show_yet_is_not_gone() {
    let lab = Lab::with_nodes(2).await;
    lab.pass(MINUTE * 2).await;
    let late = Fault::Stale { by: SECOND * 60 };
    lab.cloud.faults().always(FaultMatch::any(), late);
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(SECOND * 10).await;
    assert_eq!(lab.cloud.balancers().len(), 1, "it was made");
    lab.api.world().delete_service("svc-0");
    lab.pass(SECOND * 40).await;
    assert!(lab.has_finalizer("svc-0"), "its balancer stands, unseen");
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_went_without_its_finalizer_is_not_forgotten_by_a_cloud_that_shows_nothing()
{
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    show_nothing(&lab);
    lab.api.world().delete_service("svc-0");
    lab.api
        .world()
        .change_service("svc-0", &json!({"metadata": {"finalizers": null}}));
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
    assert_eq!((lab.cloud.balancers().len(), lab.remembered()), (1, 1));
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 2).await;
    assert_eq!((lab.cloud.balancers().len(), lab.remembered()), (0, 0));
}

/// A Service whose balancer was taken away by hand and has just been made again, in a cloud that shows
/// everything a minute late.
async fn made_again() -> Lab {
    let lab = Lab::with_nodes(2).await;
    lab.serve(1).await;
    lab.pass(MINUTE * 3).await;
    let balancer = lab.cloud.balancers().remove(0);
    lab.cloud.drop_balancer(balancer.id).unwrap();
    let change = json!({"metadata": {"annotations": {"example.com/changed": "once"}}});
    lab.api.world().change_service("svc-0", &change);
    lab.pass(SECOND * 90).await;
    assert_eq!(lab.cloud.balancers(), [], "it is missed once");
    let late = Fault::Stale { by: MINUTE };
    lab.cloud.faults().always(FaultMatch::any(), late);
    for _ in 0..60 {
        lab.pass(SECOND).await;
        if !lab.cloud.balancers().is_empty() {
            return lab;
        }
    }
    panic!("it is not made again");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_was_made_again_and_is_not_shown_yet_is_not_gone() {
    let lab = made_again().await;
    lab.api.world().delete_service("svc-0");
    for _ in 0..30 {
        lab.pass(SECOND * 10).await;
        let is_held = lab.api.world().service("svc-0").is_some();
        assert!(is_held || lab.cloud.balancers().is_empty());
    }
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

/// A Service whose balancer was made moments ago and has no address yet, when the credential becomes that of another
/// project.
async fn swapped_while_made() -> Lab {
    let mut settings = Settings {
        action_duration: SECOND * 20,
        ..Settings::default()
    };
    settings.features.tells_project = false;
    let lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.cloud.add_project("other");
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(SECOND).await;
    assert_eq!(
        (lab.cloud.balancers().len(), lab.address("svc-0")),
        (1, None)
    );
    swap_credential(&lab, "other");
    let ports = json!({"spec": {"ports": [{"port": 443, "nodePort": 30443, "protocol": "TCP"}]}});
    lab.api.world().change_service("svc-0", &ports);
    lab.pass(SECOND * 30).await;
    assert_eq!(lab.cloud.balancers_of("other"), [], "the first one stands");
    lab
}

#[tokio::test(start_paused = true)]
async fn a_balancer_without_an_address_gets_no_second_one_in_another_project() {
    let lab = swapped_while_made().await;
    let first = lab.cloud.balancers().remove(0).id;
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.balancers_of("other"), []);
    assert_eq!(lab.address("svc-0"), None, "it is not known");
    swap_credential(&lab, SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 2).await;
    let balancers = lab.cloud.balancers();
    assert_eq!((balancers.len(), balancers[0].id), (1, first));
    assert_eq!(
        lab.address("svc-0"),
        Some(balancers[0].addresses[0].to_string())
    );
}

#[tokio::test(start_paused = true)]
async fn a_balancer_without_an_address_is_not_released_by_another_project() {
    let lab = swapped_while_made().await;
    let other = json!({"spec": {"type": "ClusterIP"}});
    lab.api.world().change_service("svc-0", &other);
    lab.pass(MINUTE * 10).await;
    assert!(lab.has_finalizer("svc-0"), "its balancer stands");
    assert_eq!(lab.cloud.balancers().len(), 1);
    swap_credential(&lab, SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 5).await;
    assert!(!lab.has_finalizer("svc-0"));
    assert_eq!(lab.cloud.balancers(), []);
}

#[tokio::test(start_paused = true)]
async fn a_new_balancer_that_the_cloud_shows_late_is_served_as_soon_as_it_is_shown() {
    let settings = Settings {
        action_duration: SECOND * 5,
        ..Settings::default()
    };
    let lab = Lab::with(2, settings, ServiceSettings::default()).await;
    lab.pass(MINUTE * 2).await;
    let late = Fault::Stale { by: SECOND * 40 };
    lab.cloud.faults().always(Operation::ListBalancers, late);
    lab.api.world().create_service("svc-0", &json!({}));
    lab.pass(SECOND * 60).await;
    assert!(lab.address("svc-0").is_some());
    assert_eq!(lab.cloud.calls().of(Operation::CreateBalancer), 1);
}
