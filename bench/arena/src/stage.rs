//! One control plane, one cloud, and the programs that run between them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cloudkeel_testkit::cluster::NodeBuilder;
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use kube::Client;
use tempfile::TempDir;

use crate::account;
use crate::cloud::{Calls, Cloud, simulated};
use crate::contestant::{Contestant, Place, Programs};
use crate::process::Running;

/// What a contestant runs against.
pub struct Stage {
    control_plane: ControlPlane,
    /// The simulated cloud. Of no use to contestants that have another one.
    pub cloud: SimulatedCloud,
    contestant_cloud: Cloud,
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Stage {
    /// An empty cluster and an empty simulated cloud.
    pub async fn build() -> Result<Self> {
        Self::build_for(Contestant::Cloudkeel).await
    }

    /// An empty cluster and the empty cloud of this contestant.
    pub async fn build_for(contestant: Contestant) -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let cloud = simulated();
        let contestant_cloud = match contestant {
            Contestant::CloudkeelHcloud => Cloud::hetzner().await?,
            Contestant::Cloudkeel | Contestant::Go | Contestant::GoTuned | Contestant::GoById => {
                Cloud::simulated(cloud.clone()).await?
            }
        };
        let folder = TempDir::new()?;
        let kubeconfig = account::kubeconfig(&control_plane).await?;
        Ok(Self {
            control_plane,
            cloud,
            contestant_cloud,
            folder,
            kubeconfig,
        })
    }

    /// An administrator's client.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// Creates an instance and its initialised Node. Returns the ID of the instance.
    pub async fn join(&self, name: &str) -> Result<u64> {
        let (machine, id) = self.contestant_cloud.add_machine(name)?;
        let node = NodeBuilder::new(name).provider_id(&id).initialized();
        let created = node.create(&self.client()).await;
        created.with_context(|| format!("node {name} was not created"))?;
        Ok(machine)
    }

    /// Deletes an instance in its cloud.
    pub fn destroy(&self, machine: u64) -> Result<()> {
        self.contestant_cloud.destroy(machine)
    }

    /// The instances that are targets of each balancer of the cloud.
    pub fn targets(&self) -> Vec<BTreeSet<u64>> {
        self.contestant_cloud.targets()
    }

    /// How often the cloud was asked since the last reset.
    pub fn calls(&self) -> Calls {
        self.contestant_cloud.calls()
    }

    /// Counts from now on.
    pub fn reset_calls(&self) {
        self.contestant_cloud.reset_calls();
    }

    /// How long the cloud takes for an answer from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.contestant_cloud.set_latency(latency);
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
            cloud: &self.contestant_cloud,
            port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
        };
        let mut command = contestant.command(programs, &place)?;
        command
            .arg(format!("--controllers={controllers}"))
            .args(flags);
        let log = format!("log-{}", place.port);
        Running::start(command, self.folder.path().join(log))
    }
}
