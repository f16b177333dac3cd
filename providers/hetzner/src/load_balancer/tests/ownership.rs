//! Whose balancer is it?

use cloudkeel_toolkit::Owner;

use super::super::owner_labels::{CLUSTER_UID, OWNER, SERVICE_UID};
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
fn the_owner_labels_decide() {
    let other = |who: &str| Owner::Other(who.to_owned());
    for (case, pairs, cluster, expected) in [
        (
            "no label",
            &[("team", "a")][..],
            Some("c-1"),
            Owner::Unowned,
        ),
        (
            "the Go CCM's label",
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
        assert_eq!(
            OWNER.owner(&labels, &balancer_ref(), cluster),
            expected,
            "{case}"
        );
    }
}

#[test]
fn owner_labels_say_whose_it_is_and_leave_other_labels_alone() {
    let before = labelled(&[("team", "a")]).labels;
    let mut after = OWNER.added(&before, &balancer_ref(), Some("c-1"));
    assert_eq!(OWNER.service(&after), Some(balancer_ref().service));
    assert_eq!(after.remove("team").as_deref(), Some("a"));
    assert_eq!(after, own_labels());
}

#[test]
fn a_balancer_of_the_go_ccm_keeps_its_labels() {
    let go = labelled(&[(SERVICE_UID, "u-1"), ("team", "a")]);
    let go = LoadBalancer {
        services: vec![service(80)],
        ..go
    };
    assert_eq!(steps(&spec(&[80], &[]), &ours(go), &facts()), []);
}

#[test]
fn a_balancer_that_is_adopted_is_labelled_and_keeps_its_other_labels() {
    let adopted = Observed {
        found: Classified::adoptable(labelled(&[("team", "a")])),
        ..Observed::default()
    };
    let found = steps(&spec(&[80], &[]), &adopted, &facts());
    let Some(Step::Adopt(42, labels)) = found.first() else {
        panic!("{found:?}");
    };
    let mut labels = labels.clone();
    assert_eq!(labels.remove("team").as_deref(), Some("a"));
    assert_eq!(labels, own_labels());
}
