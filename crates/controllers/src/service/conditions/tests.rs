use serde_json::json;

use super::super::fixtures::{now, service};
use super::*;

fn programmed() -> Progress {
    Progress::Programmed {
        cloud: "fsn".to_owned(),
        id: Some("7".to_owned()),
        health: None,
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
        health: None,
    };
    let later = now() + jiff::SignedDuration::from_secs(60);
    let entries = patch_entries(&made, &moved, later);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["message"], "load balancer of cloud fsn");
    assert_eq!(entries[0]["lastTransitionTime"], "2027-01-15T08:00:00Z");
}

#[test]
fn a_failure_is_written_once_and_corrected_when_it_ends() {
    let failed = |message: &str| Progress::Failed {
        cloud: "fsn".to_owned(),
        rejected: None,
        may_exist: true,
        message: message.to_owned(),
    };
    let fresh = service(json!({}));
    let made = written(&fresh, &patch_entries(&fresh, &programmed(), now()));
    let broken = written(&made, &patch_entries(&made, &failed("a"), now()));
    for (case, before, progress, expected) in [
        ("true conditions alone", &fresh, programmed(), false),
        ("nothing differs", &made, programmed(), false),
        ("it fails", &made, failed("a"), true),
        (
            "it fails, and nothing was said yet",
            &fresh,
            failed("a"),
            true,
        ),
        ("it fails again", &broken, failed("a"), false),
        ("for another reason", &broken, failed("b"), true),
        ("it works again", &broken, programmed(), true),
        ("it is being tried", &broken, pending(), false),
        ("it goes", &broken, Progress::Released, true),
        (
            "it goes, and all was well",
            &made,
            Progress::Released,
            false,
        ),
    ] {
        assert_eq!(is_news(before, &progress), expected, "{case}");
    }
    assert_eq!(cloud_on(&broken), Some("fsn"));
}

#[test]
fn only_an_outage_of_all_targets_is_reported_and_its_end() {
    let health = |healthy, unhealthy, unknown| HealthSummary {
        healthy,
        unhealthy,
        unknown,
    };
    let with = |health| Progress::Programmed {
        cloud: "fsn".to_owned(),
        id: Some("7".to_owned()),
        health: Some(health),
    };
    let fresh = service(json!({}));
    let made = written(&fresh, &patch_entries(&fresh, &programmed(), now()));
    let out = written(&made, &patch_entries(&made, &with(health(0, 2, 0)), now()));
    assert!(is_false(&out, TARGETS_HEALTHY));
    for (case, before, health, expected) in [
        ("some serve", &made, health(1, 1, 0), false),
        ("not checked yet", &made, health(0, 1, 1), false),
        ("no targets", &made, health(0, 0, 0), false),
        ("all fail", &made, health(0, 2, 0), true),
        ("all still fail", &out, health(0, 2, 0), false),
        ("checked anew", &out, health(0, 0, 2), false),
        ("one serves again", &out, health(1, 1, 0), true),
    ] {
        assert_eq!(is_news(before, &with(health)), expected, "{case}");
    }
    let well = written(&out, &patch_entries(&out, &with(health(2, 0, 0)), now()));
    assert!(!is_false(&well, TARGETS_HEALTHY) && find(&well, TARGETS_HEALTHY).is_some());
}
