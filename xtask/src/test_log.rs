//! Reads what test programs print: how many tests passed and failed, and why others did not run.
//!
//! Three kinds of tests do not run: those that another tier runs (`#[ignore = "… --tier page"]`), those that
//! found something missing (they fail after a line that begins with [`UNMET`]), and those that a program
//! calls ignored for another reason. Only the first kind is no gap.

use std::mem;

use crate::count::Count;

/// How the test kit begins the line that says what a test misses on this machine.
pub(crate) const UNMET: &str = "unmet requirement: ";

/// How an `#[ignore]` names the tier that runs the test.
pub(crate) const TIER_FLAG: &str = "cargo xtask test --tier ";

/// How an `#[ignore]` begins if it marks no test, but a process that a test starts.
pub(crate) const NO_TEST: &str = "not a test: ";

/// How a test program begins a line that says what else it counted: `counted: 24 seeds`.
const COUNTED: &str = "counted: ";

/// What a test program, or several, did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Ignored here, because another tier runs them.
    pub(crate) elsewhere: u64,
    pub(crate) skipped: Vec<Skipped>,
    /// How many of these failed because something is missing, which makes their program fail too.
    pub(crate) unmet: u64,
    /// What else it counted, such as `24 seeds`.
    pub(crate) counted: Vec<String>,
}

/// A test that did not run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) test: String,
    pub(crate) reason: String,
}

impl Tests {
    pub(crate) fn count(&self) -> Count {
        Count {
            passed: self.passed,
            failed: self.failed,
            skipped: self.skipped.len() as u64,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.elsewhere += other.elsewhere;
        self.skipped.extend(other.skipped);
        self.unmet += other.unmet;
        self.counted.extend(other.counted);
    }
}

/// Reads the output of test programs line by line.
///
/// A test program that dies before its result line (an abort, a stack overflow) counts as one
/// failure: its tests cannot be counted any more, and must not vanish either.
#[derive(Debug, Default)]
pub(crate) struct TestLog {
    tests: Tests,
    program: Program,
}

/// What is known of the program whose output is being read.
#[derive(Debug, Default)]
struct Program {
    running: bool,
    ignored: Vec<Skipped>,
    unmet: Vec<Skipped>,
    /// Whether what follows is the output of tests that failed.
    in_failures: bool,
    /// The failed test whose output is being read.
    failure: Option<String>,
}

impl TestLog {
    pub(crate) fn read(&mut self, line: &str) {
        let line = without_escapes(line);
        let line = line.trim_end();
        if is_start(line) {
            self.end_program();
            self.program.running = true;
        } else if let Some(result) = Totals::read(line) {
            self.add(&result);
        } else if let Some(counted) = line.strip_prefix(COUNTED) {
            self.tests.counted.push(counted.to_owned());
        } else {
            self.program.read(line);
        }
    }

    pub(crate) fn finish(mut self) -> Tests {
        self.end_program();
        self.tests
    }

    /// A program that is still running here has died.
    fn end_program(&mut self) {
        if mem::take(&mut self.program).running {
            self.tests.failed += 1;
        }
    }

    fn add(&mut self, totals: &Totals) {
        let Program { ignored, unmet, .. } = mem::take(&mut self.program);
        let named = ignored.len() as u64;
        let unmet_count = unmet.len() as u64;
        let (no_gap, gaps): (Vec<Skipped>, Vec<Skipped>) = ignored
            .into_iter()
            .partition(|test| test.reason.contains(TIER_FLAG) || test.reason.starts_with(NO_TEST));
        self.tests.passed += totals.passed;
        self.tests.failed += totals.failed.saturating_sub(unmet_count);
        self.tests.elsewhere += no_gap.len() as u64;
        self.tests.skipped.extend(gaps);
        self.tests.skipped.extend(unmet);
        self.tests.unmet += unmet_count;
        for _ in named..totals.ignored {
            self.tests.skipped.push(Skipped {
                test: "a test".to_owned(),
                reason: "ignored without a reason".to_owned(),
            });
        }
    }
}

impl Program {
    fn read(&mut self, line: &str) {
        if let Some(ignored) = ignored(line) {
            self.ignored.push(ignored);
        } else if line == "failures:" {
            self.in_failures = true;
        } else if let Some(name) = heading(line) {
            self.failure = self.in_failures.then(|| name.to_owned());
        } else if let (Some(reason), Some(_)) = (line.strip_prefix(UNMET), &self.failure) {
            // Once is enough: a test may ask for several programs.
            if let Some(test) = self.failure.take() {
                let reason = format!("needs {reason}");
                self.unmet.push(Skipped { test, reason });
            }
        }
    }
}

/// `test NAME ... ignored, REASON`
fn ignored(line: &str) -> Option<Skipped> {
    let (test, rest) = line.strip_prefix("test ")?.rsplit_once(" ... ignored")?;
    let reason = match rest.strip_prefix(", ") {
        Some(reason) => reason,
        None if rest.is_empty() => "ignored without a reason",
        None => return None,
    };
    Some(Skipped {
        test: test.to_owned(),
        reason: reason.to_owned(),
    })
}

/// `---- NAME stdout ----`: what follows was printed by that test.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
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

/// The numbers of a result line.
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let numbers = rest
            .strip_prefix("ok. ")
            .or_else(|| rest.strip_prefix("FAILED. "))?;
        let number = |name: &str| {
            numbers
                .split("; ")
                .find_map(|part| part.strip_suffix(name)?.trim().parse::<u64>().ok())
        };
        Some(Self {
            passed: number("passed")?,
            failed: number("failed")?,
            ignored: number("ignored")?,
        })
    }
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
mod tests;
