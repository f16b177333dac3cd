//! Problems in user input, all of them at once.

use std::fmt;

use crate::{CloudError, REDACTED};

/// As much of a value is shown as tells which one it is.
const LONGEST_VALUE: usize = 200;

/// One wrong key: its name, its value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, with its place if it has one: `clouds[0].config.tokenFile`.
    pub key: String,
    /// Its value, unless that is a secret or missing.
    pub value: Option<String>,
    /// What is wrong or what would be right.
    pub message: String,
}

impl Problem {
    /// The value is not what the key takes.
    pub fn unexpected(
        key: impl Into<String>,
        value: impl Into<String>,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
            message: format!("expected {expected}"),
        }
    }

    /// As [`Problem::unexpected`], for a value that must not be shown.
    pub fn unexpected_secret(key: impl Into<String>, expected: impl fmt::Display) -> Self {
        Self::unexpected(key, REDACTED, expected)
    }

    /// Something else, such as a missing key or two that exclude each other.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = &self.value else {
            return write!(f, "{}: {}", self.key, self.message);
        };
        let shown = value.floor_char_boundary(LONGEST_VALUE);
        write!(f, "{}: {:?}", self.key, &value.get(..shown).unwrap_or(""))?;
        if shown < value.len() {
            write!(f, "… ({} bytes)", value.len())?;
        }
        write!(f, ": {}", self.message)
    }
}

impl From<Problem> for CloudError {
    fn from(problem: Problem) -> Self {
        Self::invalid("read settings", problem.to_string())
    }
}

/// Collects problems, so that a user sees all of them the first time.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// No problems.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Records one.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Records the problem of a failed read and continues without a value.
    pub fn note<T>(&mut self, read: Result<T, Problem>) -> Option<T> {
        read.map_err(|problem| self.push(problem)).ok()
    }

    /// Records all of another's, with a path before their keys.
    pub fn extend_under(&mut self, place: &str, others: Self) {
        self.0.extend(others.0.into_iter().map(|problem| Problem {
            key: format!("{place}.{}", problem.key),
            ..problem
        }));
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Problem> {
        self.0.iter()
    }

    /// `Ok` if nothing is wrong.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_key_value_and_what_would_be_right() {
        let problem = Problem::unexpected("retries", "many", "a whole number");
        assert_eq!(
            problem.to_string(),
            "retries: \"many\": expected a whole number"
        );
        let secret = Problem::unexpected_secret("token", "64 characters");
        assert_eq!(
            secret.to_string(),
            "token: \"[redacted]\": expected 64 characters"
        );
        let missing = Problem::new("token", "is required");
        assert_eq!(missing.to_string(), "token: is required");
    }

    #[test]
    fn of_a_huge_value_the_beginning_is_shown_and_still_what_would_be_right() {
        let problem = Problem::unexpected("retries", "9".repeat(200_000), "a whole number");
        let shown = problem.to_string();
        assert!(shown.starts_with("retries: \"999"), "{shown}");
        assert!(
            shown.ends_with("9\"… (200000 bytes): expected a whole number"),
            "{shown}"
        );
        assert!(shown.len() < 300, "{}", shown.len());
    }

    #[test]
    fn all_problems_are_reported_together_under_their_place() {
        let mut inner = Problems::new();
        inner.push(Problem::new("a", "is required"));
        assert_eq!(
            inner.note(Err::<(), _>(Problem::new("b", "is required"))),
            None
        );
        assert_eq!(inner.note(Ok(7)), Some(7));
        let mut outer = Problems::new();
        outer.extend_under("clouds[0]", inner);
        assert_eq!(
            outer.into_result().unwrap_err().to_string(),
            "clouds[0].a: is required\nclouds[0].b: is required"
        );
        assert_eq!(Problems::new().into_result(), Ok(()));
    }
}
