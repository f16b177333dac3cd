use cloudkeel_api::{ClusterIdentity, ServiceRef};

use super::*;

fn balancer_ref(annotations: &[(&str, &str)]) -> BalancerRef {
    let cluster = ClusterIdentity {
        name: "c".to_owned(),
        uid: None,
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
    };
    let annotations = annotations.iter();
    BalancerRef {
        annotations: annotations
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..BalancerRef::of(cluster, service)
    }
}

#[test]
fn the_service_says_whether_a_balancer_is_shared_and_else_its_label() {
    let labelled = labelled_as_shared(Labels::new(), true);
    let plain = labelled_as_shared(labelled.clone(), false);
    assert_eq!(plain, Labels::new());
    for (value, labels, expected) in [
        (None, &plain, false),
        (None, &labelled, true),
        (Some("false"), &plain, true),
        (Some("true"), &labelled, false),
        (Some("perhaps"), &plain, true),
    ] {
        let given = value.map(|value| (names::LB_EXCLUSIVE.name(), value));
        let found = is_shared(&balancer_ref(given.as_slice()), labels);
        assert_eq!(found, expected, "{value:?}, {labels:?}");
    }
}

#[test]
fn a_shared_balancer_is_not_changed_as_a_whole() {
    struct Balancer;
    impl CloudBalancer for Balancer {
        fn id(&self) -> String {
            "7".to_owned()
        }

        fn name(&self) -> &'static str {
            "front"
        }
    }
    assert!(check_unchanged(&Balancer, &[("name", false)]).is_ok());
    let asked = [("name", true), ("algorithm", false), ("type", true)];
    let error = check_unchanged(&Balancer, &asked).unwrap_err();
    let message = "load balancer 7 (front) is shared with other clients";
    assert!(error.message().starts_with(message), "{error}");
    assert!(error.message().contains("another name, type"), "{error}");
}
