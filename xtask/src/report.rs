//! The result of a run, as a table for people and as JSON for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::count::{Count, Tally, Unit};
use crate::outcome::Outcome;
use crate::screen::{Colour, Palette};
use crate::session::Timing;
use crate::test_log::Skipped;
use crate::tier::Tier;

pub(crate) struct Report {
    tiers: Vec<TierReport>,
}

pub(crate) struct TierReport {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) result: TierResult,
    pub(crate) tally: Tally,
    /// Single tests that could not run.
    pub(crate) gaps: Vec<Skipped>,
    /// Tests that another tier runs.
    pub(crate) elsewhere: u64,
    /// What else was counted, such as `24 seeds`.
    pub(crate) counted: Vec<String>,
    pub(crate) time: Duration,
    /// How much of the time went into building.
    pub(crate) build: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TierResult {
    Passed,
    Failed(String),
    Skipped(String),
    /// The change cannot reach it.
    Unreached,
}

impl TierReport {
    pub(crate) fn of(tier: &Tier, outcome: Outcome, time: Duration) -> Self {
        Self {
            name: tier.name,
            what: tier.what,
            result: match (outcome.problem, outcome.skipped) {
                (Some(problem), _) => TierResult::Failed(problem),
                (None, Some(reason)) => TierResult::Skipped(reason),
                (None, None) => TierResult::Passed,
            },
            tally: outcome.tally,
            gaps: outcome.gaps,
            elsewhere: outcome.elsewhere,
            counted: outcome.counted,
            time,
            build: outcome.build,
        }
    }

    pub(crate) fn skipped(tier: &Tier, reason: String) -> Self {
        Self::of(tier, Outcome::skipped(reason), Duration::ZERO)
    }

    pub(crate) fn unreached(tier: &Tier) -> Self {
        Self {
            result: TierResult::Unreached,
            ..Self::of(tier, Outcome::default(), Duration::ZERO)
        }
    }

    /// What passed: `1,123 tests`, or `4 tests, 24 seeds`.
    pub(crate) fn counts(&self) -> String {
        let tally = self.tally.to_string();
        let parts = std::iter::once(&tally).chain(&self.counted);
        let parts: Vec<&str> = parts
            .map(String::as_str)
            .filter(|p| !p.is_empty())
            .collect();
        parts.join(", ")
    }
}

impl TierResult {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
            Self::Unreached => "spared",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Unreached => Some("the change cannot reach it"),
            Self::Failed(reason) | Self::Skipped(reason) => Some(reason),
        }
    }

    fn colour(&self) -> Colour {
        match self {
            Self::Passed | Self::Unreached => Colour::Green,
            Self::Failed(_) => Colour::Red,
            Self::Skipped(_) => Colour::Yellow,
        }
    }
}

impl Report {
    pub(crate) fn new(tiers: Vec<TierReport>) -> Self {
        Self { tiers }
    }

    pub(crate) fn failed(&self) -> bool {
        self.tiers
            .iter()
            .any(|tier| matches!(tier.result, TierResult::Failed(_)))
    }

    fn count(&self) -> Count {
        let counts = self.tiers.iter().map(|tier| tier.tally.total());
        counts.fold(Count::default(), |sum, count| sum + count)
    }

    /// Tests that could not run, and one for each tier that did not run: how many tests it has is unknown.
    fn skipped(&self) -> u64 {
        let is_skipped = |tier: &&TierReport| matches!(tier.result, TierResult::Skipped(_));
        self.count().skipped + self.tiers.iter().filter(is_skipped).map(|_| 1).sum::<u64>()
    }

    /// `12 passed, 0 failed, 3 skipped`: machines read this line.
    pub(crate) fn last_line(&self) -> String {
        let Count { passed, failed, .. } = self.count();
        format!(
            "{passed} passed, {failed} failed, {} skipped",
            self.skipped()
        )
    }

    pub(crate) fn table(&self, palette: Palette) -> String {
        let width = width_of("tier", self.tiers.iter().map(|tier| tier.name));
        let counts: Vec<String> = self.tiers.iter().map(TierReport::counts).collect();
        let passed = width_of("passed", counts.iter().map(String::as_str));
        let head = format!(
            "{:width$}  result   {:passed$}  failed  skipped     time  of it building",
            "tier", "passed"
        );
        let mut lines = vec![palette.paint(Colour::Bold, &head)];
        lines.extend(
            self.tiers
                .iter()
                .map(|tier| tier.row(width, passed, palette)),
        );
        lines.extend(self.gaps());
        lines.join("\n") + "\n"
    }

    /// The tests that could not run, by reason.
    fn gaps(&self) -> Vec<String> {
        let mut by_reason = BTreeMap::<&str, Vec<&str>>::new();
        for gap in self.tiers.iter().flat_map(|tier| &tier.gaps) {
            by_reason.entry(&gap.reason).or_default().push(&gap.test);
        }
        by_reason
            .into_iter()
            .map(|(reason, tests)| {
                let count = Unit::Test.count(tests.len() as u64);
                format!("{count} skipped: {reason}: {}", tests.join(", "))
            })
            .collect()
    }

    pub(crate) fn json(&self, command: &str, timings: &[Timing]) -> Value {
        let Count { passed, failed, .. } = self.count();
        let tiers: Vec<Value> = self.tiers.iter().map(TierReport::json).collect();
        let programs: Vec<Value> = timings
            .iter()
            .map(|it| json!({"name": it.program, "tests": it.tests, "seconds": seconds(it.time)}))
            .collect();
        json!({
            "command": command,
            "passed": passed,
            "failed": failed,
            "skipped": self.skipped(),
            "tiers": tiers,
            "programs": programs,
        })
    }
}

impl TierReport {
    /// How it ended, for those who watch.
    pub(crate) fn line(&self) -> String {
        let time = in_words(self.time);
        match &self.result {
            TierResult::Passed => format!("passed in {time}: {}", self.counts()),
            TierResult::Failed(reason) => format!("failed in {time}: {reason}"),
            TierResult::Skipped(reason) => format!("skipped: {reason}"),
            TierResult::Unreached => "spared: the change cannot reach it".to_owned(),
        }
    }

    fn row(&self, width: usize, passed: usize, palette: Palette) -> String {
        // Padded before it is painted: escape codes would count as characters.
        let word = palette.paint(self.result.colour(), &format!("{:7}", self.result.word()));
        let Count {
            failed, skipped, ..
        } = self.tally.total();
        let did_run = matches!(self.result, TierResult::Passed | TierResult::Failed(_));
        let cell = |text: String| if did_run { text } else { "-".to_owned() };
        let row = format!(
            "{:width$}  {word}  {:passed$}  {:>6}  {:>7}  {:>7}  {:>14}",
            self.name,
            cell(self.counts()),
            cell(failed.to_string()),
            cell(skipped.to_string()),
            cell(in_words(self.time)),
            cell(in_words(self.build)),
        );
        match self.result.reason() {
            None => row,
            Some(reason) => format!("{row}  {reason}"),
        }
    }

    fn json(&self) -> Value {
        let Count {
            passed,
            failed,
            skipped,
        } = self.tally.total();
        json!({
            "name": self.name,
            "what": self.what,
            "result": self.result.word(),
            "reason": self.result.reason(),
            "counts": self.counts(),
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "elsewhere": self.elsewhere,
            "seconds": seconds(self.time),
            "buildSeconds": seconds(self.build),
        })
    }
}

/// With milliseconds.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// How long each test program ran.
pub(crate) fn timing_table(timings: &[Timing]) -> String {
    let width = width_of("test program", timings.iter().map(|it| &*it.program));
    let mut lines = vec![format!("{:width$}  tests     time", "test program")];
    lines.extend(timings.iter().map(|it| {
        let time = in_words(it.time);
        format!("{:width$}  {:>5}  {time:>7}", it.program, it.tests)
    }));
    lines.join("\n") + "\n"
}

/// The tiers there are, with the reason for each that cannot run here.
pub(crate) fn tier_list(rows: &[(&Tier, Option<String>)]) -> String {
    let width = width_of("tier", rows.iter().map(|(tier, _)| tier.name));
    let what_width = width_of("what", rows.iter().map(|(tier, _)| tier.what));
    let mut lines = vec![format!(
        "{:width$}  check  {:what_width$}  here\n",
        "tier", "what"
    )];
    lines.extend(rows.iter().map(|(tier, missing)| {
        let check = if tier.in_check { "yes" } else { "no" };
        let here = missing
            .as_ref()
            .map_or_else(|| "yes".to_owned(), |why| format!("no, {why}"));
        format!(
            "{:width$}  {check:5}  {:what_width$}  {here}\n",
            tier.name, tier.what
        )
    }));
    lines.concat()
}

pub(crate) fn tier_list_json(rows: &[(&Tier, Option<String>)]) -> Value {
    let row = |(tier, missing): &(&Tier, Option<String>)| {
        json!({
            "name": tier.name,
            "what": tier.what,
            "in_check": tier.in_check,
            "runs_here": missing.is_none(),
            "reason": missing,
        })
    };
    rows.iter().map(row).collect()
}

fn width_of<'a>(heading: &str, cells: impl Iterator<Item = &'a str>) -> usize {
    cells
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or_default()
        .max(heading.len())
}

/// `0.8s`, `12.3s` or `6m05s`.
pub(crate) fn in_words(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{}m{:02}s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests;
