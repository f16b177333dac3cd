//! What a tier counts, and how many of it passed, failed or were skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Test,
    DocTest,
    /// A reader that is fuzzed.
    Target,
    /// A command that succeeds or does not.
    Check,
}

impl Unit {
    fn singular(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::DocTest => "doc test",
            Self::Target => "target",
            Self::Check => "check",
        }
    }

    /// `1 test` or `2 tests`.
    pub(crate) fn count(self, number: u64) -> String {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {}{plural}", thousands(number), self.singular())
    }
}

/// `1,234`
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Could not run here.
    pub(crate) skipped: u64,
}

impl Count {
    pub(crate) const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(crate) const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// The counts of a tier, one for each unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<Unit, Count>);

impl Tally {
    pub(crate) fn of(unit: Unit, count: Count) -> Self {
        Self([(unit, count)].into())
    }

    /// All units together.
    pub(crate) fn total(&self) -> Count {
        self.0.values().copied().fold(Count::default(), Add::add)
    }

    /// How many of a unit passed, failed or were skipped.
    #[cfg(test)]
    pub(crate) fn get(&self, unit: Unit) -> Count {
        self.0.get(&unit).copied().unwrap_or_default()
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (unit, count) in other.0 {
            let sum = self.0.entry(unit).or_default();
            *sum = *sum + count;
        }
    }
}

/// What passed, by unit: `14 doc tests, 1 check`.
impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|(unit, count)| unit.count(count.passed))
            .collect();
        formatter.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_added_apart_and_together() {
        let mut tally = Tally::of(Unit::DocTest, Count::ONE_PASSED);
        tally += Tally::of(Unit::Check, Count::ONE_PASSED);
        tally += Tally::of(Unit::DocTest, Count::ONE_PASSED);
        tally += Tally::of(Unit::DocTest, Count::ONE_FAILED);
        assert_eq!(tally.to_string(), "2 doc tests, 1 check");
        assert_eq!(tally.get(Unit::DocTest).failed, 1);
        let Count { passed, failed, .. } = tally.total();
        assert_eq!((passed, failed), (3, 1));
    }

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(Unit::Test.count(1_000), "1,000 tests");
    }
}
