use cloudkeel_api::Protocol;

use crate::fixtures::cluster_and_service;

use super::*;

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

const fn tcp(port: u16) -> ListenerKey {
    ListenerKey {
        protocol: Protocol::Tcp,
        port,
    }
}

fn parts(ports: &[u16], targets: &[u64]) -> Parts {
    Parts::of(ports.iter().copied().map(tcp), targets)
}

fn recorded(shared: &SharedParts) -> BalancerRef {
    let mut changes = ServiceChanges::default();
    shared.record(&mut changes);
    let key = names::LB_OWN_PARTS.name();
    let text = changes.annotations[key].clone().unwrap();
    balancer_ref(&[(key, &text)])
}

#[test]
fn nothing_is_added_before_it_is_on_record() {
    let (want, have) = (parts(&[80, 443], &[1, 2]), parts(&[22, 443], &[2, 9]));
    let first = SharedParts::of(&balancer_ref(&[]), "7", true, &want, &have).unwrap();
    assert!(first.busy().is_some(), "{first:?}");
    let service = recorded(&first);
    let now = SharedParts::of(&service, "7", false, &want, &have).unwrap();
    assert_eq!(now.busy(), None);
    let foreign = [22, 80, 443].map(|port| now.is_foreign_listener(tcp(port)));
    assert_eq!(foreign, [true, false, true], "443 was there before");
    let foreign = [1, 2, 9].map(|target: u64| now.is_foreign_target(&target));
    assert_eq!(foreign, [false, true, true], "2 was there before");
    let why = now.unmet().unwrap().message;
    assert!(why.contains("another client on 443/TCP"), "{why}");
    // Another Node needs another record.
    let more = parts(&[80, 443], &[1, 2, 3]);
    let grown = SharedParts::of(&service, "7", false, &more, &have).unwrap();
    assert!(grown.busy().is_some(), "{grown:?}");
}

#[test]
fn what_the_service_gives_up_stays_its_own_until_it_is_gone() {
    let both = parts(&[80, 443], &[1, 2]);
    let nothing = Parts::default();
    let first = SharedParts::of(&balancer_ref(&[]), "7", true, &both, &nothing).unwrap();
    let service = recorded(&first);
    let (want, have) = (parts(&[443], &[2]), parts(&[22, 80, 443], &[1, 2, 9]));
    let now = SharedParts::of(&service, "7", false, &want, &have).unwrap();
    assert!(!now.is_foreign_listener(tcp(80)) && !now.is_foreign_target(&1_u64));
    assert_eq!(now.busy(), None, "there is nothing to add");
    let have = parts(&[22, 443], &[2, 9]);
    let then = SharedParts::of(&service, "7", false, &want, &have).unwrap();
    let service = recorded(&then);
    let have = parts(&[22, 80, 443], &[2, 9]);
    let later = SharedParts::of(&service, "7", false, &want, &have).unwrap();
    assert!(later.is_foreign_listener(tcp(80)), "another client made it");
}

#[test]
fn without_a_record_what_a_service_asks_for_is_its_own_on_its_own_balancer() {
    let (want, have) = (parts(&[80], &[1]), parts(&[22, 80], &[1, 9]));
    let shared = SharedParts::of(&balancer_ref(&[]), "7", false, &want, &have).unwrap();
    assert!(!shared.is_foreign_listener(tcp(80)) && shared.is_foreign_listener(tcp(22)));
    assert!(!shared.is_foreign_target(&1_u64) && shared.is_foreign_target(&9_u64));
    assert_eq!(shared.unmet(), None);
    let service = recorded(&shared);
    let other = SharedParts::of(&service, "8", true, &want, &have).unwrap();
    assert!(
        other.is_foreign_listener(tcp(80)),
        "it is of another balancer"
    );
}

#[test]
fn a_balancer_goes_only_if_it_was_made_for_the_service_and_has_nothing_foreign() {
    let (want, have) = (parts(&[80], &[1]), parts(&[80], &[1]));
    let more = parts(&[22, 80], &[1]);
    for (case, is_adopted, have, expected) in [
        ("made for it", false, &have, true),
        ("adopted", true, &have, false),
        ("made for it, and used by others", false, &more, false),
    ] {
        let nothing = Parts::default();
        let made = SharedParts::of(&balancer_ref(&[]), "7", is_adopted, &want, &nothing);
        let leaving = SharedParts::of_leaving(&recorded(&made.unwrap()), "7", have);
        assert_eq!(leaving.is_deleted(), expected, "{case}");
        assert!(!leaving.is_foreign_listener(tcp(80)), "{case}");
    }
    for text in [None, Some("{}")] {
        let given = text.map(|text| (names::LB_OWN_PARTS.name(), text));
        let service = balancer_ref(given.as_slice());
        let leaving = SharedParts::of_leaving(&service, "7", &have);
        assert!(!leaving.is_deleted() && leaving.is_foreign_listener(tcp(80)));
    }
}

#[test]
fn a_record_that_cannot_be_read_changes_nothing() {
    let service = balancer_ref(&[(names::LB_OWN_PARTS.name(), "{}")]);
    let nothing = Parts::default();
    let error = SharedParts::of(&service, "7", false, &nothing, &nothing).unwrap_err();
    assert!(error.message().contains("restore it"), "{error}");
}
