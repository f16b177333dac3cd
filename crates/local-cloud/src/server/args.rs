//! The command line of `cloudkeel local-cloud`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cloudkeel_api::parse_go_duration;
use ipnet::IpNet;

use super::lock::Files;
use super::options::{Addresses, Options};
use crate::plane::PlaneSettings;
use crate::routes::RouteMode;

/// Run a small cloud on this machine, with real load balancers.
#[derive(Debug, Parser)]
#[command(
    name = "local-cloud",
    bin_name = "cloudkeel local-cloud",
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(super) struct LocalCloudArgs {
    #[command(subcommand)]
    pub(super) command: Option<Subcommands>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Subcommands {
    /// End a running local cloud; its connections may finish within its drain time.
    Stop(ElsewhereArgs),
    /// Show the local clouds of this user, and what they do.
    Status(ElsewhereArgs),
}

/// Which cloud is meant.
#[derive(Debug, Args)]
pub(super) struct ElsewhereArgs {
    /// The state file of the cloud; without it, all in the usual folder are looked at.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// How long to wait for its end.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub(super) timeout: Duration,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Output,
}

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Output {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Where the REST API listens; by default where it was before, or any free port of loopback.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where everything is written down; by default in `$XDG_STATE_HOME/cloudkeel`.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Holds the token of the REST API; made if it is not there. By default beside the state.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Machines to have, as YAML. Those of an earlier file that are not in it any more go.
    #[arg(long, value_name = "FILE")]
    machines: Option<PathBuf>,
    /// Have a machine for every Node of the cluster, for kind and k3s.
    #[arg(long)]
    machines_from_nodes: bool,
    /// The cluster for --machines-from-nodes; by default `$KUBECONFIG`, or the one around us.
    #[arg(long, value_name = "FILE", requires = "machines_from_nodes")]
    kubeconfig: Option<PathBuf>,
    /// Where load balancers get their addresses from, once for IPv4 and once for IPv6.
    #[arg(long, value_name = "CIDR", default_value = "127.0.10.0/24")]
    addresses: Vec<IpNet>,
    /// The same for internal load balancers; by default the same networks.
    #[arg(long, value_name = "CIDR")]
    internal_addresses: Vec<IpNet>,
    /// The region of everything.
    #[arg(long, value_name = "NAME", default_value = "local")]
    region: String,
    /// How long connections may live on when their target or load balancer goes.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    drain_time: Duration,
    /// How long a client of UDP may be silent until it is forgotten.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    udp_idle: Duration,
    /// Where routes are kept.
    #[arg(long, value_enum, default_value_t)]
    routes: RouteMode,
    /// Let faults and settings be steered under /control, without a token.
    #[arg(long)]
    control: bool,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Output,
}

impl RunArgs {
    /// What is meant. On failure: what is wrong.
    pub(super) fn options(&self) -> Result<Options, String> {
        let state = match &self.state {
            Some(path) => path.clone(),
            None => state_folder()?.join("local-cloud.json"),
        };
        Ok(Options {
            files: Files::of(state),
            listen: self.listen,
            token_file: self.token_file.clone(),
            machines: self.machines.clone(),
            machines_from_nodes: self.machines_from_nodes,
            kubeconfig: self.kubeconfig.clone(),
            addresses: Addresses::read(&self.addresses, &self.internal_addresses)?,
            region: self.region.clone(),
            plane: PlaneSettings {
                drain: self.drain_time,
                udp_idle: self.udp_idle,
            },
            routes: self.routes,
            control: self.control,
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_go_duration(text).ok_or_else(|| "expected a duration such as `30s` or `1m`".to_owned())
}

/// The default folder of state files.
pub(super) fn state_folder() -> Result<PathBuf, String> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = given("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(given("HOME")?).join(".local/state")));
    let base = base.ok_or("--state: is required, as neither XDG_STATE_HOME nor HOME is set")?;
    Ok(base.join("cloudkeel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words = std::iter::once("local-cloud").chain(line.split_whitespace());
        let args = LocalCloudArgs::try_parse_from(words).map_err(|error| error.to_string())?;
        args.run.options()
    }

    #[test]
    fn what_is_left_out_is_as_usual() {
        let options = read("--state /x/state.json").unwrap();
        let usual = Options::of("/x/state.json".into());
        assert_eq!(format!("{options:?}"), format!("{usual:?}"));
    }

    #[test]
    fn mistakes_name_the_flag_and_what_would_be_right() {
        for (line, expected) in [
            ("--drain-time soon", "expected a duration such as `30s`"),
            ("--kubeconfig x", "--machines-from-nodes"),
            ("--addresses 10.0.0.1/24 --state x", "such as 10.0.0.0/24"),
            ("--routes maybe", "auto, kernel, table"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
