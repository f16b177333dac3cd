//! What the checks found, for people and for CI systems.

use std::fmt::Write as _;
use std::future::Future;

use anyhow::Result;
use tokio::time::Instant;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not, and why.
    Failed(String),
    /// It could not be tried, and why.
    Skipped(String),
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What holds if it passes.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub seconds: f64,
}

/// All checks of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// In the order in which they ran.
    pub cases: Vec<Case>,
}

impl Report {
    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        let failed = |case: &Case| matches!(case.outcome, Outcome::Failed(_));
        !self.cases.iter().any(failed)
    }

    /// A line for each check.
    pub fn text(&self) -> String {
        self.cases.iter().fold(String::new(), |text, case| {
            let (word, why) = match &case.outcome {
                Outcome::Passed => ("passed ", String::new()),
                Outcome::Failed(why) => ("FAILED ", format!(": {why}")),
                Outcome::Skipped(why) => ("skipped", format!(": {why}")),
            };
            text + &format!("{word} {} ({:.1} s){why}\n", case.name, case.seconds)
        })
    }

    /// The report as CI systems read it.
    pub fn junit(&self) -> String {
        let count = |wanted: fn(&Outcome) -> bool| {
            let cases = self.cases.iter().filter(|case| wanted(&case.outcome));
            cases.count()
        };
        let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cloudkeel-e2e\" tests=\"{}\" \
             failures=\"{failures}\" skipped=\"{skipped}\">\n",
            self.cases.len()
        );
        for case in &self.cases {
            let name = escape(&case.name);
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "  <testcase name=\"{name}\" time=\"{:.3}\"",
                case.seconds
            );
            let _ = match &case.outcome {
                Outcome::Passed => writeln!(out, "/>"),
                Outcome::Failed(why) => {
                    writeln!(out, "><failure message=\"{}\"/></testcase>", escape(why))
                }
                Outcome::Skipped(why) => {
                    writeln!(out, "><skipped message=\"{}\"/></testcase>", escape(why))
                }
            };
        }
        out + "</testsuite>\n"
    }

    pub(crate) async fn check(
        &mut self,
        name: &str,
        check: impl Future<Output = Result<Option<String>>>,
    ) {
        let began = Instant::now();
        let outcome = match check.await {
            Ok(None) => Outcome::Passed,
            Ok(Some(why)) => Outcome::Skipped(why),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.cases.push(Case {
            name: name.to_owned(),
            outcome,
            seconds: began.elapsed().as_secs_f64(),
        });
    }

    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        self.cases.push(Case {
            name: name.to_owned(),
            outcome: Outcome::Skipped(why.to_owned()),
            seconds: 0.0,
        });
    }

    pub(crate) fn last_passed(&self) -> bool {
        let last = self.cases.last();
        last.is_some_and(|case| case.outcome == Outcome::Passed)
    }
}

fn escape(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    let escaped = escaped.replace('>', "&gt;").replace('"', "&quot;");
    // Other control characters are not allowed in XML, however they are written.
    escaped
        .replace('\n', "&#10;")
        .replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_outcome_is_in_the_report_and_text_is_escaped() {
        let mut report = Report::default();
        report.check("works", async { Ok(None) }).await;
        assert!(report.passed() && report.last_passed());
        report
            .check("breaks", async { Err(anyhow::anyhow!("a < b & \"c\"\nd")) })
            .await;
        report.skip("waits", "one Node");
        assert!(!report.passed() && !report.last_passed());
        let junit = report.junit();
        for part in [
            "tests=\"3\" failures=\"1\" skipped=\"1\"",
            "<testcase name=\"works\" time=\"0.000\"/>",
            "<failure message=\"a &lt; b &amp; &quot;c&quot;&#10;d\"/>",
            "<skipped message=\"one Node\"/>",
        ] {
            assert!(junit.contains(part), "{part}: {junit}");
        }
        assert!(
            report.text().contains("FAILED  breaks"),
            "{}",
            report.text()
        );
    }
}
