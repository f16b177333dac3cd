//! How many tests passed, failed or were ignored, read from what `cargo test` prints.

use std::iter::Sum;
use std::ops::Add;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Count {
    pub(crate) const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        ignored: 0,
    };
    pub(crate) const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        ignored: 0,
    };

    /// Whether any test ran; an ignored test did not.
    pub(crate) fn ran_any(self) -> bool {
        self.passed + self.failed > 0
    }
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

/// Reads the output of `cargo test` line by line.
///
/// A test binary that dies before its result line (an abort, a stack overflow) counts as one
/// failure: its tests cannot be counted any more, and must not vanish either.
#[derive(Debug, Default)]
pub(crate) struct TestLog {
    count: Count,
    running: bool,
}

impl TestLog {
    pub(crate) fn read(&mut self, line: &str) {
        let line = without_escapes(line);
        let line = line.trim_end();
        if is_start(line) {
            self.bury_the_unfinished();
            self.running = true;
        } else if let Some(count) = result(line) {
            self.count = self.count + count;
            self.running = false;
        }
    }

    pub(crate) fn finish(mut self) -> Count {
        self.bury_the_unfinished();
        self.count
    }

    fn bury_the_unfinished(&mut self) {
        if self.running {
            self.count.failed += 1;
            self.running = false;
        }
    }
}

/// `running 3 tests`
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| {
            rest.strip_suffix(" tests")
                .or_else(|| rest.strip_suffix(" test"))
        })
        .is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn result(line: &str) -> Option<Count> {
    let rest = line.strip_prefix("test result: ")?;
    let numbers = rest
        .strip_prefix("ok. ")
        .or_else(|| rest.strip_prefix("FAILED. "))?;
    let number = |name: &str| {
        numbers
            .split("; ")
            .find_map(|part| part.strip_suffix(name)?.trim().parse::<u64>().ok())
    };
    Some(Count {
        passed: number("passed")?,
        failed: number("failed")?,
        ignored: number("ignored")?,
    })
}

/// The line without terminal colours (`ESC [ … letter`).
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            let _ = characters.find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(output: &str) -> Count {
        let mut log = TestLog::default();
        output.lines().for_each(|line| log.read(line));
        log.finish()
    }

    const OK: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
    const FAILED: &str = "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s";

    #[test]
    fn result_lines_are_summed_and_everything_else_is_prose() {
        let c = |passed, failed, ignored| Count {
            passed,
            failed,
            ignored,
        };
        for (case, output, expected) in [
            ("nothing", String::new(), c(0, 0, 0)),
            ("one binary", format!("running 4 tests\ntest a ... ok\n\n{OK}\n"), c(3, 0, 1)),
            ("two", format!("running 4 tests\n{OK}\nrunning 6 tests\n{FAILED}"), c(5, 4, 1)),
            ("an empty binary", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s".to_owned(), c(0, 0, 0)),
            ("quoted by a test", format!("  left: \"{OK}\"\nsaid: {OK}"), c(0, 0, 0)),
            ("cut short", "test result: ok. 3 passed; 0 fai".to_owned(), c(0, 0, 0)),
            ("in colour", format!("running 1 test\n{}", OK.replace("ok", "\x1b[32mok\x1b[m")), c(3, 0, 1)),
            ("windows line ends", format!("running 1 test\r\n{OK}\r\n"), c(3, 0, 1)),
        ] {
            assert_eq!(count(&output), expected, "{case}");
        }
    }

    #[test]
    fn a_binary_that_died_before_its_result_is_one_failure() {
        let died = format!("running 4 tests\ntest a ... ok\nrunning 4 tests\n{OK}");
        assert_eq!(
            count(&died),
            Count {
                passed: 3,
                failed: 1,
                ignored: 1
            }
        );
        assert_eq!(count("running 1 test\n"), Count::ONE_FAILED);
    }

    #[test]
    fn ignored_tests_did_not_run() {
        assert!(
            !Count {
                passed: 0,
                failed: 0,
                ignored: 7
            }
            .ran_any()
        );
        assert!(Count::ONE_PASSED.ran_any() && Count::ONE_FAILED.ran_any());
    }
}
