//! The cloud of a stage, as far as a benchmark has to know which one it is.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, anyhow};
use cloudkeel_emulator_hetzner::{self as hetzner, Destination, HetznerCloud, ServerSpec};
use cloudkeel_testkit::simulated_cloud::wire::TargetAt;
use cloudkeel_testkit::simulated_cloud::{LocalId, MachineSpec, Served, Settings, SimulatedCloud};

/// One of the clouds that a stage can have, on loopback.
pub(crate) enum Cloud {
    /// The simulated one, which the Go peer speaks too.
    Simulated(SimulatedCloud, Served),
    /// An emulator of Hetzner's.
    Hetzner(HetznerCloud, hetzner::Served),
}

/// How often a cloud was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// In all.
    pub total: u64,
    /// To change something.
    pub mutating: u64,
}

impl Cloud {
    pub(crate) async fn simulated(cloud: SimulatedCloud) -> Result<Self> {
        let served = cloud.serve_on_loopback().await?;
        Ok(Self::Simulated(cloud, served))
    }

    pub(crate) async fn hetzner() -> Result<Self> {
        let cloud = HetznerCloud::new(hetzner::Settings {
            // Its clock goes on while nothing is measured.
            rate_limit: None,
            ..hetzner::Settings::default()
        });
        let served = cloud.serve_on_loopback().await?;
        Ok(Self::Hetzner(cloud, served))
    }

    /// Our configuration for it.
    pub(crate) fn configuration(&self) -> String {
        let (provider, config) = match self {
            Self::Simulated(_, served) => {
                let (url, token) = (served.url(), SimulatedCloud::TOKEN);
                ("local", format!("{{endpoint: \"{url}\", token: {token}}}"))
            }
            Self::Hetzner(_, served) => {
                let (url, token) = (served.api_url(), HetznerCloud::TOKEN);
                let balancers = "{location: fsn1, type: lb31}";
                let config =
                    format!("{{endpoint: \"{url}\", token: {token}, loadBalancers: {balancers}}}");
                ("hcloud", config)
            }
        };
        format!(
            "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: sim\n  provider: \
             {provider}\n  config: {config}\n"
        )
    }

    /// The configuration of the Go peer.
    pub(crate) fn go_configuration(&self, by_id: bool) -> Option<String> {
        match self {
            Self::Simulated(_, served) => {
                let config = serde_json::json!({
                    "endpoint": served.url(), "token": SimulatedCloud::TOKEN, "lookUp": by_id,
                });
                Some(config.to_string())
            }
            Self::Hetzner(..) => None,
        }
    }

    /// A new machine: its number, and the provider ID of its Node.
    pub(crate) fn add_machine(&self, name: &str) -> Result<(u64, String)> {
        match self {
            Self::Simulated(cloud, _) => {
                let machine = cloud.add_machine(MachineSpec::named(name));
                let machine =
                    machine.map_err(|refusal| anyhow!("no machine {name}: {refusal:?}"))?;
                let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
                Ok((machine.id, id.as_str().to_owned()))
            }
            Self::Hetzner(cloud, _) => {
                let server = cloud.add_server(ServerSpec::named(name))?;
                Ok((server.id, format!("hcloud://{}", server.id)))
            }
        }
    }

    pub(crate) fn destroy(&self, machine: u64) -> Result<()> {
        match self {
            Self::Simulated(cloud, _) => cloud
                .destroy(machine)
                .map_err(|refusal| anyhow!("machine {machine}: {refusal:?}")),
            Self::Hetzner(cloud, _) => Ok(cloud.destroy_server(machine)?),
        }
    }

    /// The machines that each balancer leads to.
    pub(crate) fn targets(&self) -> Vec<BTreeSet<u64>> {
        match self {
            Self::Simulated(cloud, _) => {
                let balancers = cloud.balancers().into_iter();
                let machines = |at| match at {
                    TargetAt::Machine(id) => Some(id),
                    TargetAt::Ip(_) => None,
                };
                balancers
                    .map(|b| b.targets.iter().filter_map(|t| machines(t.at)).collect())
                    .collect()
            }
            Self::Hetzner(cloud, _) => {
                let balancers = cloud.load_balancers().into_iter();
                let servers = |to: &Destination| match to {
                    Destination::Server(id) => Some(*id),
                    Destination::LabelSelector(_) | Destination::Ip(_) => None,
                };
                balancers
                    .map(|b| b.targets.iter().filter_map(|t| servers(&t.to)).collect())
                    .collect()
            }
        }
    }

    pub(crate) fn calls(&self) -> Calls {
        let (total, mutating) = match self {
            Self::Simulated(cloud, _) => (cloud.calls().total(), cloud.calls().mutations()),
            Self::Hetzner(cloud, _) => (cloud.calls().total(), cloud.calls().mutations()),
        };
        Calls { total, mutating }
    }

    pub(crate) fn reset_calls(&self) {
        match self {
            Self::Simulated(cloud, _) => cloud.reset_calls(),
            Self::Hetzner(cloud, _) => cloud.reset_calls(),
        }
    }

    /// How long every answer takes from now on.
    pub(crate) fn set_latency(&self, latency: Duration) {
        match self {
            Self::Simulated(cloud, _) => {
                cloud.change_settings(|settings| settings.latency.fixed = latency);
            }
            Self::Hetzner(cloud, _) => {
                cloud.change_settings(|settings| settings.latency.fixed = latency);
            }
        }
    }
}

/// The simulated cloud with its default settings.
pub(crate) fn simulated() -> SimulatedCloud {
    SimulatedCloud::new(Settings::default())
}
