//! How a provider did.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Verdict {
    /// The provider does this right.
    Passed,
    /// It does not.
    Failed {
        /// What is wrong.
        why: String,
    },
    /// It does not have to: the adapter has declared it.
    Gap {
        /// The declaration.
        why: String,
    },
}

impl Verdict {
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "FAILED",
            Self::Gap { .. } => "gap",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Failed { why } | Self::Gap { why } => why,
        }
    }
}

/// One check and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// Its stable name, such as `instances/found-by-id`.
    pub name: &'static str,
    /// What a provider has to do.
    pub about: &'static str,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How a provider did in all checks. Displayed as a table of aligned text; also as Markdown and JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The provider's name.
    pub provider: String,
    /// Every check, in their order.
    pub results: Vec<CheckResult>,
    /// How long all of them took.
    #[serde(skip)]
    pub took: Duration,
}

impl Report {
    /// Whether nothing failed.
    pub fn is_clean(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CheckResult> {
        let failed = |result: &&CheckResult| matches!(result.verdict, Verdict::Failed { .. });
        self.results.iter().filter(failed)
    }

    /// The checks that are declared as gaps.
    pub fn gaps(&self) -> impl Iterator<Item = &CheckResult> {
        let gap = |result: &&CheckResult| matches!(result.verdict, Verdict::Gap { .. });
        self.results.iter().filter(gap)
    }

    /// How the check of this name ended.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        let mut results = self.results.iter();
        let found = results.find(|result| result.name == name)?;
        Some(&found.verdict)
    }

    fn summary(&self) -> String {
        let (all, gaps, failed) = (
            self.results.len(),
            self.gaps().count(),
            self.failures().count(),
        );
        let passed = all - gaps - failed;
        let gaps = if gaps == 1 {
            "1 gap".to_owned()
        } else {
            format!("{gaps} gaps")
        };
        format!("{all} checks: {passed} passed, {gaps}, {failed} failed")
    }

    /// The summary, and a Markdown table with a row for each check that did not pass.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("{}.\n", self.summary());
        let not_passed = |result: &&CheckResult| result.verdict != Verdict::Passed;
        let rows: Vec<_> = self.results.iter().filter(not_passed).collect();
        if !rows.is_empty() {
            text.push_str("\n| check | result |\n|---|---|\n");
        }
        for result in rows {
            let why = result.verdict.why().replace('|', "\\|").replace('\n', " ");
            let (name, word) = (result.name, result.verdict.word());
            let _ = writeln!(text, "| `{name}` | {word}: {why} |");
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |result: &CheckResult| result.name.len();
        let name = self.results.iter().map(width).max().unwrap_or(0);
        let (summary, took) = (self.summary(), self.took.as_secs_f32());
        writeln!(f, "{}: {summary} in {took:.1}s", self.provider)?;
        for result in &self.results {
            let (word, why) = (result.verdict.word(), result.verdict.why());
            let line = format!("{:name$}  {word:6}  {why}", result.name);
            writeln!(f, "{}", line.trim_end().replace('\n', "\n    "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let result = |name, verdict| CheckResult {
            name,
            about: "it does",
            verdict,
        };
        let why = |why: &str| why.to_owned();
        Report {
            provider: "toy".into(),
            results: vec![
                result("a/short", Verdict::Passed),
                result(
                    "a/much-longer",
                    Verdict::Failed {
                        why: why("no | not at all"),
                    },
                ),
                result("b/udp", Verdict::Gap { why: why("no UDP") }),
            ],
            took: Duration::from_millis(1_500),
        }
    }

    #[test]
    fn text_is_aligned() {
        assert_eq!(
            report().to_string(),
            "toy: 3 checks: 1 passed, 1 gap, 1 failed in 1.5s\n\
             a/short        passed\n\
             a/much-longer  FAILED  no | not at all\n\
             b/udp          gap     no UDP\n"
        );
    }

    #[test]
    fn markdown_has_a_row_for_each_check_that_did_not_pass() {
        assert_eq!(
            report().to_markdown(),
            "3 checks: 1 passed, 1 gap, 1 failed.\n\n\
             | check | result |\n|---|---|\n\
             | `a/much-longer` | FAILED: no \\| not at all |\n\
             | `b/udp` | gap: no UDP |\n"
        );
    }

    #[test]
    fn programs_get_json_and_answers() {
        let report = report();
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["provider"], "toy");
        assert_eq!(json["results"][1]["verdict"], "failed");
        assert_eq!(json["results"][2]["why"], "no UDP");
        assert!(!report.is_clean());
        assert_eq!(report.verdict("a/short"), Some(&Verdict::Passed));
        assert_eq!(report.verdict("a/none"), None);
    }
}
