//! The programs that are measured, and how each is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use cloudkeel_testkit::control_plane::{Tool, provide};

use crate::cloud::Cloud;

/// A program that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contestant {
    /// Ours, with its default flags.
    Cloudkeel,
    /// The same in an emulated Hetzner Cloud.
    CloudkeelHcloud,
    /// A CCM on the Go framework, with its default flags.
    Go,
    /// The same with the flags that operators of large clusters set.
    GoTuned,
    /// The Go CCM that looks machines up by their ID one by one, with its default flags.
    GoById,
}

/// What a careful operator of a Go CCM sets: many workers, and hardly a limit of requests.
const TUNED: [&str; 4] = [
    "--concurrent-node-syncs=30",
    "--concurrent-service-syncs=30",
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
];

/// The programs.
#[derive(Debug, Clone)]
pub struct Programs {
    cloudkeel: PathBuf,
    flags: Vec<String>,
    go: Option<PathBuf>,
}

impl Programs {
    /// Our binary with flags of its own, and the Go peer if a contestant needs it, which is built then.
    pub async fn provide(
        cloudkeel: PathBuf,
        flags: Vec<String>,
        contestants: &[Contestant],
    ) -> Result<Self> {
        let needs_go = |contestant: &Contestant| !contestant.is_ours();
        let go = if contestants.iter().any(needs_go) {
            Some(provide(Tool::GoPeer).await?.path)
        } else {
            None
        };
        Ok(Self {
            cloudkeel,
            flags,
            go,
        })
    }
}

/// What a contestant is started with.
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) cloud: &'a Cloud,
    pub(crate) port: u16,
}

impl Contestant {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cloudkeel => "cloudkeel",
            Self::CloudkeelHcloud => "cloudkeel-hcloud",
            Self::Go => "go",
            Self::GoTuned => "go-tuned",
            Self::GoById => "go-by-id",
        }
    }

    /// Whether it is ours.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Cloudkeel | Self::CloudkeelHcloud)
    }

    /// The command line, with the configuration written where it says.
    pub(crate) fn command(self, programs: &Programs, place: &Place<'_>) -> Result<Command> {
        let config = place.folder.join("cloud-config");
        let mut command = match self {
            Self::Cloudkeel | Self::CloudkeelHcloud => {
                std::fs::write(&config, place.cloud.configuration())?;
                let mut command = Command::new(&programs.cloudkeel);
                command.args(&programs.flags);
                command
            }
            Self::Go | Self::GoTuned | Self::GoById => {
                let written = place.cloud.go_configuration(self == Self::GoById);
                let written = written.context("the Go peer does not speak to this cloud")?;
                std::fs::write(&config, written)?;
                let program = programs.go.as_deref();
                let mut command = Command::new(program.context("the Go peer was not built")?);
                command.arg("--cloud-provider=local");
                if self == Self::GoTuned {
                    command.args(TUNED);
                }
                command
            }
        };
        command
            .arg(format!("--kubeconfig={}", place.kubeconfig.display()))
            .arg(format!("--cloud-config={}", config.display()))
            .arg(format!("--secure-port={}", place.port))
            .args(["--bind-address=127.0.0.1", "--authentication-skip-lookup"]);
        Ok(command)
    }
}
