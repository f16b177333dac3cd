use serde_json::json;

use super::super::fixtures::{now, service};
use super::*;

fn programmed() -> Progress {
    Progress::Programmed {
        cloud: "fsn".to_owned(),
        id: Some("7".to_owned()),
    }
}

fn pending() -> Progress {
    Progress::Pending {
        cloud: "fsn".to_owned(),
    }
}

/// A Service after these entries were written to it.
fn written(before: &ServiceView, entries: &[Value]) -> ServiceView {
    let mut after = before.clone();
    for entry in entries {
        after.conditions.retain(|had| had.type_ != entry["type"]);
        if entry.get("$patch").is_none() {
            after
                .conditions
                .push(serde_json::from_value(entry.clone()).unwrap());
        }
    }
    after
}

fn kinds(service: &ServiceView) -> Vec<&str> {
    service
        .conditions
        .iter()
        .map(|had| had.type_.as_str())
        .collect()
}

#[test]
fn a_made_balancer_is_accepted_and_programmed_with_its_id() {
    let entries = patch_entries(&service(json!({})), &programmed(), now());
    let expected = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2027-01-15T08:00:00Z",
        })
    };
    assert_eq!(
        entries,
        [
            expected("cloudkeel.dev/Accepted", "Accepted", "served by cloud fsn"),
            expected(
                "cloudkeel.dev/Programmed",
                "Programmed",
                "load balancer 7 of cloud fsn"
            ),
        ]
    );
}

#[test]
fn each_standing_leaves_just_its_own_conditions_and_settles() {
    let fresh = service(json!({}));
    let made = written(&fresh, &patch_entries(&fresh, &programmed(), now()));
    for (case, before, progress, expected) in [
        ("made", &fresh, programmed(), vec![ACCEPTED, PROGRAMMED]),
        ("waiting", &fresh, pending(), vec![ACCEPTED]),
        ("waiting again", &made, pending(), vec![ACCEPTED]),
        ("released", &made, Progress::Released, vec![]),
        ("released without any", &fresh, Progress::Released, vec![]),
    ] {
        let after = written(before, &patch_entries(before, &progress, now()));
        assert_eq!(kinds(&after), expected, "{case}");
        assert_eq!(cloud_on(&after).is_some(), !expected.is_empty(), "{case}");
        let later = now() + jiff::SignedDuration::from_secs(60);
        assert!(patch_entries(&after, &progress, later).is_empty(), "{case}");
    }
}

#[test]
fn another_message_keeps_the_time_of_the_transition() {
    let fresh = service(json!({}));
    let made = written(&fresh, &patch_entries(&fresh, &programmed(), now()));
    let moved = Progress::Programmed {
        cloud: "fsn".to_owned(),
        id: None,
    };
    let later = now() + jiff::SignedDuration::from_secs(60);
    let entries = patch_entries(&made, &moved, later);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["message"], "load balancer of cloud fsn");
    assert_eq!(entries[0]["lastTransitionTime"], "2027-01-15T08:00:00Z");
}
