//! `cloudkeel demo`, from its command line to its exit code.

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};
use cloudkeel_local_cloud::serving::{Limits, serve};
use rustix::fs::Mode;
use rustix::process::umask;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{DemoArgs, PageAt};
use crate::children;
use crate::live::{DemoButtons, DemoPage};
use crate::scenario::Scenario;
use crate::terminal::{ManagerPlace, Places, Terminal};
use crate::world::World;

/// Runs the program as a manager, with all its arguments.
pub type RunManager = fn(Vec<OsString>) -> ExitCode;

/// How long tasks may take to stop at the end.
const TASKS_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The arguments of the command.
pub fn command() -> clap::Command {
    DemoArgs::command()
}

/// Runs the command with these words, the first of which is its own name.
pub fn main(words: &[String], run_manager: RunManager) -> ExitCode {
    match words.get(1).map(String::as_str) {
        Some(children::MANAGER) => {
            return children::manager(words.get(2..).unwrap_or_default(), run_manager);
        }
        Some(children::SERVER) => return children::server(words.get(2..).unwrap_or_default()),
        _ => {}
    }
    let args = match DemoArgs::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout and is no failure. Neither is a closed pipe.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match in_a_folder(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo in a temporary folder; false if a step failed.
fn in_a_folder(args: &DemoArgs) -> Result<bool, String> {
    let folder = private_folder()?;
    log_to(&folder.path().join("demo.log"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let done = runtime.block_on(run(args, folder.path()));
    // Everything that writes into the folder has to end before it is removed.
    runtime.shutdown_timeout(TASKS_STOP_TIMEOUT);
    match folder.close() {
        // A child that saw the end first has removed it.
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("the folder of the demo cannot be removed: {error}"))
        }
        _ => done,
    }
}

/// The folder contains an administrator's kubeconfig and the cloud's token. So the files of this process and its
/// children are readable by this user only, whatever the umask was.
fn private_folder() -> Result<TempDir, String> {
    umask(Mode::RWXG | Mode::RWXO);
    let folder = tempfile::Builder::new().prefix(children::FOLDER).tempdir();
    folder.map_err(|error| format!("no temporary folder: {error}"))
}

/// The terminal is for the scenario; the logs of the cloud and the kubelets go into a file.
fn log_to(path: &Path) -> Result<(), String> {
    let file = std::fs::File::create(path);
    let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    tracing_subscriber::fmt()
        .with_writer(file)
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .init();
    Ok(())
}

async fn run(args: &DemoArgs, folder: &Path) -> Result<bool, String> {
    let mut signals = Signals::new()?;
    let world = tokio::select! {
        world = World::start(args, folder) => Arc::new(world?),
        () = signals.any() => return Ok(!args.exit),
    };
    let outcome = tokio::select! {
        outcome = show(args, &world) => outcome,
        // A scenario that was interrupted has not passed.
        () = signals.any() => Ok(!args.exit),
    };
    world.managers.stop().await;
    outcome
}

/// Runs everything; false if a step failed. Without `--exit` it runs until it is interrupted.
async fn show(args: &DemoArgs, world: &Arc<World>) -> Result<bool, String> {
    let terminal = Arc::new(Terminal::new(args.output));
    let scenario = Arc::new(Scenario::default());
    for _ in 0..args.nodes {
        world.fleet.add().await?;
    }
    let page = match args.page {
        PageAt::Off => None,
        PageAt::At(address) => Some(serve_page(address, world, &scenario, &terminal).await?),
    };
    terminal.places(&places(world, page).await);
    let steps = &args.scenario.0;
    let mut all_passed = true;
    if steps.is_empty() {
        world.make_service().await?;
    } else if let Some(result) = scenario.play(world, &terminal, steps).await {
        all_passed = result.failed == 0;
        if args.exit {
            world.traffic.end().await;
        }
        terminal.sum_up(result, &world.traffic.count(), scenario.first_answer());
    }
    if !args.exit {
        terminal.remark("\nIt goes on until Ctrl-C.");
        std::future::pending::<()>().await;
    }
    Ok(all_passed)
}

async fn serve_page(
    address: SocketAddr,
    world: &Arc<World>,
    scenario: &Arc<Scenario>,
    terminal: &Arc<Terminal>,
) -> Result<String, String> {
    let failed = |error| format!("the page cannot listen at {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let page = Arc::new(DemoPage::new(Arc::clone(world), Arc::clone(scenario)));
    let buttons = DemoButtons::new(
        Arc::clone(world),
        Arc::clone(scenario),
        Arc::clone(terminal),
    );
    let buttons = Arc::new(buttons);
    let router = cloudkeel_page::router(page, Some(buttons));
    tokio::spawn(async move {
        // It ends with the demo.
        serve(listener, router, Limits::default(), std::future::pending()).await;
    });
    Ok(format!("http://{address}/"))
}

async fn places(world: &World, page: Option<String>) -> Places {
    let seen = world.managers.poll().await;
    let managers = seen.into_iter().filter_map(|seen| {
        Some(ManagerPlace {
            name: seen.name,
            pid: seen.pid?,
            page: seen.page,
        })
    });
    let logs = world.managers.logs().into_iter();
    Places {
        kubernetes: world.cluster.url.clone(),
        kubeconfig: world.kubeconfig.display().to_string(),
        cloud: world.cloud.url(),
        page,
        folder: world.folder.display().to_string(),
        managers: managers.collect(),
        logs: logs.map(|log| log.display().to_string()).collect(),
    }
}

/// The signals that end the demo.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("no signals: {error}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
