//! The command line.

use std::net::SocketAddr;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

use crate::scenario::ScenarioStep;

/// Run a cluster, a cloud and two managers on this machine, with a guided scenario and a live page.
#[derive(Debug, Parser)]
#[command(
    name = "demo",
    bin_name = "cloudkeel demo",
    disable_help_subcommand = true
)]
pub(crate) struct DemoArgs {
    /// How many instances there are at the start.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=50))]
    pub(crate) nodes: u8,
    /// The cloud: the local one, or the emulated Hetzner Cloud with the provider hcloud.
    #[arg(long, value_enum, default_value_t = CloudKind::Local)]
    pub(crate) cloud: CloudKind,
    /// The Kubernetes API: one in this process, or a real etcd and kube-apiserver from `KUBEBUILDER_ASSETS`.
    #[arg(long, value_enum, default_value_t = ControlPlane::Embedded)]
    pub(crate) control_plane: ControlPlane,
    /// The steps to run: `all`, `none`, or a comma list of join, balance, power-off, destroy, outage, wrong-token,
    /// fail-over, roll.
    #[arg(long, default_value = "all")]
    pub(crate) scenario: ScenarioPlan,
    /// Exit after the scenario: with 0 if every step passed, else with 1.
    #[arg(long)]
    pub(crate) exit: bool,
    /// Where the live page is served: a local address, or `off`.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT|off")]
    pub(crate) page: PageAt,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloudKind {
    Local,
    #[cfg(feature = "hetzner")]
    Hetzner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControlPlane {
    Embedded,
    Real,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    /// One line of JSON per event.
    Json,
}

/// Which steps of the scenario run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScenarioPlan(pub(crate) Vec<ScenarioStep>);

impl FromStr for ScenarioPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self(ScenarioStep::ALL.to_vec())),
            "none" => return Ok(Self(Vec::new())),
            _ => {}
        }
        let mut wanted: Vec<ScenarioStep> = text
            .split(',')
            .map(|name| {
                let found = ScenarioStep::ALL
                    .into_iter()
                    .find(|c| c.name() == name.trim());
                found.ok_or_else(|| {
                    let names: Vec<_> = ScenarioStep::ALL.iter().map(|c| c.name()).collect();
                    format!(
                        "{name:?} is not a step of the scenario; expected all, none, or some of {}",
                        names.join(", ")
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        // Every step needs instances and a load balancer.
        wanted.extend([ScenarioStep::Join, ScenarioStep::Balance]);
        let in_order = ScenarioStep::ALL.into_iter().filter(|c| wanted.contains(c));
        Ok(Self(in_order.collect()))
    }
}

/// Where the page is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageAt {
    Off,
    At(SocketAddr),
}

impl FromStr for PageAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "expected `off` or an address such as 127.0.0.1:8090".to_owned())?;
        // Its buttons need no password, so it must stay local.
        if address.ip().is_loopback() {
            Ok(Self::At(address))
        } else {
            Err(format!("{} is not an address of loopback", address.ip()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_in_order_and_complete() {
        for (text, expected) in [
            ("none", Ok(vec![])),
            ("all", Ok(ScenarioStep::ALL.to_vec())),
            (
                "outage,destroy",
                Ok(vec![
                    ScenarioStep::Join,
                    ScenarioStep::Balance,
                    ScenarioStep::Destroy,
                    ScenarioStep::Outage,
                ]),
            ),
            ("flood", Err("\"flood\" is not a step of the scenario")),
        ] {
            match (text.parse::<ScenarioPlan>(), expected) {
                (Ok(ScenarioPlan(got)), Ok(expected)) => assert_eq!(got, expected, "{text}"),
                (Err(got), Err(expected)) => assert!(got.starts_with(expected), "{got}"),
                (got, expected) => panic!("{text}: {got:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn the_page_stays_on_this_machine() {
        for (text, allowed) in [
            ("off", true),
            ("127.0.0.1:0", true),
            ("[::1]:8090", true),
            ("0.0.0.0:80", false),
            ("8090", false),
        ] {
            assert_eq!(text.parse::<PageAt>().is_ok(), allowed, "{text}");
        }
    }
}
