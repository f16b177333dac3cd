//! The simulation itself: it repeats itself, it finds nothing in what we have, and it finds every bug
//! that is planted.

use std::process::Command;

use cloudkeel_simulation::{Bug, Plan, play, play_with};

/// Seeds that every run of the tests plays.
const SEEDS: u64 = 24;

/// A planted bug must be found within so many seeds.
const FOUND_WITHIN: u64 = 60;

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
fn no_seed_breaks_a_rule() {
    for seed in 0..SEEDS {
        let verdict = play(seed, &Plan::of_seed(seed)).expect("a run");
        let broken: Vec<_> = verdict.violations.iter().map(ToString::to_string).collect();
        assert!(
            broken.is_empty(),
            "see it again: cargo xtask simulate --replay {seed}\n{broken:#?}"
        );
        assert!(verdict.steps > 1000, "{} requests", verdict.steps);
    }
}

#[test]
#[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
fn every_planted_bug_is_found() {
    for bug in Bug::ALL {
        let is_found = |seed: &u64| {
            let verdict = play_with(*seed, &Plan::of_seed(*seed), Some(bug), false);
            !verdict.expect("a run").violations.is_empty()
        };
        let found = (0..FOUND_WITHIN).find(is_found);
        let Some(seed) = found else {
            panic!("{} is not found within {FOUND_WITHIN} seeds", bug.name());
        };
        println!("{} is found by seed {seed}", bug.name());
    }
}
