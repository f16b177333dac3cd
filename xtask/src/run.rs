//! Runs the chosen tiers, one after the other, whatever becomes of each.

use std::time::Instant;

use crate::count::{Count, Tally, Unit};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::report::{TierReport, TierResult};
use crate::selection::Chosen;
use crate::workspace::Workspace;

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
    let session = workspace.session();
    let is_reached = session
        .changed
        .as_ref()
        .is_none_or(|changed| changed.reaches(tier.reach));
    if chosen.left_out {
        return TierReport::skipped(tier, "--skip".to_owned());
    }
    if !is_reached {
        return TierReport::unreached(tier);
    }
    if let Some(reason) = tier.missing(machine) {
        return unable(TierReport::skipped(tier, reason), session.ci);
    }
    if let Some(cost) = tier.first_run {
        let line = format!("the first time: {cost}");
        workspace.screen().line(&line);
    }
    let start = Instant::now();
    let outcome =
        (tier.run)(workspace).unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
    unable(TierReport::of(tier, outcome, start.elapsed()), session.ci)
}

/// On CI, green means that everything ran: what could not run has failed.
fn unable(mut report: TierReport, ci: bool) -> TierReport {
    let reason = match (&report.result, report.gaps.first()) {
        (TierResult::Skipped(reason), _) => reason.clone(),
        (TierResult::Passed, Some(gap)) => {
            let count = Unit::Test.count(report.gaps.len() as u64);
            format!(
                "{count} could not run, such as {}: {}",
                gap.test, gap.reason
            )
        }
        _ => return report,
    };
    if ci {
        report.result = TierResult::Failed(format!("everything has to run on CI: {reason}"));
        report.tally += Tally::of(Unit::Check, Count::ONE_FAILED);
    }
    report
}

#[cfg(test)]
mod tests {
    use anyhow::{Result, bail};

    use super::*;
    use crate::changed::{Changed, Reach};
    use crate::machine::Requirement;
    use crate::session::Session;
    use crate::test_log::{Skipped, Tests};
    use crate::tier::Tier;

    fn tier(name: &'static str, run: fn(&Workspace) -> Result<Outcome>) -> Tier {
        Tier {
            name,
            what: "",
            in_check: true,
            requires: &[],
            reach: Reach::Everything,
            first_run: None,
            run,
        }
    }

    fn tiers() -> Vec<Tier> {
        let mut absent = tier("absent", |_| bail!("must not run"));
        absent.requires = &[Requirement::Program("no-such-program")];
        let mut unreached = tier("unreached", |_| bail!("must not run"));
        unreached.reach = Reach::AnyCrate;
        vec![
            tier("red", |_| Ok(Outcome::failed("it is red".to_owned()))),
            tier("broken", |_| bail!("it broke")),
            absent,
            tier("unwanted", |_| bail!("must not run")),
            unreached,
            tier("green", |_| Ok(Outcome::passed())),
            tier("late", |_| Ok(Outcome::skipped("no target".to_owned()))),
            tier("gap", |_| Ok(with_a_gap())),
        ]
    }

    fn with_a_gap() -> Outcome {
        let gap = Skipped {
            test: "real".to_owned(),
            reason: "needs Go".to_owned(),
        };
        let tests = Tests {
            passed: 1,
            skipped: vec![gap],
            ..Tests::default()
        };
        Outcome::of_tests(Unit::Test, None, tests)
    }

    fn verdicts(ci: bool) -> Vec<(&'static str, TierResult, Tally)> {
        let tiers = tiers();
        let chosen: Vec<Chosen<'_>> = tiers
            .iter()
            .map(|tier| Chosen {
                tier,
                left_out: tier.name == "unwanted",
            })
            .collect();
        let ci = if ci { "true" } else { "" };
        let mut session = Session::new(&Machine::with(&[("CI", ci)]));
        session.changed = Some(Changed::default());
        let workspace = Workspace::made_up().with(session);
        run(&chosen, &workspace, &Machine::with(&[]))
            .into_iter()
            .map(|report| (report.name, report.result, report.tally))
            .collect()
    }

    #[test]
    fn every_tier_runs_whatever_became_of_the_one_before() {
        let none = Tally::default();
        let failed = Tally::of(Unit::Check, Count::ONE_FAILED);
        let gap = Count {
            skipped: 1,
            ..Count::ONE_PASSED
        };
        let missing = "needs `no-such-program` on PATH";
        assert_eq!(
            verdicts(false),
            [
                (
                    "red",
                    TierResult::Failed("it is red".into()),
                    failed.clone()
                ),
                ("broken", TierResult::Failed("it broke".into()), failed),
                ("absent", TierResult::Skipped(missing.into()), none.clone()),
                (
                    "unwanted",
                    TierResult::Skipped("--skip".into()),
                    none.clone()
                ),
                ("unreached", TierResult::Unreached, none.clone()),
                (
                    "green",
                    TierResult::Passed,
                    Tally::of(Unit::Check, Count::ONE_PASSED)
                ),
                ("late", TierResult::Skipped("no target".into()), none),
                ("gap", TierResult::Passed, Tally::of(Unit::Test, gap)),
            ],
        );
    }

    #[test]
    fn on_ci_what_cannot_run_has_failed_and_what_was_not_asked_for_has_not() {
        let failed: Vec<_> = verdicts(true)
            .into_iter()
            .filter_map(|(name, result, _)| match result {
                TierResult::Failed(reason) => Some((name, reason)),
                _ => None,
            })
            .collect();
        let on_ci = |reason: &str| format!("everything has to run on CI: {reason}");
        assert_eq!(
            failed,
            [
                ("red", "it is red".to_owned()),
                ("broken", "it broke".to_owned()),
                ("absent", on_ci("needs `no-such-program` on PATH")),
                ("late", on_ci("no target")),
                ("gap", on_ci("1 test could not run, such as real: needs Go")),
            ]
        );
    }
}
