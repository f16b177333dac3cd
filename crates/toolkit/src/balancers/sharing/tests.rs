use crate::fixtures::cluster_and_service;

use super::*;

const EXCLUSIVE: &str = names::LB_EXCLUSIVE.name();

fn balancer_ref(annotations: &[(&str, &str)]) -> BalancerRef {
    let (cluster, service) = cluster_and_service();
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
    assert_eq!(
        labelled,
        labels_of_new(&balancer_ref(&[(EXCLUSIVE, "false")]))
    );
    let plain = labelled_as_shared(labelled, false);
    assert_eq!(plain, Labels::new());
    for (value, is_marked, expected) in [
        (None, false, false),
        (None, true, true),
        (Some("false"), false, true),
        (Some("true"), true, false),
        (Some("perhaps"), false, true),
    ] {
        let given = value.map(|value| (EXCLUSIVE, value));
        let balancer_ref = balancer_ref(given.as_slice());
        let found = is_shared(&balancer_ref, is_marked);
        assert_eq!(found, expected, "{value:?}, {is_marked}");
        let tags = |is_marked: bool| {
            let mark = is_marked.then(|| SHARED_TAG.to_owned());
            ["a".to_owned()].into_iter().chain(mark).collect::<Vec<_>>()
        };
        let mut tagged = tags(is_marked);
        tagged_as_shared(&balancer_ref, &mut tagged);
        assert_eq!(tagged, tags(expected), "{value:?}, {is_marked}");
    }
}

#[test]
fn what_replaces_all_parts_has_those_of_other_clients_among_them() {
    struct Balancer;
    impl CloudBalancer for Balancer {
        fn id(&self) -> String {
            "7".to_owned()
        }

        fn name(&self) -> &'static str {
            "front"
        }
    }
    impl ShareableBalancer for Balancer {
        type Target = u64;

        fn is_marked_shared(&self) -> bool {
            false
        }

        fn listener_keys(&self) -> impl Iterator<Item = ListenerKey> {
            let protocol = cloudkeel_api::Protocol::Tcp;
            let keys = [22, 80].map(|port| ListenerKey { protocol, port });
            keys.into_iter()
        }

        fn targets(&self) -> impl Iterator<Item = u64> {
            [1, 2].into_iter()
        }
    }
    let key = |port| ListenerKey {
        protocol: cloudkeel_api::Protocol::Tcp,
        port,
    };
    let found = Classified::adoptable(Balancer);
    let present = [key(22), key(80)];
    let (desired, targets) = ([key(80), key(443)], BTreeSet::from([2, 3]));
    for (annotation, listeners, all) in [
        ("false", vec![key(22), key(80), key(443)], vec![1, 2, 3]),
        ("true", desired.to_vec(), vec![2, 3]),
    ] {
        let balancer_ref = balancer_ref(&[(EXCLUSIVE, annotation)]);
        let sharing = Sharing::of(&balancer_ref, &found, desired, &targets).unwrap();
        let found = sharing.with_foreign_listeners(&desired, &present);
        assert_eq!(found, listeners, "{annotation}");
        let found = sharing.with_foreign_targets(&targets, &BTreeSet::from([1, 2]));
        assert_eq!(found, all.into_iter().collect(), "{annotation}");
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
