//! `cloudkeel demo`, from its command line to its exit code.

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use cloudkeel_local_cloud::serving::{Limits, serve};
use rustix::fs::Mode;
use rustix::process::umask;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{DemoArgs, PageAt};
use crate::lifeline;
use crate::live::{Board, Desk};
use crate::scenario::Scenario;
use crate::screen::{ManagerPlace, Places, Screen};
use crate::world::World;

/// Runs the program as a manager, with all its arguments.
pub type RunManager = fn(Vec<OsString>) -> ExitCode;

/// How long tasks may take to end when everything is over.
const LAST_TASKS: Duration = Duration::from_secs(2);

/// Runs the command with these words, the first of which is its own name.
pub fn main(words: &[String], run_manager: RunManager) -> ExitCode {
    match words.get(1).map(String::as_str) {
        Some(lifeline::MANAGER) => {
            return lifeline::manager(words.get(2..).unwrap_or_default(), run_manager);
        }
        Some(lifeline::SERVER) => return lifeline::server(words.get(2..).unwrap_or_default()),
        _ => {}
    }
    let args = match DemoArgs::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout and is no failure. A reader that went away is none either.
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

/// Runs the demo in a folder that is gone afterwards; false if a step failed.
fn in_a_folder(args: &DemoArgs) -> Result<bool, String> {
    let folder = private_folder()?;
    log_to(&folder.path().join("demo.log"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let done = runtime.block_on(run(args, folder.path()));
    // Whatever writes into the folder ends before it goes.
    runtime.shutdown_timeout(LAST_TASKS);
    match folder.close() {
        // A child that saw the end before us has removed it.
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("the folder of the demo cannot be removed: {error}"))
        }
        _ => done,
    }
}

/// The kubeconfig in it is an administrator's, and the cloud's token lies beside it. So whatever this process
/// and its children write is for this user alone, whatever the umask was.
fn private_folder() -> Result<TempDir, String> {
    umask(Mode::RWXG | Mode::RWXO);
    let folder = tempfile::Builder::new().prefix(lifeline::FOLDER).tempdir();
    folder.map_err(|error| format!("no temporary folder: {error}"))
}

/// The screen is for the scenario; what the cloud and the kubelets log goes into a file.
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
        // A scenario that was cut short has not passed.
        () = signals.any() => Ok(!args.exit),
    };
    world.managers.stop().await;
    outcome
}

/// Shows everything; false if a step failed. Without `--exit` it goes on until somebody ends it.
async fn show(args: &DemoArgs, world: &Arc<World>) -> Result<bool, String> {
    let screen = Arc::new(Screen::new(args.output));
    let scenario = Arc::new(Scenario::default());
    for _ in 0..args.nodes {
        world.fleet.add().await?;
    }
    let page = match args.page {
        PageAt::Off => None,
        PageAt::At(address) => Some(serve_page(address, world, &scenario, &screen).await?),
    };
    screen.places(&places(world, page).await);
    let chapters = &args.scenario.0;
    let mut all_passed = true;
    if chapters.is_empty() {
        world.make_service().await?;
    } else if let Some(verdict) = scenario.play(world, &screen, chapters).await {
        all_passed = verdict.failed == 0;
        if args.exit {
            world.traffic.end().await;
        }
        screen.sum_up(verdict, &world.traffic.count(), scenario.first_answer());
    }
    if !args.exit {
        screen.remark("\nIt goes on until Ctrl-C.");
        std::future::pending::<()>().await;
    }
    Ok(all_passed)
}

async fn serve_page(
    address: SocketAddr,
    world: &Arc<World>,
    scenario: &Arc<Scenario>,
    screen: &Arc<Screen>,
) -> Result<String, String> {
    let failed = |error| format!("the page cannot listen at {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let board = Arc::new(Board::new(Arc::clone(world), Arc::clone(scenario)));
    let desk = Desk::new(Arc::clone(world), Arc::clone(scenario), Arc::clone(screen));
    let desk = Arc::new(desk);
    let router = cloudkeel_page::router(board, Some(desk));
    tokio::spawn(async move {
        // It ends with the demo.
        serve(listener, router, Limits::default(), std::future::pending()).await;
    });
    Ok(format!("http://{address}/"))
}

async fn places(world: &World, page: Option<String>) -> Places {
    let seen = world.managers.look().await;
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
