//! The simulation itself: it repeats itself, it finds nothing in what we have, it meets every class of faults, and it
//! finds every bug that is planted.

use std::process::Command;

use cloudkeel_simulation::{
    Bug, FaultClass, FaultCounts, Plan, can_show, is_found, play, play_with,
};

/// Seeds that every run of the tests plays.
const SEEDS: u64 = 24;

/// A planted bug must be found within so many seeds that have what it needs.
const FOUND_WITHIN: usize = 60;

#[test]
#[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
fn the_same_seed_gives_the_same_history_to_the_letter() {
    for seed in [1, 2] {
        let plan = Plan::of_seed(seed);
        let first = play_with(seed, &plan, None, true).expect("a run");
        let second = play_with(seed, &plan, None, true).expect("a run");
        assert!(first.history.len() > 10, "{:?}", first.history);
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
#[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
fn a_seed_is_replayed_by_another_process_to_the_letter() {
    let replay = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloudkeel-simulation"));
        let output = command.args(["--replay", "2"]).output().expect("a replay");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let first = replay();
    assert!(first.lines().count() > 10, "{first}");
    assert_eq!(first, replay());
}

#[test]
#[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
fn no_seed_breaks_an_invariant_and_together_they_meet_every_class_of_faults() {
    let mut met = FaultCounts::new();
    for seed in 0..SEEDS {
        let outcome = play(seed, &Plan::of_seed(seed)).expect("a run");
        let broken: Vec<_> = outcome.violations.iter().map(ToString::to_string).collect();
        assert!(
            broken.is_empty(),
            "see it again: cargo xtask simulate --replay {seed}\n{broken:#?}"
        );
        assert!(outcome.steps > 1000, "{} requests", outcome.steps);
        for (class, times) in outcome.met {
            *met.entry(class).or_default() += times;
        }
    }
    println!("{met:?}\ncounted: {SEEDS} seeds");
    let missed = |class: &FaultClass| !met.contains_key(class);
    let missed: Vec<_> = FaultClass::ALL.into_iter().filter(missed).collect();
    assert_eq!(missed, [], "no seed met these");
}

#[test]
#[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
fn every_planted_bug_is_found_by_the_invariant_that_it_breaks() {
    for bug in Bug::ALL {
        let finds = |seed: &u64| {
            let outcome = play_with(*seed, &Plan::of_seed(*seed), Some(bug), false);
            is_found(bug, &outcome.expect("a run").violations)
        };
        let fitting = (0..).filter(|seed| can_show(bug, &Plan::of_seed(*seed)));
        let Some(seed) = fitting.take(FOUND_WITHIN).find(finds) else {
            panic!("{} is not found within {FOUND_WITHIN} seeds", bug.name());
        };
        println!("{} is found by seed {seed}", bug.name());
    }
    println!("counted: {} planted bugs", Bug::ALL.len());
}
