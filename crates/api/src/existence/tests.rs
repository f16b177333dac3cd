use std::time::Duration;

use super::*;
use crate::ErrorKind;

fn id(text: &str) -> ProviderId {
    text.parse().unwrap()
}

fn scope(text: &str) -> ScopeFingerprint {
    ScopeFingerprint::new(text)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn seen(machine: &str, place: &str, second: i64) -> KnownInstance {
    KnownInstance::of(
        &Instance::new(id(machine), "other"),
        &scope(place),
        at(second),
    )
}

fn answer(kind: ErrorKind, known_instance: Option<&KnownInstance>) -> Existence {
    let error = CloudError::new("GET /servers/1", kind, "no").with_request_id("r-1");
    Existence::from_lookup_error(
        id("sim://1"),
        error,
        &scope("p1"),
        known_instance,
        at(1_000),
    )
}

#[test]
fn only_not_found_with_a_fresh_sighting_of_another_machine_proves_anything() {
    let known_instance = seen("sim://2", "p1", 990);
    let Existence::Gone(proof) = answer(ErrorKind::NotFound, Some(&known_instance)) else {
        panic!("this is a proof");
    };
    assert_eq!(proof.machine(), &id("sim://1"));
    assert_eq!(
        proof.to_string(),
        "GET /servers/1 answered that sim://1 does not exist in p1 at 1970-01-01T00:16:40Z \
         (request r-1), while sim://2 was seen there"
    );
}

#[test]
fn no_other_kind_of_error_is_ever_a_proof() {
    let known_instance = seen("sim://2", "p1", 990);
    for kind in [
        ErrorKind::AlreadyExists,
        ErrorKind::Conflict,
        ErrorKind::Busy,
        ErrorKind::Throttled { retry_after: None },
        ErrorKind::Throttled {
            retry_after: Some(Duration::from_secs(1)),
        },
        ErrorKind::Unauthenticated,
        ErrorKind::Denied,
        ErrorKind::Invalid,
        ErrorKind::LimitExceeded,
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
        ErrorKind::Malformed,
        ErrorKind::Incomplete,
        ErrorKind::NotOurs,
        ErrorKind::Unsupported,
        ErrorKind::ImplementedElsewhere,
        ErrorKind::Cancelled,
        ErrorKind::Other,
    ] {
        let existence = answer(kind, Some(&known_instance));
        assert!(
            matches!(existence, Existence::Unknown(Doubt::NoAnswer(_))),
            "{kind}: {existence:?}"
        );
    }
}

#[test]
fn a_known_instance_that_does_not_confirm_the_scope_leaves_doubt() {
    let stale = i64::try_from(KnownInstance::FRESH_FOR.as_secs()).unwrap() + 1;
    let cases = [
        ("nothing seen", None, "no other machine was seen"),
        (
            "seen too long ago",
            Some(seen("sim://2", "p1", 1_000 - stale)),
            "no other machine was seen",
        ),
        (
            "seen in another project",
            Some(seen("sim://2", "p2", 990)),
            "not found in p1, but machines were last seen in p2",
        ),
        (
            "the machine itself was just listed",
            Some(seen("sim://1", "p1", 990)),
            "had been seen at",
        ),
    ];
    for (case, known_instance, text) in cases {
        let Existence::Unknown(doubt) = answer(ErrorKind::NotFound, known_instance.as_ref()) else {
            panic!("{case}: this proves nothing");
        };
        assert!(doubt.to_string().contains(text), "{case}: {doubt}");
    }
}

#[test]
fn a_terminated_machine_is_its_own_evidence() {
    let proof = GoneProof::terminated(
        id("aws:///z/i-1"),
        "DescribeInstances",
        "terminated",
        &scope("acct/eu"),
        at(5),
    );
    assert!(
        proof
            .to_string()
            .contains("showed aws:///z/i-1 as terminated in acct/eu")
    );
}

#[test]
fn doubts_name_what_was_looked_for_and_all_candidates() {
    let doubt = Doubt::Ambiguous {
        looked_for: "the name \"n\"".into(),
        candidates: vec![id("sim://1"), id("sim://2")],
    };
    assert_eq!(
        doubt.to_string(),
        "2 machines match the name \"n\": sim://1, sim://2"
    );
}
