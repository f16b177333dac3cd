//! Runs `cloudkeel plan`: the controllers in a dry run, until they have worked off what they saw at first.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Registry;
use cloudkeel_controllers::ControllerName;
use tokio_util::sync::CancellationToken;

use super::elections::lead_when_api_server_ready;
use super::invocation::Start;
use super::leader::ReplicaIdentity;
use super::manager::RunError;
use super::preflight::Environment;
use super::prepare::{ManagerDeps, Prepared, Writes};
use crate::commands::plan::{PlanArgs, SOMETHING_TO_DO, plan_text, progress_text};
use crate::commands::{OutputFormat, Screen};
use crate::dry_run::{DryRunReport, Recorder};
use crate::election::Fence;

/// How often progress is shown.
const PROGRESS_PERIOD: Duration = Duration::from_millis(500);

/// How soon an instance that was not found is looked up again: the first look-up needs a list that backs it.
const MONITOR_PERIOD: Duration = Duration::from_secs(1);

/// A finished plan.
struct Planned {
    report: DryRunReport,
    controllers: Vec<ControllerName>,
}

impl Planned {
    /// A plan that is not finished.
    fn so_far(recorder: &Recorder) -> Self {
        Self {
            report: recorder.report(),
            controllers: ControllerName::ALL.to_vec(),
        }
    }
}

/// Plans, and prints the plan.
pub(super) async fn plan(
    args: &PlanArgs,
    mut start: Start,
    registry: &Registry,
    environment: Environment,
) -> Result<ExitCode, String> {
    start.options.generic.dry_run = true;
    start.options.generic.controller_start_interval = Duration::ZERO;
    let monitor_period = &mut start.options.node.monitor_period;
    *monitor_period = MONITOR_PERIOD.min(*monitor_period);
    let recorder = Arc::<Recorder>::default();
    let planning = run(&start, registry, environment, Arc::clone(&recorder));
    let timed_out = format!(
        "not finished within {:?}; --timeout gives it more time",
        args.timeout
    );
    let planned = tokio::select! {
        biased;
        planned = tokio::time::timeout(args.timeout, Box::pin(planning)) => planned,
        () = show_progress(&recorder) => return Err("progress ended".to_owned()),
    };
    clear_progress();
    let (planned, is_late) = match planned {
        Ok(planned) => (planned.map_err(|error| error.to_string())?, false),
        // What is known by now is shown all the same.
        Err(_) => (Planned::so_far(&recorder), true),
    };
    print(&planned, args.output).map_err(|error| format!("cannot write: {error}"))?;
    let report = &planned.report;
    if is_late {
        return Err(with_failures(timed_out, report));
    }
    if !report.complete {
        let why = "the plan is incomplete: not everything could be read".to_owned();
        return Err(with_failures(why, report));
    }
    Ok(if args.exit_code && !report.is_empty() {
        ExitCode::from(SOMETHING_TO_DO)
    } else {
        ExitCode::SUCCESS
    })
}

fn with_failures(why: String, report: &DryRunReport) -> String {
    let failures = report
        .failures
        .iter()
        .map(|failure| format!("\n  {failure}"));
    std::iter::once(why).chain(failures).collect()
}

async fn run(
    start: &Start,
    registry: &Registry,
    environment: Environment,
    recorder: Arc<Recorder>,
) -> Result<Planned, RunError> {
    let Environment { env, kubeconfig } = environment;
    let writes = Writes::Recorded(Arc::clone(&recorder));
    let connecting = ManagerDeps::of_process(registry, start, kubeconfig.as_deref(), writes);
    let (deps, reports) = connecting.await?;
    let prepared = Box::pin(Prepared::with(&deps, env)).await?;
    let replica = ReplicaIdentity::current();
    let leader = prepared.leader(&replica);
    let controllers = leader.enabled.clone();
    let stop = CancellationToken::new();
    let leading = lead_when_api_server_ready(leader, Some(reports), Fence::always_open(), stop);
    let led = Box::pin(leading).await;
    prepared.close().await;
    led?;
    Ok(Planned {
        report: recorder.report(),
        controllers,
    })
}

fn print(planned: &Planned, output: OutputFormat) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match output {
        OutputFormat::Json => {
            let text =
                serde_json::to_string_pretty(&planned.report).map_err(std::io::Error::other)?;
            writeln!(out, "{text}")
        }
        OutputFormat::Text => {
            let text = plan_text(&planned.report, &planned.controllers, Screen::detect());
            write!(out, "{text}")
        }
    }
}

/// Shows on a terminal how far it has come, for as long as it is polled.
async fn show_progress(recorder: &Recorder) {
    loop {
        tokio::time::sleep(PROGRESS_PERIOD).await;
        let mut errors = std::io::stderr();
        if errors.is_terminal() {
            let _ = write!(errors, "\r\u{1b}[K{}", progress_text(&recorder.report()));
        }
    }
}

fn clear_progress() {
    let mut errors = std::io::stderr();
    if errors.is_terminal() {
        let _ = write!(errors, "\r\u{1b}[K");
    }
}
