use cloudkeel_api::{IpMode, Severity, UnknownAnnotation};

use super::*;

fn web() -> ServiceRef {
    ServiceRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
    }
}

#[test]
fn upstreams_words_for_progress_are_kept_to_the_letter() {
    let web = web();
    let fixed = |(reason, message): Fixed| Event::normal(&web, reason, message);
    for (event, reason, message) in [
        (
            fixed(ENSURING),
            "EnsuringLoadBalancer",
            "Ensuring load balancer",
        ),
        (
            ensured(&web, &LoadBalancerStatus::default()),
            "EnsuredLoadBalancer",
            "Ensured load balancer",
        ),
        (
            fixed(UPDATED),
            "UpdatedLoadBalancer",
            "Updated load balancer with new hosts",
        ),
        (
            fixed(DELETING),
            "DeletingLoadBalancer",
            "Deleting load balancer",
        ),
        (
            fixed(DELETED),
            "DeletedLoadBalancer",
            "Deleted load balancer",
        ),
    ] {
        assert_eq!(event, Event::normal(&web, reason, message));
    }
}

#[test]
fn upstreams_words_for_trouble_are_kept_to_the_letter() {
    let (web, cause) = (web(), FailureMessage::from_text("boom"));
    let message = "There are no available nodes for LoadBalancer";
    assert_eq!(UNAVAILABLE, ("UnAvailableLoadBalancer", message));
    let event = delete_failed(&web, &cause);
    let message = "Error deleting load balancer: boom";
    assert_eq!(
        event,
        Event::warning(&web, "DeleteLoadBalancerFailed", message)
    );
    let event = update_failed(&web, &["b", "a"], &cause);
    let message = "Error updating load balancer with new hosts [a b] [node names limited, total \
                   number of nodes: 2], error: boom";
    assert_eq!(
        event,
        Event::warning(&web, "UpdateLoadBalancerFailed", message)
    );
    for (stage, what) in [
        (Stage::Ensure, "ensure load balancer"),
        (Stage::Delete, "delete load balancer"),
        (Stage::WriteStatus, "update load balancer status"),
        (Stage::AddFinalizer, "add load balancer cleanup finalizer"),
        (
            Stage::RemoveFinalizer,
            "remove load balancer cleanup finalizer",
        ),
    ] {
        let event = sync_failed(&web, stage, &cause);
        let message = format!("Error syncing load balancer: failed to {what}: boom");
        assert_eq!(
            event,
            Event::warning(&web, "SyncLoadBalancerFailed", message)
        );
    }
}

#[test]
fn our_own_say_what_is_waited_for_and_what_is_left_alone() {
    let event = pending(&web(), "the cloud creates it");
    assert_eq!(event.reason, "PendingLoadBalancer");
    assert_eq!(
        event.message,
        "Waiting for load balancer: the cloud creates it"
    );
    let event = finalizer_left(&web(), Some("metallb"));
    assert_eq!(event.reason, "LoadBalancerFinalizerLeft");
    assert_eq!(
        event.message,
        "No cloud here serves Services of class \"metallb\" or has a load balancer of this one, so \
         the finalizer service.kubernetes.io/load-balancer-cleanup is left to the controller that added it; \
         remove it by hand if that no longer runs"
    );
    let about = UnknownAnnotation {
        name: "cloudkeel.dev/lb-nam".to_owned(),
        nearest: Some("cloudkeel.dev/lb-name"),
    };
    let event = advice(&web(), &about.into());
    assert_eq!(
        (event.severity, &*event.reason),
        (Severity::Warning, "UnknownAnnotation")
    );
    assert_eq!(
        event.message,
        "cloudkeel.dev/lb-nam is not a known annotation: did you mean cloudkeel.dev/lb-name?"
    );
}

#[test]
fn a_balancer_that_is_as_desired_is_named_with_its_addresses() {
    let ip = |ip: &str| Ingress::Ip {
        ip: ip.parse().unwrap(),
        mode: IpMode::Vip,
    };
    let named = Ingress::Hostname("lb.example.com".to_owned());
    for (id, ingress, expected) in [
        (Some("4711"), vec![], "Ensured load balancer 4711"),
        (
            Some("4711"),
            vec![ip("203.0.113.7"), ip("2001:db8::7")],
            "Ensured load balancer 4711 at 203.0.113.7, 2001:db8::7",
        ),
        (None, vec![named], "Ensured load balancer at lb.example.com"),
    ] {
        let id = id.map(ToOwned::to_owned);
        let exists = true;
        let event = ensured(
            &web(),
            &LoadBalancerStatus {
                exists,
                id,
                ingress,
                draining: 0,
                health: Vec::new(),
            },
        );
        assert_eq!(event.message, expected);
    }
}

#[test]
fn names_are_sorted_and_at_most_twenty() {
    assert_eq!(shown_names(&[]), "[]");
    assert_eq!(shown_names(&["b", "a"]), "[a b]");
    let many: Vec<String> = (10..33).rev().map(|number| format!("n{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let shown = shown_names(&many);
    assert!(
        shown.starts_with("[n10 n11 ") && shown.ends_with(" n29 <3 more>]"),
        "{shown}"
    );
    let twenty = shown_names(&many[..20]);
    assert!(!twenty.contains("more"), "{twenty}");
}
