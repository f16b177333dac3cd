//! Runs the chosen tiers, one after the other, whatever becomes of each.

use std::time::Instant;

use crate::machine::Machine;
use crate::report::{TierReport, Verdict};
use crate::selection::Chosen;
use crate::workspace::{Outcome, Workspace};

pub(crate) fn run(
    chosen: &[Chosen<'_>],
    workspace: &Workspace,
    machine: &Machine,
) -> Vec<TierReport> {
    let (screen, all) = (workspace.screen(), chosen.len());
    let one = |(before, chosen): (usize, &Chosen<'_>)| {
        let (tier, number) = (chosen.tier, before + 1);
        screen.heading(&format!("{number}/{all} {}: {}", tier.name, tier.what));
        let report = run_one(chosen, workspace, machine);
        screen.line(&report.line());
        report
    };
    chosen.iter().enumerate().map(one).collect()
}

fn run_one(chosen: &Chosen<'_>, workspace: &Workspace, machine: &Machine) -> TierReport {
    let tier = chosen.tier;
    let skip = if chosen.left_out {
        Some("--skip".to_owned())
    } else {
        tier.missing(machine)
    };
    if let Some(reason) = skip {
        return TierReport::skipped(tier, reason);
    }
    if let Some(cost) = tier.first_run {
        let line = format!("the first time: {cost}");
        workspace.screen().line(&line);
    }
    let start = Instant::now();
    let outcome =
        (tier.run)(workspace).unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
    TierReport {
        name: tier.name,
        what: tier.what,
        verdict: match (outcome.problem, outcome.skipped) {
            (Some(problem), _) => Verdict::Failed(problem),
            (None, Some(reason)) => Verdict::Skipped(reason),
            (None, None) => Verdict::Passed,
        },
        count: outcome.count,
        time: start.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Result, bail};

    use super::*;
    use crate::count::Count;
    use crate::machine::Requirement;
    use crate::tier::Tier;

    fn tier(name: &'static str, run: fn(&Workspace) -> Result<Outcome>) -> Tier {
        Tier {
            name,
            what: "",
            in_check: true,
            requires: &[],
            first_run: None,
            run,
        }
    }

    #[test]
    fn every_tier_runs_whatever_became_of_the_one_before() {
        let mut absent = tier("absent", |_| bail!("must not run"));
        absent.requires = &[Requirement::Program("no-such-program")];
        let tiers = [
            tier("red", |_| Ok(Outcome::failed("it is red".to_owned()))),
            tier("broken", |_| bail!("it broke")),
            absent,
            tier("unwanted", |_| bail!("must not run")),
            tier("green", |_| Ok(Outcome::passed())),
            tier("late", |_| Ok(Outcome::skipped("no target".to_owned()))),
        ];
        let chosen: Vec<Chosen<'_>> = tiers
            .iter()
            .map(|tier| Chosen {
                tier,
                left_out: tier.name == "unwanted",
            })
            .collect();

        let reports = run(&chosen, &Workspace::made_up(), &Machine::with(&[]));

        let found: Vec<_> = reports
            .iter()
            .map(|r| (r.name, r.verdict.clone(), r.count))
            .collect();
        let none = Count::default();
        assert_eq!(
            found,
            [
                (
                    "red",
                    Verdict::Failed("it is red".into()),
                    Count::ONE_FAILED
                ),
                (
                    "broken",
                    Verdict::Failed("it broke".into()),
                    Count::ONE_FAILED
                ),
                (
                    "absent",
                    Verdict::Skipped("needs `no-such-program` on PATH".into()),
                    none
                ),
                ("unwanted", Verdict::Skipped("--skip".into()), none),
                ("green", Verdict::Passed, Count::ONE_PASSED),
                ("late", Verdict::Skipped("no target".into()), none),
            ],
        );
    }
}
