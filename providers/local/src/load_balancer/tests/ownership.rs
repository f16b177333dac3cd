//! What becomes of a balancer that is taken over.

use super::*;
use crate::load_balancer::{OWNER, SERVICE_UID};

#[test]
fn adopting_labels_first_and_keeps_other_labels() {
    let mut want = spec(&[80, 443], &[1]);
    want.balancer_ref.adopt = Some("7".into());
    let foreign = Balancer {
        name: "by-hand".into(),
        labels: BTreeMap::from([("team".into(), "a".into())]),
        ..built(&spec(&[80], &[1]))
    };
    let have = Observed {
        found: Classified::adoptable(foreign.clone()),
        ..Observed::default()
    };
    let steps = steps(&want, &have);
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "adopt balancer 7",
            "set listeners of balancer 7 to 80/tcp, 443/tcp",
            "change name of balancer 7",
        ]
    );
    let after = apply(Some(foreign), &steps).unwrap();
    assert_eq!(after.labels["team"], "a");
    assert_eq!(after.labels[SERVICE_UID], "u-1");
    assert_eq!(super::steps(&want, &ours(after)), []);
}

/// A balancer of another client on this port, and what is seen of it by a Service that shares it.
fn shared(want: &LoadBalancerSpec, port: u16) -> (Balancer, Observed) {
    let foreign = Balancer {
        name: "by-hand".into(),
        labels: BTreeMap::from([("team".into(), "a".into())]),
        ..built(&spec(&[port], &[9]))
    };
    let found = Classified::adoptable(foreign.clone());
    let asked = Desired::of(want, &facts());
    let seen = super::super::observe::observed(want, found, asked).unwrap();
    (foreign, seen)
}

fn sharing(ports: &[u16]) -> LoadBalancerSpec {
    let mut want = spec(ports, &[1]);
    want.balancer_ref.adopt = Some("7".into());
    annotate(&mut want, api::names::LB_EXCLUSIVE.name(), "false");
    want
}

#[test]
fn of_a_shared_balancer_only_listeners_and_targets_are_added() {
    let mut want = sharing(&[80, 443]);
    let (foreign, before) = shared(&want, 80);
    let pause = Duration::from_secs(2);
    let report = report(DesiredState::Present(&want), &before, &facts(), pause);
    assert!(
        report.busy.is_some(),
        "nothing is added before it is on record"
    );
    for (key, value) in report.changes.annotations {
        annotate(&mut want, &key, &value.unwrap());
    }
    let (_, seen) = shared(&want, 80);
    let steps = steps(&want, &seen);
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    let expected = [
        "adopt balancer 7",
        "add machine 1 at balancer 7",
        "set listeners of balancer 7 to 80/tcp, 443/tcp",
    ];
    assert_eq!(texts, expected);
    let after = apply(Some(foreign.clone()), &steps).unwrap();
    assert_eq!(after.name, "by-hand");
    assert_eq!(
        after.listeners[0], foreign.listeners[0],
        "it is another client's"
    );
    let found = Classified::ours(after);
    let asked = Desired::of(&want, &facts());
    let settled = super::super::observe::observed(&want, found, asked).unwrap();
    assert_eq!(super::steps(&want, &settled), []);
    let report = super::super::report(DesiredState::Present(&want), &settled, &facts(), pause);
    assert_eq!(report.busy, None);
    let why = &report.unmet[0].message;
    assert!(why.contains("another client on 80/TCP"), "{why}");
}

#[test]
fn a_shared_balancer_is_not_changed_as_a_whole() {
    let mut want = sharing(&[80]);
    want.options.name = Some("mine".into());
    want.source_ranges = vec!["192.0.2.0/24".parse().unwrap()];
    let (_, seen) = shared(&want, 22);
    let error = plan(DesiredState::Present(&want), &seen, &facts()).unwrap_err();
    let what = "do not ask for another name, source ranges";
    assert!(error.message().contains(what), "{error}");
}

#[test]
fn a_shared_balancer_that_is_retained_says_that_it_is_shared() {
    let want = sharing(&[80]);
    let (foreign, _) = shared(&want, 22);
    let ours = Balancer {
        labels: OWNER.added(&foreign.labels, &want.balancer_ref, None),
        ..foreign
    };
    let found = Classified::ours(ours);
    let seen = Observed {
        sharing: Sharing::of_leaving(&want.balancer_ref, &found),
        found,
        desired: None,
    };
    let desired = DesiredState::Released(&want.balancer_ref);
    let steps = plan(desired, &seen, &facts()).unwrap();
    let [
        Step::Change {
            change: Change::Release(labels),
            ..
        },
    ] = steps.as_slice()
    else {
        panic!("{steps:?}");
    };
    let expected = [("cloudkeel.dev/shared", "true"), ("team", "a")];
    let labels = labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    assert!(labels.eq(expected));
}
