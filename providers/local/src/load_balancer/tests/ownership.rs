//! Whose balancer it is.

use super::*;
use crate::load_balancer::marks::{CLUSTER_UID, SERVICE, SERVICE_UID};
use crate::load_balancer::observe::{Candidates, judge};

fn marked(id: u64, marks: &[(&str, &str)]) -> Balancer {
    let labels = marks.iter();
    Balancer {
        id,
        labels: labels.map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..built(&spec(&[80], &[1]))
    }
}

const OURS: &[(&str, &str)] = &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-1")];
const THEIRS: &[(&str, &str)] = &[(SERVICE_UID, "u-2"), (SERVICE, "ns/db")];

enum Expected {
    Nothing,
    Ours(u64),
    Adoptable(u64),
    Refused(ErrorKind, &'static str),
}

fn check(case: &str, adopt: Option<&str>, candidates: Candidates, expected: Expected) {
    use Expected::{Adoptable, Nothing, Ours, Refused};
    let mut claim = claim("u-1");
    claim.adopt = adopt.map(str::to_owned);
    match (judge(&claim, &facts(), candidates), expected) {
        (Ok(seen), Nothing) => assert_eq!(seen, Observed::default(), "{case}"),
        (Ok(seen), Ours(id)) => assert_eq!(seen.ours[0].id, id, "{case}"),
        (Ok(seen), Adoptable(id)) => assert_eq!(seen.adoptable.unwrap().id, id, "{case}"),
        (Err(error), Refused(kind, why)) => {
            assert_eq!(error.kind(), kind, "{case}: {error}");
            assert!(error.message().contains(why), "{case}: {error}");
        }
        (judged, _) => panic!("{case}: {judged:?}"),
    }
}

const COPY: &[(&str, &str)] = &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-2")];

#[test]
fn the_mark_decides() {
    use Expected::{Nothing, Ours, Refused};
    let two = "balancers 7 and 8 all carry the mark of ns/web";
    for (case, marked, expected) in [
        ("nothing there", vec![], Nothing),
        ("ours", vec![marked(7, OURS)], Ours(7)),
        (
            "ours in a copy of the cluster",
            vec![marked(7, COPY)],
            Refused(ErrorKind::NotOurs, "belongs to cluster c-2"),
        ),
        (
            "two of ours",
            vec![marked(7, OURS), marked(8, OURS)],
            Refused(ErrorKind::Invalid, two),
        ),
    ] {
        let candidates = Candidates {
            marked,
            ..Candidates::default()
        };
        check(case, None, candidates, expected);
    }
}

#[test]
fn a_name_proves_nothing() {
    use Expected::{Ours, Refused};
    for (case, namesake, expected) in [
        (
            "nobody's",
            marked(7, &[]),
            Refused(ErrorKind::NotOurs, "cloudkeel.dev/adopt: \"7\""),
        ),
        (
            "another Service's",
            marked(7, THEIRS),
            Refused(ErrorKind::NotOurs, "belongs to Service ns/db"),
        ),
        ("ours after all", marked(7, OURS), Ours(7)),
    ] {
        let candidates = Candidates {
            namesakes: vec![namesake],
            ..Candidates::default()
        };
        check(case, None, candidates, expected);
    }
}

#[test]
fn only_what_is_nobodys_is_adopted() {
    use Expected::{Adoptable, Refused};
    for (case, asked_for, expected) in [
        ("nobody's", Some(marked(7, &[("team", "a")])), Adoptable(7)),
        (
            "another Service's",
            Some(marked(7, THEIRS)),
            Refused(ErrorKind::NotOurs, "belongs to Service ns/db"),
        ),
        (
            "another cluster's",
            Some(marked(7, &[(CLUSTER_UID, "c-2")])),
            Refused(ErrorKind::NotOurs, "belongs to cluster c-2"),
        ),
        (
            "not there",
            None,
            Refused(ErrorKind::Invalid, "there is no balancer \"7\" to adopt"),
        ),
    ] {
        let candidates = Candidates {
            asked_for,
            ..Candidates::default()
        };
        check(case, Some("7"), candidates, expected);
    }
}

#[test]
fn who_has_one_adopts_no_other() {
    let candidates = || Candidates {
        marked: vec![marked(7, OURS)],
        ..Candidates::default()
    };
    check("the same", Some("7"), candidates(), Expected::Ours(7));
    let refused = Expected::Refused(ErrorKind::Invalid, "has balancer 7 already");
    check("another", Some("9"), candidates(), refused);
}

#[test]
fn adopting_marks_first_and_keeps_the_labels_of_people() {
    let mut want = spec(&[80, 443], &[1]);
    want.claim.adopt = Some("7".into());
    let foreign = Balancer {
        name: "by-hand".into(),
        ..marked(7, &[("team", "a")])
    };
    let have = Observed {
        adoptable: Some(foreign.clone()),
        ..Observed::default()
    };
    let steps = steps(&want, &have);
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "adopt balancer 7",
            "change name of balancer 7",
            "set listeners of balancer 7 to 80/tcp, 443/tcp",
        ]
    );
    let after = apply(Some(foreign), &steps).unwrap();
    assert_eq!(after.labels["team"], "a");
    assert_eq!(after.labels[SERVICE_UID], "u-1");
    assert_eq!(super::steps(&want, &ours(after)), []);
}
