//! Whose balancer is it?

use cloudkeel_api::{ErrorKind, Owner, names};

use super::super::marks::{CLUSTER_UID, SERVICE_UID, marked, owner, service as made_for};
use super::super::observe::{Candidates, judge};
use super::model::own_labels;
use super::*;

fn labelled(pairs: &[(&str, &str)]) -> LoadBalancer {
    let pairs = pairs.iter();
    let labels = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    LoadBalancer {
        labels: labels.collect(),
        ..balancer()
    }
}

#[test]
fn the_marks_decide() {
    let other = |who: &str| Owner::Other(who.to_owned());
    for (case, pairs, cluster, expected) in [
        ("no mark", &[("team", "a")][..], Some("c-1"), Owner::Nobody),
        (
            "the Go CCM's mark",
            &[(SERVICE_UID, "u-1")],
            Some("c-1"),
            Owner::Us,
        ),
        (
            "our Service in a copy of the cluster",
            &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-2")],
            Some("c-1"),
            other("cluster c-2"),
        ),
        (
            "our cluster is not known",
            &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-2")],
            None,
            Owner::Us,
        ),
        (
            "another Service",
            &[(SERVICE_UID, "u-2")],
            Some("c-1"),
            other("Service with the UID u-2"),
        ),
    ] {
        let labels = labelled(pairs).labels;
        assert_eq!(owner(&labels, &claim(), cluster), expected, "{case}");
    }
}

#[test]
fn marks_tell_whose_it_is_and_leave_other_labels_alone() {
    let before = labelled(&[("team", "a")]).labels;
    let mut after = marked(&before, &claim(), Some("c-1"));
    assert_eq!(made_for(&after), Some(claim().service));
    assert_eq!(after.remove("team").as_deref(), Some("a"));
    assert_eq!(after, own_labels());
}

#[test]
fn a_balancer_of_the_go_ccm_is_ours_and_its_labels_stay() {
    let go = labelled(&[(SERVICE_UID, "u-1"), ("team", "a")]);
    let candidates = Candidates {
        marked: vec![LoadBalancer {
            services: vec![service(80)],
            ..go
        }],
        ..Candidates::default()
    };
    let seen = judge(&claim(), &facts(), candidates).unwrap();
    assert_eq!(steps(&spec(&[80], &[]), &seen, &facts()), []);
}

#[test]
fn a_name_is_no_proof_unless_a_setting_says_so() {
    let by_name = |pairs: &[(&str, &str)]| Candidates {
        namesakes: vec![labelled(pairs)],
        ..Candidates::default()
    };
    let mut go = facts();
    go.defaults.adopt_by_name = true;
    for (case, pairs, hint) in [
        ("nobody's", &[][..], names::ADOPT.name()),
        (
            "another's",
            &[(SERVICE_UID, "u-2")],
            "Service with the UID u-2",
        ),
    ] {
        let error = judge(&claim(), &facts(), by_name(pairs)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{case}");
        assert!(error.message().contains(hint), "{case}: {error}");
        let seen = judge(&claim(), &go, by_name(pairs)).unwrap();
        assert!(seen.adoptable.is_some(), "{case}");
    }
}

#[test]
fn a_balancer_is_taken_over_on_request_only_if_it_is_nobodys() {
    let mut claim = claim();
    claim.adopt = Some("42".into());
    let asked = |pairs: &[(&str, &str)]| Candidates {
        asked_for: Some(labelled(pairs)),
        ..Candidates::default()
    };
    let seen = judge(&claim, &facts(), asked(&[("team", "a")])).unwrap();
    let mut wish = spec(&[80], &[]);
    wish.claim = claim.clone();
    let found = steps(&wish, &seen, &facts());
    let Some(Step::Update {
        id: 42,
        name: None,
        labels: Some(labels),
    }) = found.first()
    else {
        panic!("{found:?}");
    };
    assert_eq!(labels.len(), own_labels().len() + 1);
    for pairs in [&[(SERVICE_UID, "u-2")], &[(CLUSTER_UID, "c-2")]] {
        let error = judge(&claim, &facts(), asked(pairs)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs);
    }
    let error = judge(&claim, &facts(), Candidates::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let has_one = Candidates {
        marked: vec![LoadBalancer {
            id: 43,
            ..balancer()
        }],
        ..Candidates::default()
    };
    let error = judge(&claim, &facts(), has_one).unwrap_err();
    assert!(error.message().contains("cannot adopt 42"), "{error}");
}

#[test]
fn two_with_the_same_mark_are_left_to_a_person() {
    let candidates = Candidates {
        marked: vec![balancer(), balancer()],
        ..Candidates::default()
    };
    let error = judge(&claim(), &facts(), candidates).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("42 and 42"), "{error}");
}
