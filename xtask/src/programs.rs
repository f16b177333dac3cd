//! Runs test programs, several at a time, and adds up what they report.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::build::{self, Built, Kind, TestProgram};
use crate::control_plane::ControlPlane;
use crate::count::Unit;
use crate::house::ignored::{self, IgnoredTest};
use crate::outcome::Outcome;
use crate::parallel::{self, Event, Finished, Job};
use crate::report::in_words;
use crate::session::Timing;
use crate::test_log::{TestLog, Tests};
use crate::workspace::{Workspace, output_of};

pub(crate) fn unit(workspace: &Workspace) -> Result<Outcome> {
    let (built, time) = built(workspace)?;
    if let Some(problem) = &built.problem {
        return Ok(Outcome::failed(problem.clone()).built_in(time));
    }
    let programs = select(workspace, built, Kind::Unit);
    Ok(run(workspace, &programs, &|_, _| {})?.built_in(time))
}

pub(crate) fn integration(workspace: &Workspace) -> Result<Outcome> {
    let (built, time) = built(workspace)?;
    if let Some(problem) = &built.problem {
        return Ok(Outcome::failed(problem.clone()).built_in(time));
    }
    let programs = select(workspace, built, Kind::Integration);
    let control_plane = ControlPlane::start(
        workspace,
        built,
        programs.iter().map(|(program, _)| *program),
    )?;
    let give = |program: &str, command: &mut Command| {
        if let Some(plane) = &control_plane {
            plane.hand_to(program, command);
        }
    };
    Ok(run(workspace, &programs, &give)?.built_in(time))
}

/// Runs the tests whose `#[ignore]` names this tier.
pub(crate) fn ignored(workspace: &Workspace, tier: &str) -> Result<Outcome> {
    ignored_with(workspace, tier, &[])
}

/// The same, with variables that these tests need.
pub(crate) fn ignored_with(
    workspace: &Workspace,
    tier: &str,
    variables: &[(String, String)],
) -> Result<Outcome> {
    let tests = ignored::tests_of(workspace, tier)?;
    let (built, time) = built(workspace)?;
    if let Some(problem) = &built.problem {
        return Ok(Outcome::failed(problem.clone()).built_in(time));
    }
    let mut missing: BTreeSet<&str> = tests.iter().map(|test| &*test.name).collect();
    let mut programs = Vec::new();
    for program in &built.tests {
        let names = ignored_in(workspace, program, &tests)?;
        missing.retain(|name| !names.iter().any(|path| last_segment(path) == *name));
        if !names.is_empty() {
            let arguments = ["--ignored", "--exact", "--show-output"].map(str::to_owned);
            programs.push((program, [&arguments, &*names].concat()));
        }
    }
    let give = |_: &str, command: &mut Command| {
        command.envs(variables.iter().map(|(name, value)| (name, value)));
    };
    let outcome = run(workspace, &programs, &give)?.built_in(time);
    if missing.is_empty() {
        return Ok(outcome);
    }
    let missing: Vec<&str> = missing.into_iter().collect();
    let problem = format!("no test program has {}", missing.join(", "));
    Ok(outcome.and(Outcome::failed(problem)))
}

/// Whole test programs, with these variables.
pub(crate) fn named(
    workspace: &Workspace,
    names: &[&str],
    variables: &[(&str, OsString)],
) -> Result<Outcome> {
    let (built, time) = built(workspace)?;
    if let Some(problem) = &built.problem {
        return Ok(Outcome::failed(problem.clone()).built_in(time));
    }
    let programs: Vec<_> = built
        .tests
        .iter()
        .filter(|program| names.contains(&&*program.name()))
        .map(|program| (program, Vec::new()))
        .collect();
    if programs.len() != names.len() {
        let problem = format!("not all of these test programs exist: {}", names.join(", "));
        return Ok(Outcome::failed(problem).built_in(time));
    }
    let give = |_: &str, command: &mut Command| {
        command.envs(variables.iter().map(|(name, value)| (name, value)));
    };
    Ok(run(workspace, &programs, &give)?.built_in(time))
}

/// The tests, built if this run has not done so yet, and how long that took now.
pub(crate) fn built(workspace: &Workspace) -> Result<(&Built, Duration)> {
    let session = workspace.session();
    if let Some(built) = session.built.get() {
        return Ok((built, Duration::ZERO));
    }
    let built = build::tests(workspace)?;
    let time = built.time;
    Ok((session.built.get_or_init(|| built), time))
}

type Selected<'a> = Vec<(&'a TestProgram, Vec<String>)>;

fn select<'a>(workspace: &Workspace, built: &'a Built, kind: Kind) -> Selected<'a> {
    let changed = workspace.session().changed.as_ref();
    let is_reached = |program: &&TestProgram| {
        changed.is_none_or(|changed| changed.reaches_place(&program.place))
    };
    built
        .tests
        .iter()
        .filter(|program| program.kind == kind)
        .filter(is_reached)
        .map(|program| (program, Vec::new()))
        .collect()
}

/// The full names of those of the tests that this program has.
fn ignored_in(
    workspace: &Workspace,
    program: &TestProgram,
    tests: &[IgnoredTest],
) -> Result<Vec<String>> {
    let own: BTreeSet<&str> = tests
        .iter()
        .filter(|test| test.path.starts_with(&format!("{}/", program.place)))
        .map(|test| &*test.name)
        .collect();
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let mut list = program.command(workspace);
    list.args(["--list", "--ignored", "--format", "terse"]);
    let listed = output_of(list)?;
    Ok(String::from_utf8_lossy(&listed)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|path| own.contains(last_segment(path)))
        .map(str::to_owned)
        .collect())
}

fn last_segment(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// Runs programs with their arguments; `give` sets what else each of them needs.
fn run(
    workspace: &Workspace,
    programs: &[(&TestProgram, Vec<String>)],
    give: &dyn Fn(&str, &mut Command),
) -> Result<Outcome> {
    if programs.is_empty() && workspace.session().changed.is_some() {
        workspace
            .screen()
            .line("the change reaches no test program");
        return Ok(Outcome::default());
    }
    let history = History::read(workspace);
    let mut jobs: Vec<Job> = programs
        .iter()
        .map(|(program, arguments)| {
            let mut command = program.command(workspace);
            command.args(arguments);
            give(&program.name(), &mut command);
            Job {
                name: program.name(),
                command,
            }
        })
        .collect();
    // What takes longest begins first, so that nothing long is left when all else has ended.
    jobs.sort_by_key(|job| std::cmp::Reverse(history.of(&job.name)));
    let screen = workspace.screen();
    let (mut all, mut problem) = (Tests::default(), None);
    parallel::run(jobs, workspace.session().jobs, |event| match event {
        Event::StillRunning(names) => screen.line(&format!("still running: {}", names.join(", "))),
        Event::Finished(finished) => {
            let (tests, trouble) = show(workspace, &finished);
            all.add(tests);
            problem = problem.take().or(trouble);
        }
    });
    history.update(workspace)?;
    Ok(Outcome::of_tests(Unit::Test, problem, all))
}

/// Prints what a test program printed. Returns its tests, and what went wrong beyond failed tests.
fn show(workspace: &Workspace, finished: &Finished) -> (Tests, Option<String>) {
    let screen = workspace.screen();
    let (name, output) = (&finished.name, String::from_utf8_lossy(&finished.output));
    let mut log = TestLog::default();
    output.lines().for_each(|line| log.read(line));
    let tests = log.finish();
    screen.line(&format!("\n{name} ({})", in_words(finished.time)));
    screen.bytes(&finished.output);
    workspace.session().add_timing(Timing {
        program: name.clone(),
        tests: tests.passed + tests.failed,
        time: finished.time,
    });
    let is_explained = tests.failed > 0 || tests.unmet > 0;
    let problem = match &finished.status {
        Ok(status) if status.success() || is_explained => None,
        Ok(status) => Some(format!("{name} ended with {status}")),
        Err(error) => Some(format!("cannot run {name}: {error}")),
    };
    if let Some(problem) = &problem {
        screen.line(problem);
    }
    (tests, problem)
}

/// How long test programs ran the last time, in milliseconds.
#[derive(Debug, Default)]
struct History(BTreeMap<String, u64>);

impl History {
    /// Without a history, or with one that cannot be read, the order does not matter.
    fn read(workspace: &Workspace) -> Self {
        let text = fs::read_to_string(Self::path(workspace)).unwrap_or_default();
        Self(serde_json::from_str(&text).unwrap_or_default())
    }

    fn path(workspace: &Workspace) -> PathBuf {
        workspace.cache().join("timings.json")
    }

    /// A program without a history begins first: it may be the longest.
    fn of(&self, program: &str) -> u64 {
        self.0.get(program).copied().unwrap_or(u64::MAX)
    }

    fn update(mut self, workspace: &Workspace) -> Result<()> {
        for timing in workspace.session().timings() {
            let millis = u64::try_from(timing.time.as_millis()).unwrap_or(u64::MAX);
            self.0.insert(timing.program, millis);
        }
        let path = Self::path(workspace);
        let text = serde_json::to_string_pretty(&self.0).context("timings as JSON")?;
        fs::create_dir_all(workspace.cache())
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
