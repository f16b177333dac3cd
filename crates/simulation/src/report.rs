//! What people read afterwards.

use std::io::Write as _;

use anyhow::Result;
use cloudkeel_simulation::{Bug, Plan, play_with, shortest};
use serde_json::json;

use crate::campaign::Found;

/// Failed seeds that are told in full.
const SHOWN: usize = 3;

/// Prints the result, with the shortest history of the first seeds that failed.
pub(crate) fn print(found: &Found) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let Found {
        played,
        steps,
        happenings,
        took,
        ..
    } = found;
    let seconds = took.as_secs_f64();
    writeln!(
        out,
        "{played} seeds, {happenings} happenings, {steps} requests judged, {seconds:.1} s; {} failed",
        found.failed.len()
    )?;
    for (seed, verdict) in found.failed.iter().take(SHOWN) {
        let rule = verdict.violations.first().map_or("", |first| first.rule);
        let same_rule = |plan: &Plan| {
            play_with(*seed, plan, found.bug, false)
                .is_ok_and(|verdict| verdict.violations.iter().any(|v| v.rule == rule))
        };
        let plan = shortest(Plan::of_seed(*seed), same_rule);
        writeln!(out, "\nseed {seed}:")?;
        for violation in verdict.violations.iter().take(SHOWN) {
            writeln!(out, "  {violation}")?;
        }
        writeln!(out, "the least that has to happen for it:\n{plan}")?;
        writeln!(out, "see it again: {}", replay_command(*seed, found.bug))?;
    }
    Ok(())
}

fn replay_command(seed: u64, bug: Option<Bug>) -> String {
    let bug = bug.map_or_else(String::new, |bug| format!(" --bug {}", bug.name()));
    format!("cargo xtask simulate --replay {seed}{bug}")
}

pub(crate) fn print_json(found: &Found) -> Result<()> {
    let failed: Vec<_> = found
        .failed
        .iter()
        .map(|(seed, verdict)| {
            let violations: Vec<_> = verdict.violations.iter().map(ToString::to_string).collect();
            json!({"seed": seed, "violations": violations})
        })
        .collect();
    let document = json!({
        "played": found.played,
        "happenings": found.happenings,
        "steps": found.steps,
        "seconds": found.took.as_secs_f64(),
        "bug": found.bug.map(Bug::name),
        "failed": failed,
    });
    writeln!(std::io::stdout(), "{document:#}")?;
    Ok(())
}

/// Plays one seed and prints everything that happens. Whether all went well.
pub(crate) fn replay(seed: u64, bug: Option<Bug>) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    let plan = Plan::of_seed(seed);
    let verdict = play_with(seed, &plan, bug, true)?;
    for line in &verdict.history {
        writeln!(out, "{line}")?;
    }
    for violation in &verdict.violations {
        writeln!(out, "VIOLATION {violation}")?;
    }
    Ok(verdict.violations.is_empty())
}
