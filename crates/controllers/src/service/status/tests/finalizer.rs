use serde_json::json;

use super::super::*;
use crate::service::fixtures::{now, service};

fn with(finalizers: &[&str]) -> ServiceView {
    service(json!({"metadata": {"finalizers": finalizers}}))
}

#[test]
fn it_is_added_to_the_service_that_was_read() {
    let body = json!({"metadata": {
        "uid": "u-1",
        "resourceVersion": "1",
        "finalizers": [CLEANUP_FINALIZER],
    }});
    for finalizers in [&[][..], &["example.com/x"], &[CLEANUP_FINALIZER]] {
        assert_eq!(add_finalizer(&with(finalizers)), body, "{finalizers:?}");
    }
}

#[test]
fn it_is_removed_only_if_it_is_there() {
    let body = json!({"metadata": {
        "uid": "u-1",
        "resourceVersion": "1",
        "$deleteFromPrimitiveList/finalizers": [CLEANUP_FINALIZER],
    }});
    for (case, finalizers, expected) in [
        ("none", &[][..], None),
        ("another's", &["example.com/x"], None),
        ("ours", &[CLEANUP_FINALIZER], Some(body.clone())),
        ("both", &["example.com/x", CLEANUP_FINALIZER], Some(body)),
    ] {
        assert_eq!(release(&with(finalizers), now()), expected, "{case}");
    }
}

#[test]
fn addresses_and_conditions_leave_with_it() {
    let accepted = json!({
        "type": "cloudkeel.dev/Accepted", "status": "True", "reason": "Accepted", "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    });
    let ingress = json!([{"ip": "192.0.2.1"}]);
    let gone = json!([{"$patch": "delete", "type": "cloudkeel.dev/Accepted"}]);
    for (case, finalizers, status, expected) in [
        (
            "all of it",
            &[CLEANUP_FINALIZER][..],
            json!({"loadBalancer": {"ingress": ingress}, "conditions": [accepted]}),
            Some(json!({"loadBalancer": {"ingress": null}, "conditions": gone})),
        ),
        (
            "addresses without a finalizer",
            &[],
            json!({"loadBalancer": {"ingress": ingress}}),
            Some(json!({"loadBalancer": {"ingress": null}})),
        ),
        (
            "a condition alone is no reason",
            &[],
            json!({"conditions": [accepted]}),
            None,
        ),
    ] {
        let view = service(json!({"metadata": {"finalizers": finalizers}, "status": status}));
        let body = release(&view, now());
        assert_eq!(body.map(|body| body["status"].clone()), expected, "{case}");
    }
}
