//! `cloudkeel emulate`: an emulated cloud on this machine, for trials and tests.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use cloudkeel_api::{Clock as _, SystemClock, parse_go_duration};
use cloudkeel_emulator_hetzner::{HetznerCloud, Permission, ServerSpec, Settings};
use ipnet::Ipv4Net;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Run an emulated cloud on this machine, for trials and tests.
#[derive(Debug, Parser)]
#[command(
    name = "emulate",
    bin_name = "cloudkeel emulate",
    disable_help_subcommand = true
)]
struct EmulateArgs {
    #[command(subcommand)]
    cloud: Cloud,
}

#[derive(Debug, Subcommand)]
enum Cloud {
    /// The Hetzner Cloud API and the Robot web service.
    Hetzner(HetznerArgs),
}

#[derive(Debug, Args)]
struct HetznerArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The token that may do everything.
    #[arg(long, default_value = HetznerCloud::TOKEN)]
    token: String,
    /// How many running servers, named node-1 and so on, there are from the start.
    #[arg(long, default_value_t = 3)]
    servers: usize,
    /// Addresses of the network `kube`, which the servers are in.
    #[arg(long, default_value = "10.0.0.0/16")]
    network: Ipv4Net,
    /// How long actions take, such as 500ms.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    action_duration: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_go_duration(text).ok_or_else(|| "expected a duration such as 500ms or 2s".to_owned())
}

/// The arguments of the command.
pub(crate) fn command() -> clap::Command {
    EmulateArgs::command()
}

/// Runs the command with all arguments of the program.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let own = arguments.iter().skip(1);
    let Cloud::Hetzner(args) = match EmulateArgs::try_parse_from(own) {
        Ok(args) => args.cloud,
        Err(error) => {
            let failed = error.use_stderr();
            // A closed pipe is no failure.
            let _ = error.print();
            return ExitCode::from(u8::from(failed));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(|error| format!("cannot start: {error}"))
        .and_then(|runtime| runtime.block_on(serve(&args)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGINT or SIGTERM.
async fn serve(args: &HetznerArgs) -> Result<(), String> {
    let cloud = emulator(args)?;
    let address = (Ipv4Addr::LOCALHOST, args.port);
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let port = args.port;
        format!("cannot listen on 127.0.0.1:{port}: {error}; --port=0 takes a free port")
    })?;
    let served = cloud
        .serve(listener)
        .map_err(|error| format!("cannot serve: {error}"))?;
    let text = format!(
        "HCLOUD_ENDPOINT={}\nHCLOUD_TOKEN={}\nHCLOUD_NETWORK=kube\n\
         # Robot: {}\n# to steer it: http://{}/control\n",
        served.api_url(),
        args.token,
        served.robot_url(),
        served.address(),
    );
    // It serves even if the output is closed.
    let _ = std::io::stdout().write_all(text.as_bytes());
    asked_to_end()
        .await
        .map_err(|error| format!("cannot listen for signals: {error}"))
}

/// The cloud with what it has from the start.
fn emulator(args: &HetznerArgs) -> Result<HetznerCloud, String> {
    let settings = Settings {
        action_duration: args.action_duration,
        ..Settings::default()
    };
    let cloud = HetznerCloud::starting_at(settings, SystemClock.now());
    cloud.revoke(HetznerCloud::TOKEN);
    cloud.grant(&args.token, HetznerCloud::PROJECT, Permission::ReadWrite);
    let network = cloud.add_network("kube", args.network);
    let network = network.map_err(|refusal| format!("--network: {refusal}"))?;
    for number in 1..=args.servers {
        let spec = ServerSpec::named(format!("node-{number}")).in_network(network.id);
        let added = cloud.add_server(spec);
        added.map_err(|refusal| format!("--servers: {}: {refusal}", args.servers))?;
    }
    Ok(cloud)
}

async fn asked_to_end() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
