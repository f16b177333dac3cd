//! What a tier found.

use std::time::Duration;

use crate::count::{Count, Tally, Unit};
use crate::test_log::{Skipped, Tests};

/// What a tier found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Why it failed; `None` when it passed.
    pub(crate) problem: Option<String>,
    /// Why the whole tier could not run after all.
    pub(crate) skipped: Option<String>,
    /// Single tests that could not run.
    pub(crate) gaps: Vec<Skipped>,
    /// Tests that another tier runs.
    pub(crate) elsewhere: u64,
    /// What else was counted, such as `24 seeds`.
    pub(crate) counted: Vec<String>,
    /// How much of the time went into building.
    pub(crate) build: Duration,
}

impl Outcome {
    pub(crate) fn passed() -> Self {
        Self {
            tally: Tally::of(Unit::Check, Count::ONE_PASSED),
            ..Self::default()
        }
    }

    pub(crate) fn failed(problem: String) -> Self {
        Self {
            tally: Tally::of(Unit::Check, Count::ONE_FAILED),
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Something is missing that only showed when the tier began.
    pub(crate) fn skipped(reason: String) -> Self {
        Self {
            skipped: Some(reason),
            ..Self::default()
        }
    }

    /// Tests ran. They failed if one of them did, if their program ended with a `problem`, or if there was
    /// none at all.
    pub(crate) fn of_tests(unit: Unit, problem: Option<String>, tests: Tests) -> Self {
        let mut count = tests.count();
        let ran_none = count == Count::default();
        let problem = match problem {
            _ if count.failed > 0 => Some(format!("{} failed", unit.count(count.failed))),
            // A test that found something missing fails, and so does its program.
            Some(problem) => (tests.unmet == 0).then_some(problem),
            None => ran_none.then(|| "ran no test".to_owned()),
        };
        // What broke without a failing test (a compile error, say) must still show in the numbers.
        if problem.is_some() && count.failed == 0 {
            count.failed = 1;
        }
        Self {
            tally: Tally::of(unit, count),
            problem,
            gaps: tests.skipped,
            elsewhere: tests.elsewhere,
            counted: tests.counted,
            ..Self::default()
        }
    }

    /// Both outcomes as one; the first problem is the one worth reading.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tally += other.tally;
        self.problem = self.problem.or(other.problem);
        self.skipped = self.skipped.or(other.skipped);
        self.gaps.extend(other.gaps);
        self.elsewhere += other.elsewhere;
        self.counted.extend(other.counted);
        self.build += other.build;
        self
    }

    /// The same, with the time that the build took.
    pub(crate) fn built_in(mut self, time: Duration) -> Self {
        self.build += time;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(passed: u64, failed: u64, skipped: u64) -> Tests {
        let gap = Skipped {
            test: "a".to_owned(),
            reason: "needs Go".to_owned(),
        };
        Tests {
            passed,
            failed,
            skipped: (0..skipped).map(|_| gap.clone()).collect(),
            unmet: skipped,
            ..Tests::default()
        }
    }

    #[test]
    fn a_test_run_is_classified_by_command_tests_and_emptiness() {
        let died = || Some("`cargo test` ended with 101".to_owned());
        for (case, problem, counted, expected) in [
            ("all green", None, tests(3, 0, 0), (None, 0)),
            (
                "one red",
                died(),
                tests(2, 1, 0),
                (Some("1 test failed"), 1),
            ),
            (
                "two red",
                died(),
                tests(2, 2, 0),
                (Some("2 tests failed"), 2),
            ),
            (
                "no build",
                died(),
                tests(0, 0, 0),
                (Some("`cargo test` ended with 101"), 1),
            ),
            (
                "nothing ran",
                None,
                tests(0, 0, 0),
                (Some("ran no test"), 1),
            ),
            (
                "red though it exits well",
                None,
                tests(1, 1, 0),
                (Some("1 test failed"), 1),
            ),
            ("something is missing", died(), tests(4, 0, 2), (None, 0)),
            (
                "missing and red",
                died(),
                tests(4, 1, 2),
                (Some("1 test failed"), 1),
            ),
            (
                "ignored and no build",
                died(),
                Tests {
                    unmet: 0,
                    ..tests(0, 0, 1)
                },
                (Some("`cargo test` ended with 101"), 1),
            ),
        ] {
            let outcome = Outcome::of_tests(Unit::Test, problem, counted);
            let found = (outcome.problem.as_deref(), outcome.tally.total().failed);
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn two_outcomes_add_up_and_keep_the_first_problem() {
        let both = Outcome::failed("first".into()).and(Outcome::failed("second".into()));
        assert_eq!(both.problem.as_deref(), Some("first"));
        assert_eq!(both.tally.get(Unit::Check).failed, 2);
        let passed = Outcome::passed().and(Outcome::passed());
        assert_eq!(passed.tally.get(Unit::Check).passed, 2);
    }
}
