//! Each mutant is caught by the checks that are about it, and each check catches one.

use std::path::Path;

use cloudkeel_testkit::conformance::{Verdict, compare_mutants_with_page, names, run, run_some};

use crate::caught_by::CAUGHT_BY;
use crate::faulty::adapter;
use crate::mutant::Mutant;

#[tokio::test(start_paused = true)]
async fn the_provider_without_a_mutation_passes_every_check() {
    let report = run(&adapter(Mutant::Correct)).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.gaps().count(), 0, "{report}");
}

#[tokio::test(start_paused = true)]
async fn every_mutant_fails_the_checks_that_are_about_it() {
    for (mutant, checks) in CAUGHT_BY {
        let report = run_some(&adapter(*mutant), |name| checks.contains(&name)).await;
        assert_eq!(
            report.results.len(),
            checks.len(),
            "{mutant:?}: a check is missing"
        );
        for result in &report.results {
            let failed = matches!(result.verdict, Verdict::Failed { .. });
            assert!(failed, "{mutant:?} is not caught:\n{report}");
        }
    }
}

#[test]
fn every_check_catches_a_mutant_and_the_page_shows_it() {
    let caught = |name: &&str| CAUGHT_BY.iter().any(|(_, checks)| checks.contains(name));
    let unproven: Vec<_> = names().filter(|name| !caught(name)).collect();
    assert!(unproven.is_empty(), "no mutant fails {unproven:?}");
    let rows = CAUGHT_BY.iter();
    let rows: Vec<_> = rows
        .map(|(mutant, checks)| (format!("{mutant:?}"), checks.to_vec()))
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    if let Err(stale) = compare_mutants_with_page(&rows, &page) {
        panic!("{stale}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_panics_or_hangs_says_so_and_stops_no_other() {
    for (mutant, message) in [
        (Mutant::Panics, "panicked: a bug"),
        (Mutant::Hangs, "it hung"),
    ] {
        let report = run_some(&adapter(mutant), |name| name.starts_with("instances/")).await;
        let all = names().filter(|name| name.starts_with("instances/"));
        assert_eq!(report.results.len(), all.count());
        let listed = report.verdict("instances/list-equals-lookups").unwrap();
        let Verdict::Failed { why } = listed else {
            panic!("{mutant:?}: {listed:?}");
        };
        assert!(why.contains(message), "{why}");
        let found = report.verdict("instances/found-by-id");
        assert_eq!(found, Some(&Verdict::Passed), "{report}");
    }
}
