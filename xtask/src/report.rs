//! The result of a run, as a table for people and as JSON for programs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::count::Count;
use crate::screen::{Colour, Palette};
use crate::tier::Tier;

pub(crate) struct Report {
    tiers: Vec<TierReport>,
}

pub(crate) struct TierReport {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) count: Count,
    pub(crate) time: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

impl TierReport {
    pub(crate) fn skipped(tier: &Tier, reason: String) -> Self {
        Self {
            name: tier.name,
            what: tier.what,
            verdict: Verdict::Skipped(reason),
            count: Count::default(),
            time: Duration::ZERO,
        }
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(reason) | Self::Skipped(reason) => Some(reason),
        }
    }

    fn colour(&self) -> Colour {
        match self {
            Self::Passed => Colour::Green,
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
            .any(|tier| matches!(tier.verdict, Verdict::Failed(_)))
    }

    fn count(&self) -> Count {
        self.tiers.iter().map(|tier| tier.count).sum()
    }

    /// Ignored tests, and one for each tier that did not run: how many tests it has is unknown.
    fn skipped(&self) -> u64 {
        let is_skipped = |tier: &&TierReport| matches!(tier.verdict, Verdict::Skipped(_));
        self.count().ignored + self.tiers.iter().filter(is_skipped).map(|_| 1).sum::<u64>()
    }

    /// `12 passed, 0 failed` or `12 passed, 0 failed, 3 skipped`: machines read this line.
    pub(crate) fn last_line(&self) -> String {
        let Count { passed, failed, .. } = self.count();
        match self.skipped() {
            0 => format!("{passed} passed, {failed} failed"),
            skipped => format!("{passed} passed, {failed} failed, {skipped} skipped"),
        }
    }

    pub(crate) fn table(&self, palette: Palette) -> String {
        let width = width_of("tier", self.tiers.iter().map(|tier| tier.name));
        let head = format!(
            "{:width$}  result   passed  failed  ignored     time",
            "tier"
        );
        let mut lines = vec![palette.paint(Colour::Bold, &head)];
        lines.extend(self.tiers.iter().map(|tier| tier.row(width, palette)));
        lines.join("\n") + "\n"
    }

    pub(crate) fn json(&self, command: &str) -> Value {
        let Count { passed, failed, .. } = self.count();
        let tiers: Vec<Value> = self.tiers.iter().map(TierReport::json).collect();
        json!({
            "command": command,
            "passed": passed,
            "failed": failed,
            "skipped": self.skipped(),
            "tiers": tiers,
        })
    }
}

impl TierReport {
    /// How it ended, for those who watch.
    pub(crate) fn line(&self) -> String {
        let time = in_words(self.time);
        match &self.verdict {
            Verdict::Passed => format!("passed in {time}"),
            Verdict::Failed(reason) => format!("failed in {time}: {reason}"),
            Verdict::Skipped(reason) => format!("skipped: {reason}"),
        }
    }

    fn row(&self, width: usize, palette: Palette) -> String {
        // Padded before it is painted: escape codes would count as characters.
        let word = palette.paint(self.verdict.colour(), &format!("{:7}", self.verdict.word()));
        let Count {
            passed,
            failed,
            ignored,
        } = self.count;
        let row = match self.verdict {
            Verdict::Skipped(_) => {
                format!(
                    "{:width$}  {word}  {:>6}  {:>6}  {:>7}  {:>7}",
                    self.name, "-", "-", "-", "-"
                )
            }
            Verdict::Passed | Verdict::Failed(_) => format!(
                "{:width$}  {word}  {passed:>6}  {failed:>6}  {ignored:>7}  {:>7}",
                self.name,
                in_words(self.time),
            ),
        };
        match self.verdict.reason() {
            None => row,
            Some(reason) => format!("{row}  {reason}"),
        }
    }

    fn json(&self) -> Value {
        let seconds = (self.time.as_secs_f64() * 1000.0).round() / 1000.0;
        json!({
            "name": self.name,
            "what": self.what,
            "result": self.verdict.word(),
            "reason": self.verdict.reason(),
            "passed": self.count.passed,
            "failed": self.count.failed,
            "ignored": self.count.ignored,
            "seconds": seconds,
        })
    }
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
fn in_words(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{}m{:02}s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests;
