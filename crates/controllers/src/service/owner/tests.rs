mod change;

use cloudkeel_api::ServiceType;
use serde_json::json;

use super::*;
use crate::service::fixtures::{lone, owner, service};

const OURS: &str = CLEANUP_FINALIZER;

fn hybrid() -> Classes {
    Classes::new(vec![
        owner("fsn", false, Some("hetzner")),
        owner("dc1", true, Some("vsphere")),
        owner("lab", false, None),
    ])
}

fn classed(class: Option<&str>) -> ServiceView {
    service(json!({"spec": {"loadBalancerClass": class}}))
}

#[test]
fn the_class_decides_who_serves_and_an_empty_one_counts_as_set() {
    for (case, view, lone_cloud, hybrid_cloud) in [
        ("no class", classed(None), Some("fsn"), Some("dc1")),
        ("a class here", classed(Some("hetzner")), None, Some("fsn")),
        (
            "default's own class",
            classed(Some("vsphere")),
            None,
            Some("dc1"),
        ),
        ("a foreign class", classed(Some("metallb")), None, None),
        ("an empty class", classed(Some("")), None, None),
        (
            "another type",
            service(json!({"spec": {"type": "NodePort"}})),
            None,
            None,
        ),
    ] {
        for (classes, expected) in [(lone(), lone_cloud), (hybrid(), hybrid_cloud)] {
            let owner = owner_of_service(&view, &classes).map(|owner| owner.cloud.as_str());
            assert_eq!(owner, expected, "{case}");
            assert_eq!(
                wants_balancer(&view, &classes),
                expected.is_some(),
                "{case}"
            );
        }
    }
}

#[test]
fn a_service_that_is_being_deleted_wants_nothing_but_still_has_an_owner() {
    let mut view = classed(None);
    view.deleting = true;
    assert!(!wants_balancer(&view, &lone()));
    assert!(owner_of_service(&view, &lone()).is_some());
}

#[test]
fn cleanup_needs_the_finalizer_and_a_deletion_or_another_type() {
    for (case, finalizer, deleting, is_load_balancer, expected) in [
        ("nothing", None, false, true, false),
        ("in use", Some(OURS), false, true, false),
        ("deleted", Some(OURS), true, true, true),
        ("retyped", Some(OURS), false, false, true),
        ("deleted and retyped", Some(OURS), true, false, true),
        ("deleted without", None, true, true, false),
        ("retyped without", None, false, false, false),
        (
            "another's finalizer",
            Some("example.com/x"),
            true,
            false,
            false,
        ),
    ] {
        for class in [None, Some("foreign")] {
            let mut view = classed(class);
            view.finalizers = finalizer.into_iter().map(str::to_owned).collect();
            view.deleting = deleting;
            view.service_type = service_type(is_load_balancer);
            assert_eq!(needs_cleanup(&view), expected, "{case} {class:?}");
        }
    }
}

/// A Service that is being cleaned up.
fn service_type(is_load_balancer: bool) -> ServiceType {
    if is_load_balancer {
        ServiceType::LoadBalancer
    } else {
        ServiceType::ClusterIp
    }
}

fn leaving(class: Option<&str>, is_load_balancer: bool, was_served: bool) -> ServiceView {
    let mut view = classed(class);
    view.finalizers = vec![OURS.to_owned()];
    view.deleting = is_load_balancer;
    view.service_type = service_type(is_load_balancer);
    if was_served {
        view.conditions = vec![served_by("fsn")];
    }
    view
}

fn served_by(cloud: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition {
    serde_json::from_value(json!({
        "type": conditions::ACCEPTED, "status": "True", "reason": "Accepted",
        "message": format!("served by cloud {cloud}"),
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }))
    .unwrap()
}

/// Every cloud has load balancers.
const fn all_can(_cloud: &str) -> bool {
    true
}

fn cleanup<'a>(clouds: &[&'a str], finalizer_is_ours: bool) -> Cleanup<'a> {
    Cleanup {
        clouds: clouds.to_vec(),
        finalizer_is_ours,
    }
}

#[test]
fn cleanup_goes_to_the_clouds_that_may_have_the_balancer() {
    let deleted = |class| leaving(class, true, false);
    let retyped = leaving(None, false, false);
    for (case, view, classes, clouds) in [
        ("lone", deleted(None), lone(), &["fsn"][..]),
        ("lone, retyped", retyped.clone(), lone(), &["fsn"]),
        ("by class", deleted(Some("hetzner")), hybrid(), &["fsn"]),
        ("default", deleted(None), hybrid(), &["dc1"]),
        (
            "a retyped one has lost its class, so any",
            retyped,
            hybrid(),
            &["dc1", "fsn"],
        ),
    ] {
        assert!(needs_cleanup(&view), "{case}");
        let found = cleanup_of(&view, &classes, all_can);
        assert_eq!(found, cleanup(clouds, true), "{case}");
    }
}

#[test]
fn a_finalizer_that_may_be_another_controllers_is_not_simply_taken() {
    let no_default = Classes::new(vec![owner("fsn", false, Some("hetzner"))]);
    for was_served in [false, true] {
        let foreign = leaving(Some("metallb"), true, was_served);
        let classes = hybrid();
        let found = cleanup_of(&foreign, &classes, all_can);
        assert_eq!(found, cleanup(&["dc1", "fsn"], was_served), "foreign class");
        let retyped = leaving(None, false, was_served);
        let found = cleanup_of(&retyped, &no_default, all_can);
        assert_eq!(
            found,
            cleanup(&["fsn"], was_served),
            "no cloud serves what has no class"
        );
    }
}

#[test]
fn a_finalizer_of_another_cloudkeel_in_the_cluster_is_left_to_it() {
    for (case, classes) in [("with a default cloud", lone()), ("hybrid", hybrid())] {
        let mut retyped = leaving(None, false, false);
        let is_ours = |view: &ServiceView| cleanup_of(view, &classes, all_can).finalizer_is_ours;
        assert!(is_ours(&retyped), "{case}");
        retyped.conditions = vec![served_by("a cloud of theirs")];
        assert!(!is_ours(&retyped), "{case}");
        retyped.conditions = vec![served_by("fsn")];
        assert!(is_ours(&retyped), "{case}");
    }
}

#[test]
fn a_cloud_without_load_balancers_takes_no_finalizer_unless_it_served_the_service() {
    let only_fsn = |cloud: &str| cloud == "fsn";
    let none = |_: &str| false;
    let deleted = |was_served| leaving(None, true, was_served);
    let retyped = |was_served| leaving(None, false, was_served);
    for (case, view, classes, can, expected) in [
        (
            "deleted",
            deleted(false),
            lone(),
            &none as &dyn Fn(&str) -> bool,
            cleanup(&[], false),
        ),
        (
            "retyped",
            retyped(false),
            lone(),
            &none,
            cleanup(&[], false),
        ),
        (
            "deleted, but it was served",
            deleted(true),
            lone(),
            &none,
            cleanup(&["fsn"], true),
        ),
        (
            "retyped, but it was served",
            retyped(true),
            lone(),
            &none,
            cleanup(&["fsn"], true),
        ),
        (
            "only another cloud can",
            deleted(false),
            hybrid(),
            &only_fsn,
            cleanup(&["fsn"], false),
        ),
    ] {
        assert_eq!(cleanup_of(&view, &classes, can), expected, "{case}");
    }
}

#[test]
fn the_cloud_that_served_a_service_is_asked_too_after_another_took_over() {
    let classes = hybrid();
    let deleted = leaving(None, true, true);
    let found = cleanup_of(&deleted, &classes, all_can);
    assert_eq!(found, cleanup(&["dc1", "fsn"], true));
}
