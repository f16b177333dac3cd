//! Each sin is caught by the check that is about it.

use cloudkeel_testkit::conformance::{Verdict, names, run_some};

use crate::sin::Sin;
use crate::wrong::setup;

const CAUGHT_BY: &[(Sin, &[&str])] = &[
    (
        Sin::TakesErrorsForGone,
        &[
            "instances/unknown-when-unauthenticated",
            "instances/unknown-when-denied",
            "instances/unknown-when-throttled",
            "instances/unknown-on-server-errors",
            "instances/unknown-on-time-outs",
            "instances/unknown-on-garbage",
        ],
    ),
    (
        Sin::TakesAbsenceFromAListForGone,
        &["instances/other-account-proves-nothing"],
    ),
    (Sin::NeedsNoWitness, &["instances/no-proof-alone"]),
    (
        Sin::BelievesEmptyLists,
        &["instances/empty-list-proves-nothing"],
    ),
    (Sin::NeedsAnId, &["instances/found-by-name"]),
    (
        Sin::MatchesByPrefix,
        &[
            "instances/not-by-a-similar-name",
            "instances/two-of-a-name-are-unknown",
        ],
    ),
    (
        Sin::AsksByNameNotById,
        &[
            "instances/gone-under-a-reused-name",
            "instances/gone-with-proof",
        ],
    ),
    (
        Sin::SweepsWhatItGets,
        &[
            "instances/truncated-page-is-no-sweep",
            "instances/lost-page-is-no-sweep",
            "instances/unknown-on-server-errors",
        ],
    ),
    (
        Sin::ShowsEverythingAsRunning,
        &["instances/shut-down-exists"],
    ),
    (Sin::ForgetsAddresses, &["instances/found-by-id"]),
    (
        Sin::AsksForEachMachineInASweep,
        &["instances/sweep-costs-its-pages"],
    ),
    (
        Sin::AsksAboutForeignIds,
        &[
            "instances/foreign-id-costs-nothing",
            "instances/look-ups-cost-one-call-each",
        ],
    ),
    (
        Sin::ForgetsWhatASweepKnows,
        &["instances/sweep-equals-look-ups"],
    ),
    (
        Sin::CannotBeEmpty,
        &["instances/empty-account-is-an-empty-sweep"],
    ),
    (
        Sin::NamesItsScopeAnew,
        &["instances/scope-is-the-same-everywhere"],
    ),
    (Sin::Panics, &["instances/sweep-equals-look-ups"]),
    (Sin::Hangs, &["instances/sweep-equals-look-ups"]),
    (
        Sin::MakesASecondOne,
        &["load-balancers/ensured-twice-is-one"],
    ),
    (
        Sin::MarksByProcess,
        &[
            "load-balancers/restart-changes-nothing",
            "load-balancers/two-at-once-make-one",
        ],
    ),
    (
        Sin::WritesEveryTime,
        &[
            "load-balancers/ensured-twice-is-one",
            "load-balancers/restart-changes-nothing",
            "load-balancers/port-added",
        ],
    ),
    (
        Sin::ForgetsATarget,
        &[
            "load-balancers/created",
            "load-balancers/targets-added",
            "load-balancers/targets-removed",
            "load-balancers/targets-replaced",
        ],
    ),
    (
        Sin::KeepsOldPorts,
        &["load-balancers/port-removed", "load-balancers/port-changed"],
    ),
    (
        Sin::IgnoresNodePorts,
        &[
            "load-balancers/node-port-changed",
            "load-balancers/ports-swapped",
        ],
    ),
    (
        Sin::ChecksEverythingByTcp,
        &[
            "load-balancers/check-by-traffic-policy",
            "load-balancers/check-by-http",
            "load-balancers/check-per-port",
        ],
    ),
    (Sin::IgnoresSourceRanges, &["load-balancers/source-ranges"]),
    (
        Sin::KnowsPortsAndTargetsOnly,
        &[
            "load-balancers/mixed-protocols",
            "load-balancers/affinity",
            "load-balancers/proxy-protocol",
            "load-balancers/algorithm",
            "load-balancers/internal",
            "load-balancers/chosen-address",
            "load-balancers/dual-stack",
            "load-balancers/name",
            "load-balancers/size",
            "load-balancers/hostname",
            "load-balancers/drain",
            "load-balancers/targets-by-address",
        ],
    ),
    (
        Sin::IgnoresAdoption,
        &[
            "load-balancers/adopted-on-request",
            "load-balancers/absent-not-adopted",
        ],
    ),
    (
        Sin::AdoptsNamesakes,
        &[
            "load-balancers/foreign-namesake-refused",
            "load-balancers/unmarked-namesake-refused",
            "load-balancers/foreign-not-adopted",
        ],
    ),
    (
        Sin::DeletesNamesakes,
        &[
            "load-balancers/foreign-namesake-not-deleted",
            "load-balancers/unmarked-namesake-not-deleted",
            "load-balancers/services-do-not-meet",
        ],
    ),
    (
        Sin::LeaksAfterErrors,
        &[
            "load-balancers/create-survives-outages",
            "load-balancers/change-survives-outages",
        ],
    ),
    (
        Sin::StartsAnewAfterErrors,
        &["load-balancers/create-survives-lost-answers"],
    ),
    (
        Sin::LeaksAfterFaults,
        &[
            "load-balancers/create-survives-silence",
            "load-balancers/create-survives-throttling",
            "load-balancers/change-survives-lost-answers",
            "load-balancers/delete-survives-lost-answers",
        ],
    ),
    (
        Sin::LeaksWhenDropped,
        &["load-balancers/dropped-anywhere-comes-right"],
    ),
    (
        Sin::TakesErrorsForAbsence,
        &[
            "load-balancers/delete-survives-outages",
            "load-balancers/blind-looks-change-nothing",
        ],
    ),
    (
        Sin::SaysGoneAndDoesNothing,
        &["load-balancers/deleted-without-leaks"],
    ),
    (
        Sin::ClaimsEveryRemoval,
        &["load-balancers/only-agreed-removals-are-acknowledged"],
    ),
    (
        Sin::ClaimsNoRemoval,
        &["load-balancers/only-agreed-removals-are-acknowledged"],
    ),
    (
        Sin::DeletesBlindly,
        &[
            "load-balancers/deleted-twice",
            "load-balancers/never-made-is-gone",
        ],
    ),
    (Sin::HelpsOnlyOnce, &["load-balancers/made-again"]),
    (Sin::DeletesProtected, &["load-balancers/protected-is-kept"]),
    (
        Sin::DeletesWhatItReleases,
        &[
            "load-balancers/released-stays",
            "load-balancers/released-may-be-adopted",
        ],
    ),
    (
        Sin::ReleasesNothing,
        &[
            "load-balancers/released-stays",
            "load-balancers/released-may-be-adopted",
        ],
    ),
    (
        Sin::DoesWhatItPlans,
        &["load-balancers/plan-changes-nothing"],
    ),
    (
        Sin::SurveysNothing,
        &[
            "load-balancers/drift-is-repaired",
            "load-balancers/plan-changes-nothing",
        ],
    ),
    (Sin::SurveysTwice, &["load-balancers/survey-is-cheap"]),
    (Sin::OwnsNothing, &["load-balancers/owned-are-listed"]),
    (
        Sin::MakesAnewWhatIsMissing,
        &[
            "load-balancers/missing-is-not-made-anew",
            "load-balancers/blind-looks-change-nothing",
        ],
    ),
    (
        Sin::OneBadTargetBlocksAll,
        &[
            "load-balancers/destroyed-target-does-not-block",
            "load-balancers/target-without-id-does-not-block",
        ],
    ),
    (Sin::NeedsATarget, &["load-balancers/no-targets"]),
    (Sin::SaysItCannotDoUdp, &["load-balancers/udp"]),
    (Sin::TakesOverRoutes, &["routes/taken-network-is-refused"]),
    (
        Sin::HidesForeignRoutes,
        &["routes/foreign-are-listed-and-kept"],
    ),
    (
        Sin::AnswersOnce,
        &["routes/created-and-listed", "routes/one-result-each"],
    ),
    (Sin::DeletesAllRoutes, &["routes/deleted"]),
    (Sin::MissesWhatIsDeleted, &["routes/deleted-twice"]),
    (Sin::MakesBeforeItDeletes, &["routes/replaced"]),
    (Sin::RefusesIpv6, &["routes/ipv6"]),
    (
        Sin::LeaksRoutes,
        &["routes/survive-outages", "routes/survive-lost-answers"],
    ),
    (Sin::MakesRoutesAgain, &["routes/created-twice"]),
    (
        Sin::ListsNothingOnErrors,
        &["routes/blind-list-is-an-error"],
    ),
];

#[tokio::test(start_paused = true)]
async fn every_sin_fails_the_checks_that_are_about_it() {
    for (sin, checks) in CAUGHT_BY {
        let report = run_some(&setup(*sin), |name| checks.contains(&name)).await;
        assert_eq!(
            report.results.len(),
            checks.len(),
            "{sin:?}: a check is missing"
        );
        for result in &report.results {
            let failed = matches!(result.verdict, Verdict::Failed { .. });
            assert!(failed, "{sin:?} is not caught:\n{report}");
        }
    }
}

/// The simulated cloud has no SCTP, so nothing about it can be seen to fail there.
const CANNOT_BE_SHOWN: &[&str] = &["load-balancers/sctp"];

#[test]
fn every_check_is_known_to_fail_for_a_reason() {
    let caught = |name: &&str| CAUGHT_BY.iter().any(|(_, checks)| checks.contains(name));
    let unproven: Vec<_> = names().filter(|name| !caught(name)).collect();
    assert_eq!(unproven, CANNOT_BE_SHOWN);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_panics_or_hangs_says_so_and_stops_no_other() {
    for (sin, words) in [(Sin::Panics, "panicked: a bug"), (Sin::Hangs, "it hung")] {
        let report = run_some(&setup(sin), |name| name.starts_with("instances/")).await;
        let all = names().filter(|name| name.starts_with("instances/"));
        assert_eq!(report.results.len(), all.count());
        let swept = report.verdict("instances/sweep-equals-look-ups").unwrap();
        let Verdict::Failed { why } = swept else {
            panic!("{sin:?}: {swept:?}");
        };
        assert!(why.contains(words), "{why}");
        let found = report.verdict("instances/found-by-id");
        assert_eq!(found, Some(&Verdict::Passed), "{report}");
    }
}
