//! `cloudkeel local-cloud`, from its command line to its exit code.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::args::{LocalCloudArgs, Output, RunArgs, Subcommands};
use super::options::Options;
use super::{LocalCloud, running};

/// The arguments of the command.
pub fn command() -> clap::Command {
    LocalCloudArgs::command()
}

/// Runs the command with these words, the first of which is its own name.
pub fn main(words: &[String]) -> ExitCode {
    let args = match LocalCloudArgs::try_parse_from(words) {
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(act(&args));
            runtime.shutdown_background();
            done
        }
        Err(problem) => Err(format!("cannot start: {problem}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn act(args: &LocalCloudArgs) -> Result<(), String> {
    match &args.command {
        None => run(&args.run).await,
        Some(Subcommands::Stop(args)) => running::stop(args).await,
        Some(Subcommands::Status(args)) => running::status(args).await,
    }
}

async fn run(args: &RunArgs) -> Result<(), String> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .init();
    let options = args.options()?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| e.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| e.to_string())?;
    let local = LocalCloud::start(&options).await;
    let local = local.map_err(|error| error.to_string())?;
    let greeting = greeting(&local, &options, args.output).await;
    // The parent process may not read the output; the cloud runs anyway.
    let _ = writeln!(std::io::stdout(), "{}", greeting.trim_end());
    let asked = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = local.stop().cancelled() => {}
        }
    };
    asked.await;
    info!("shutting down, open connections may finish");
    let again = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::select! {
        () = local.close() => {}
        () = again => warn!("second signal, exiting immediately"),
    }
    Ok(())
}

async fn greeting(local: &LocalCloud, options: &Options, output: Output) -> String {
    let stats = local.stats().await;
    let (cloud, contact) = (local.cloud(), local.contact());
    let (machines, balancers) = (cloud.machines().len(), cloud.balancers().len());
    let state = &options.files.state;
    if output == Output::Json {
        let greeting = json!({
            "url": contact.url,
            "pid": contact.pid,
            "tokenFile": contact.token_file,
            "state": state,
            "machines": machines,
            "balancers": balancers,
            "addresses": options.addresses.public(),
            "routes": {"kernel": stats.routes.kernel, "reason": stats.routes.reason},
        });
        return greeting.to_string();
    }
    let routes = match &stats.routes.reason {
        None => "in the kernel, marked with protocol 207".to_owned(),
        Some(reason) => format!("only in the table: {reason}"),
    };
    let addresses = options.addresses.public();
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let mut text = String::from("The local cloud is running.\n");
    for (name, value) in [
        (
            "API",
            format!(
                "{}  (token in {})",
                contact.url,
                contact.token_file.display()
            ),
        ),
        (
            "state",
            format!(
                "{}  ({machines} machines, {balancers} load balancers)",
                state.display()
            ),
        ),
        ("addresses", addresses.join(", ")),
        ("routes", routes),
        (
            "stop",
            format!("cloudkeel local-cloud stop --state {}", state.display()),
        ),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:10} {value}");
    }
    for balancer in cloud.balancers() {
        for problem in balancer.problems {
            let _ = writeln!(text, "  problem    balancer {}: {problem}", balancer.id);
        }
    }
    text
}
