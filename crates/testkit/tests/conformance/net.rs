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
    (Sin::MatchesByPrefix, &["instances/not-by-a-similar-name"]),
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
    (Sin::DeletesProtected, &["load-balancers/protected-is-kept"]),
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
    (
        Sin::MakesAnewWhatIsMissing,
        &[
            "load-balancers/missing-is-not-made-anew",
            "load-balancers/blind-looks-change-nothing",
        ],
    ),
    (
        Sin::OneBadTargetBlocksAll,
        &["load-balancers/target-without-id-does-not-block"],
    ),
    (Sin::SaysItCannotDoUdp, &["load-balancers/udp"]),
    (Sin::TakesOverRoutes, &["routes/taken-network-is-refused"]),
    (
        Sin::HidesForeignRoutes,
        &["routes/foreign-are-listed-and-kept"],
    ),
    (Sin::AnswersOnce, &["routes/created-and-listed"]),
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
