//! One control plane, one cloud, and the programs that run between them.

use std::net::TcpListener;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use cloudkeel_testkit::cluster::NodeBuilder;
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{LocalId, MachineSpec, Served, Settings, SimulatedCloud};
use kube::Client;
use tempfile::TempDir;

use crate::account;
use crate::contestant::{Contestant, Place, Programs};
use crate::process::Running;

/// Everything a contestant meets.
pub struct Stage {
    control_plane: ControlPlane,
    /// The cloud.
    pub cloud: SimulatedCloud,
    served: Served,
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Stage {
    /// An empty cluster and an empty cloud.
    pub async fn build() -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let cloud = SimulatedCloud::new(Settings::default());
        let served = cloud.serve_on_loopback().await?;
        let folder = TempDir::new()?;
        let kubeconfig = account::kubeconfig(&control_plane).await?;
        Ok(Self {
            control_plane,
            cloud,
            served,
            folder,
            kubeconfig,
        })
    }

    /// An administrator's client.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// A machine and its Node, initialised. Returns the ID of the machine.
    pub async fn join(&self, name: &str) -> Result<u64> {
        let machine = self.cloud.add_machine(MachineSpec::named(name));
        let machine = machine.map_err(|refusal| anyhow!("no machine {name}: {refusal:?}"))?;
        let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
        let node = NodeBuilder::new(name)
            .provider_id(id.as_str())
            .initialized();
        let made = node.create(&self.client()).await;
        made.with_context(|| format!("node {name} was not made"))?;
        Ok(machine.id)
    }

    /// Starts a contestant with these controllers, and with these flags besides.
    pub fn start(
        &self,
        programs: &Programs,
        contestant: Contestant,
        controllers: &str,
        flags: &[&str],
    ) -> Result<Running> {
        let place = Place {
            folder: self.folder.path(),
            kubeconfig: &self.kubeconfig,
            cloud: &self.served.url(),
            port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
        };
        let mut command = contestant.command(programs, &place)?;
        command
            .arg(format!("--controllers={controllers}"))
            .args(flags);
        Running::start(command, self.folder.path().join("log"))
    }
}
