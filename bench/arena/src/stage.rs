//! One control plane, one cloud, and the programs that run between them.

use std::net::TcpListener;
use std::path::PathBuf;

use anyhow::Result;
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{Served, Settings, SimulatedCloud};
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
        let kubeconfig = account::kubeconfig(&control_plane, folder.path()).await?;
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
