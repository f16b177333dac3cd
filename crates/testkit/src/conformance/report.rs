//! How a provider did.

use std::fmt::{self, Write as _};

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
    /// It does not have to: somebody has declared it.
    Gap {
        /// The declaration.
        why: String,
    },
}

impl Verdict {
    const fn word(&self) -> &'static str {
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

    /// A Markdown table with a row per check.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "{}.\n\n| check | what it asks | result |\n|---|---|---|\n",
            self.summary()
        );
        for result in &self.results {
            let why = match result.verdict.why() {
                "" => String::new(),
                why => format!(": {}", why.replace('|', "\\|").replace('\n', " ")),
            };
            let (name, about, word) = (result.name, result.about, result.verdict.word());
            let _ = writeln!(text, "| `{name}` | {about} | {word}{why} |");
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |result: &CheckResult| result.name.len();
        let name = self.results.iter().map(width).max().unwrap_or(0);
        writeln!(f, "{}: {}", self.provider, self.summary())?;
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
        }
    }

    #[test]
    fn text_is_aligned() {
        assert_eq!(
            report().to_string(),
            "toy: 3 checks: 1 passed, 1 gap, 1 failed\n\
             a/short        passed\n\
             a/much-longer  FAILED  no | not at all\n\
             b/udp          gap     no UDP\n"
        );
    }

    #[test]
    fn markdown_has_a_row_per_check() {
        assert_eq!(
            report().to_markdown(),
            "3 checks: 1 passed, 1 gap, 1 failed.\n\n\
             | check | what it asks | result |\n|---|---|---|\n\
             | `a/short` | it does | passed |\n\
             | `a/much-longer` | it does | FAILED: no \\| not at all |\n\
             | `b/udp` | it does | gap: no UDP |\n"
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
