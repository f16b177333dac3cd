//! The command line, and what each command prints.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench;
use crate::build::Built;
use crate::changed::Changed;
use crate::coverage;
use crate::disk;
use crate::house::{lines, words};
use crate::image;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::record;
use crate::report::{self, Report};
use crate::run;
use crate::screen::{self, Screen};
use crate::selection::{Scope, Selection, elsewhere, select};
use crate::session::Session;
use crate::suites;
use crate::tier::{TIERS, Tier};
use crate::workspace::Workspace;

/// Sets up and runs every check of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything, setting up what it needs.
    Test(RunArgs),
    /// Run the fast half: no Go, no servers. For before a commit.
    Check(RunArgs),
    /// Check only that the crates depend on each other as designed.
    Edges,
    /// Run a benchmark on the release build: `cargo xtask bench nodes -- --nodes 100,1000,5000`.
    Bench(BenchArgs),
    /// Play new seeds of the simulation: `cargo xtask simulate --seeds 10000 --record`.
    Simulate(SimulateArgs),
    /// Feed broken input to everything that reads: `cargo xtask fuzz --target node --seconds 60`.
    Fuzz(FuzzArgs),
    /// Count the lines that unit and integration tests reach, by crate. Builds everything once more.
    Coverage(CoverageArgs),
    /// Check Nodes and Services of a real cluster, on any cloud: `cargo xtask e2e --kubeconfig FILE`.
    E2e(ProgramArgs),
    /// Write the image as an OCI archive, without a container engine.
    Image(image::ImageArgs),
    /// Print the reference pages of `docs/reference` anew, from the code, and the tables of the benchmarks.
    Docs,
    /// Write the numbers of the last whole run that passed into docs/testing.md.
    Record(RecordArgs),
    /// Count the lines of code of each crate, without tests, comments and blanks.
    Lines(OutputArgs),
    /// Find words that the dictionary in CONTRIBUTING.md has retired.
    Words,
    /// List the tiers, what each is, and whether it can run here.
    Tiers(OutputArgs),
}

#[derive(Debug, Default, Args)]
struct RunArgs {
    /// Run only these tiers.
    #[arg(long = "tier", value_name = "TIER,…", value_delimiter = ',')]
    tiers: Vec<String>,
    /// Leave these tiers out; they are reported as skipped.
    #[arg(long, value_name = "TIER,…", value_delimiter = ',')]
    skip: Vec<String>,
    /// Run only what a change can reach: what differs from where this branch left BASE (main).
    #[arg(long, value_name = "BASE", num_args = 0..=1)]
    #[expect(
        clippy::option_option,
        reason = "clap: without the flag, without a value, with one"
    )]
    changed: Option<Option<String>>,
    /// How many test programs run at once; by default one for each core.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZero<usize>>,
    /// Print how long each test program ran.
    #[arg(long)]
    timings: bool,
    /// Write the numbers of this run into docs/testing.md, if all of it ran and passed.
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct RecordArgs {
    /// Whether the run began with nothing built, or with a warm cache.
    #[arg(long = "as", value_enum, default_value_t = record::Start::Warm)]
    start: record::Start,
}

#[derive(Debug, Args)]
struct BenchArgs {
    /// Which: a folder of `bench/`.
    name: String,
    /// Keep the results in `docs/benchmarks/` and print them into `docs/benchmarks.md`.
    #[arg(long)]
    save: bool,
    /// A program that is built already, such as that of an image, in place of a build.
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    binary: Option<PathBuf>,
    /// Its own arguments.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct SimulateArgs {
    /// Arguments of the simulation: `--seeds`, `--from`, `--jobs`, `--replay`, `--bug`, `--record`,
    /// `--output`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct FuzzArgs {
    /// Arguments of the fuzzer: `--target`, `--seconds`, `--rounds`, `--seed`, `--replay`, `--list`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct ProgramArgs {
    /// Arguments of the program: `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
struct CoverageArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Arguments of `cargo test`, such as `--package cloudkeel-http`.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, Default, Args)]
struct OutputArgs {
    /// How the result is printed on stdout; with `json`, progress goes to stderr.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Text,
    Json,
}

impl RunArgs {
    fn only(tier: &str) -> Self {
        Self {
            tiers: vec![tier.to_owned()],
            ..Self::default()
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            only: self.tiers.clone(),
            without: self.skip.clone(),
        }
    }
}

impl Cli {
    /// Whether a command line is one of ours: `cargo xtask test --tier unit`, with all its words.
    pub(crate) fn accepts(line: &str) -> Result<()> {
        let words = line.split_whitespace().skip(1);
        match Self::try_parse_from(words)?.command {
            Command::Test(args) => select(TIERS, Scope::Test, &args.selection()).map(drop),
            Command::Check(args) => select(TIERS, Scope::Check, &args.selection()).map(drop),
            _ => Ok(()),
        }
    }

    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Test(args) => run_tiers(Scope::Test, args),
            Command::Check(args) => run_tiers(Scope::Check, args),
            Command::Edges => run_tiers(Scope::Check, RunArgs::only("edges")),
            Command::Docs => with_workspace(suites::write_reference),
            Command::E2e(args) => {
                with_workspace(|workspace| suites::end_to_end(workspace, &args.rest))
            }
            Command::Image(args) => with_workspace(|workspace| image::write(workspace, &args)),
            Command::Record(args) => {
                with_workspace(|workspace| record::write(workspace, args.start))
            }
            Command::Lines(args) => count_lines(&args),
            Command::Words => with_workspace(words::run),
            Command::Bench(args) => with_workspace(|workspace| {
                let binary = args.binary.as_deref();
                bench::run(workspace, &args.name, args.save, binary, &args.rest)
            }),
            Command::Simulate(args) => {
                run_program(suites::SIMULATION, suites::build_simulation, &args.rest)
            }
            Command::Fuzz(args) => run_program(suites::FUZZER, suites::build_fuzzer, &args.rest),
            Command::Coverage(args) => measure_coverage(&args),
            Command::Tiers(args) => {
                list_tiers(args.output);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn run_tiers(scope: Scope, args: RunArgs) -> Result<ExitCode> {
    let output = args.output.output;
    let selection = args.selection();
    let chosen = select(TIERS, scope, &selection)?;
    let machine = Machine::this();
    let workspace = Workspace::open(&machine, Screen::for_output(output, &machine))?;
    let mut session = Session::new(&machine);
    if let Some(jobs) = args.jobs {
        session.jobs = jobs.get();
    }
    if let Some(base) = args.changed {
        let changed = Changed::since(&workspace, base.as_deref())?;
        workspace.screen().line(&changed.summary());
        session.changed = Some(changed);
    }
    let is_whole = scope == Scope::Test && selection.is_empty() && session.changed.is_none();
    let mut workspace = workspace.with(session);
    let _target = disk::prepare_target(&mut workspace, &machine)?;

    let report = Report::new(run::run(&chosen, &workspace, &machine));
    let (screen, timings) = (workspace.screen(), workspace.session().timings());
    if args.timings {
        screen.line("");
        screen.text(&report::timing_table(&timings));
    }
    screen.line("");
    screen.text(&report.table(screen.palette()));
    for line in elsewhere(TIERS, scope, &selection) {
        screen.line(&line);
    }
    let json = report.json(scope.command(), &timings);
    let has_run_all = is_whole && !report.failed();
    disk::remember_used(&workspace, has_run_all)?;
    if has_run_all {
        record::keep(&workspace, &json)?;
        disk::tidy_up(&workspace)?;
        if args.record {
            record::write(&workspace, record::Start::Warm)?;
        }
    } else if args.record {
        screen.line("nothing is recorded: only a whole run that passes is");
    }
    if output == Output::Json {
        screen::print_json(&json);
    }
    screen.line("");
    screen.line(&report.last_line());
    Ok(if report.failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Runs something that is not a tier.
fn with_workspace(run: impl FnOnce(&Workspace) -> Result<Outcome>) -> Result<ExitCode> {
    let machine = Machine::this();
    let workspace = Workspace::open(&machine, Screen::for_output(Output::Text, &machine))?;
    Ok(exit_code(&run(&workspace)?))
}

/// Builds a program where the tests of this checkout were built last, and runs it.
fn run_program(
    name: &str,
    build: fn(&Workspace) -> Result<Built>,
    arguments: &[String],
) -> Result<ExitCode> {
    let machine = Machine::this();
    let screen = Screen::for_output(Output::Text, &machine);
    let mut workspace = Workspace::open(&machine, screen)?;
    let target = disk::prepare_target_of_last_run(&mut workspace, &machine)?;
    let built = build(&workspace)?;
    // It may run for hours, and tests need the target folder.
    drop(target);
    let outcome = suites::run_built(&workspace, &built, name, arguments)?;
    Ok(exit_code(&outcome))
}

/// Shows what was reached also if tests failed, but does not call that a success.
fn measure_coverage(args: &CoverageArgs) -> Result<ExitCode> {
    let machine = Machine::this();
    let output = args.output.output;
    let workspace = Workspace::open(&machine, Screen::for_output(output, &machine))?;
    let coverage = coverage::measure(&workspace, &args.rest)?;
    let screen = workspace.screen();
    screen.line("");
    screen.text(&coverage.table(screen.palette()));
    if output == Output::Json {
        screen::print_json(&coverage.json());
    }
    Ok(exit_code(&coverage.tests))
}

fn count_lines(args: &OutputArgs) -> Result<ExitCode> {
    let machine = Machine::this();
    let workspace = Workspace::open(&machine, Screen::for_output(args.output, &machine))?;
    let lines = lines::count(&workspace)?;
    match args.output {
        Output::Text => workspace.screen().text(&lines.table()),
        Output::Json => screen::print_json(&lines.json()),
    }
    let broken = lines.findings();
    for finding in &broken {
        workspace.screen().line(finding);
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn exit_code(outcome: &Outcome) -> ExitCode {
    if outcome.problem.is_some() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn list_tiers(output: Output) {
    let machine = Machine::this();
    let rows: Vec<(&Tier, Option<String>)> = TIERS
        .iter()
        .map(|tier| (tier, tier.missing(&machine)))
        .collect();
    match output {
        Output::Text => Screen::for_output(output, &machine).text(&report::tier_list(&rows)),
        Output::Json => screen::print_json(&report::tier_list_json(&rows)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn tiers_can_be_listed_with_commas_or_one_by_one() {
        let typed = [
            "xtask", "test", "--tier", "unit,doc", "--tier", "fmt", "--output", "json",
        ];
        let Command::Test(args) = Cli::parse_from(typed).command else {
            panic!("`test` is a command");
        };
        assert_eq!(
            (args.tiers, args.output.output),
            (
                vec!["unit".into(), "doc".into(), "fmt".into()],
                Output::Json
            )
        );
    }
}
