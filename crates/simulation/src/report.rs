//! The report of a campaign.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Result;
use cloudkeel_simulation::{Bug, FaultClass, Plan, play_with, shortest};
use serde_json::json;

use crate::campaign::Found;

/// Failed seeds that are printed in full.
const SHOWN: usize = 3;

/// Prints the result, with the shortest history of the first seeds that failed.
pub(crate) fn print(found: &Found) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let Found {
        from,
        played,
        steps,
        actions,
        took,
        ..
    } = found;
    let (seconds, rate) = (took.as_secs_f64(), found.seeds_per_minute());
    writeln!(
        out,
        "{played} seeds from {from}, {actions} actions, {steps} requests checked, {seconds:.1} s ({rate:.0} a minute); {} failed",
        found.failed.len()
    )?;
    for (invariant, seeds) in found.failures_by_invariant() {
        writeln!(out, "  {invariant}: {seeds}")?;
    }
    writeln!(out, "faults met:")?;
    for class in FaultClass::ALL {
        let times = found.met.get(&class).copied().unwrap_or_default();
        writeln!(out, "  {times:>8}  {class}")?;
    }
    for (seed, outcome) in found.failed.iter().take(SHOWN) {
        let first = outcome.violations.first();
        let invariant = first.map(|first| first.invariant);
        let same_invariant = |plan: &Plan| {
            play_with(*seed, plan, found.bug, false).is_ok_and(|outcome| {
                outcome
                    .violations
                    .iter()
                    .any(|v| Some(v.invariant) == invariant)
            })
        };
        let plan = shortest(Plan::of_seed(*seed), same_invariant);
        writeln!(out, "\nseed {seed}:")?;
        for violation in outcome.violations.iter().take(SHOWN) {
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
        .map(|(seed, outcome)| {
            let violations: Vec<_> = outcome.violations.iter().map(ToString::to_string).collect();
            json!({"seed": seed, "violations": violations})
        })
        .collect();
    let met: BTreeMap<_, _> = found
        .met
        .iter()
        .map(|(class, n)| (class.to_string(), n))
        .collect();
    let document = json!({
        "from": found.from,
        "played": found.played,
        "met": met,
        "seedsPerMinute": found.seeds_per_minute(),
        "actions": found.actions,
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
    let outcome = play_with(seed, &plan, bug, true)?;
    for line in &outcome.history {
        writeln!(out, "{line}")?;
    }
    for violation in &outcome.violations {
        writeln!(out, "VIOLATION {violation}")?;
    }
    Ok(outcome.violations.is_empty())
}
