//! The results of health checks, and how they are shown to clients that may or may not know the reasons.

use std::fmt::Write as _;

use super::Endpoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownResult {
    Passed,
    Failed,
    Excluded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Examined {
    pub(super) name: String,
    pub(super) result: ShownResult,
}

/// The results of an endpoint's checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    endpoint: Endpoint,
    examined: Vec<Examined>,
    /// Names that were excluded, but belong to no check.
    unknown: Vec<String>,
    /// Notes that fail nothing.
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(endpoint: Endpoint, examined: Vec<Examined>, excluded: &[String]) -> Self {
        let is_known = |name: &String| examined.iter().any(|check| check.name == *name);
        let mut unknown: Vec<_> = excluded
            .iter()
            .filter(|name| !is_known(name))
            .cloned()
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        Self {
            endpoint,
            examined,
            unknown,
            notes: Vec::new(),
        }
    }

    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        let failed = |check: &Examined| check.result == ShownResult::Failed;
        !self.examined.iter().any(failed)
    }

    /// The body of the response. It names every failed check, but never why it failed: no authorization is needed.
    pub fn body(&self, verbose: bool) -> String {
        let endpoint = self.endpoint.as_str();
        match (self.passed(), verbose) {
            (true, false) => "ok".to_owned(),
            (true, true) => format!("{}{endpoint} check passed\n", self.lines()),
            (false, _) => format!("{}{endpoint} check failed\n", self.lines()),
        }
    }

    fn lines(&self) -> String {
        let mut lines = String::new();
        for Examined { name, result } in &self.examined {
            // Writing to a String cannot fail.
            let _ = match result {
                ShownResult::Passed => writeln!(lines, "[+]{name} ok"),
                ShownResult::Excluded => writeln!(lines, "[+]{name} excluded: ok"),
                ShownResult::Failed => writeln!(lines, "[-]{name} failed: reason withheld"),
            };
        }
        for note in &self.notes {
            let _ = writeln!(lines, "note: {note}");
        }
        if !self.unknown.is_empty() {
            let names: Vec<_> = self
                .unknown
                .iter()
                .map(|name| format!("{name:?}"))
                .collect();
            let _ = writeln!(
                lines,
                "warn: some health checks cannot be excluded: no matches for {}",
                names.join(",")
            );
        }
        lines
    }
}
