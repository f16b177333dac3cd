//! Where the programs of the control plane come from.
//!
//! A program is taken from the directory `KUBEBUILDER_ASSETS`, else from `PATH`, else from the cache;
//! if it is in none of them it is built once, with Go, from the modules pinned in
//! `control-plane-build/`, or from our own source in `go/`, and kept in the cache for every later run.

mod build;
mod cache;
mod error;
mod lookup;

use std::path::PathBuf;

use build::Build;
pub use cache::KUBERNETES_VERSION;
use cache::Module;
pub use error::ToolError;
use lookup::{Found, Surroundings};

use super::notice::notice;
use super::unmet;

/// A program that the control plane, or a test of it, needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The store behind the API server.
    Etcd,
    /// The Kubernetes API server.
    KubeApiserver,
    /// Runs the controllers that are no cloud's; in a leader migration, beside a cloud-controller-manager.
    KubeControllerManager,
    /// The command-line client.
    Kubectl,
    /// A candidate for a Lease that runs Go's own leader election. It is our own program.
    LeaseCandidate,
    /// Makes the calls of hcloud-cloud-controller-manager with Hetzner's own Go client. It is our own
    /// program.
    HcloudProbe,
    /// Makes the calls of digitalocean-cloud-controller-manager with DigitalOcean's own Go client. It is our own
    /// program.
    GodoProbe,
    /// A cloud-controller-manager on the Go framework, over the simulated cloud. It is our own program.
    GoPeer,
    /// Renders and checks our chart. It runs where no cluster is, too.
    Helm,
}

impl Tool {
    /// The file name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::LeaseCandidate => "lease-candidate",
            Self::HcloudProbe => "hcloud-probe",
            Self::GodoProbe => "godo-probe",
            Self::GoPeer => "go-peer",
            Self::Helm => "helm",
        }
    }

    /// The Go package whose `main` it is.
    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
            Self::LeaseCandidate | Self::GoPeer | Self::HcloudProbe | Self::GodoProbe => ".",
        }
    }

    /// The Go module that has the package, or requires the one that has it.
    fn module(self) -> &'static Module {
        match self {
            Self::Etcd | Self::KubeApiserver | Self::Kubectl => &cache::CONTROL_PLANE,
            Self::KubeControllerManager => &cache::KUBE_CONTROLLER_MANAGER,
            Self::LeaseCandidate => &cache::LEASE_CANDIDATE,
            Self::HcloudProbe => &cache::HCLOUD_PROBE,
            Self::GodoProbe => &cache::GODO_PROBE,
            Self::GoPeer => &cache::GO_PEER,
            Self::Helm => &cache::HELM,
        }
    }
}

/// Who put a program where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The directory `KUBEBUILDER_ASSETS`.
    Assets,
    /// A directory of `PATH`.
    Path,
    /// This crate, which built it from the pinned modules.
    Built,
}

/// A program that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The executable file.
    pub path: PathBuf,
    /// Where it came from, and so whether its version is ours or the machine's.
    pub origin: Origin,
}

/// The program if it is there now; nothing is built.
pub fn locate(tool: Tool) -> Option<Located> {
    match lookup::find(tool, &Surroundings::of_this_process()) {
        Ok(Found::Program(located)) => Some(located),
        Ok(Found::Buildable { .. }) | Err(_) => None,
    }
}

/// The program, built first if it is nowhere yet.
///
/// A build takes minutes; other processes that need the same program wait for it instead of starting
/// their own.
pub async fn provide(tool: Tool) -> Result<Located, ToolError> {
    let found = lookup::find(tool, &Surroundings::of_this_process());
    match found.inspect_err(unmet::print_if_missing_tool)? {
        Found::Program(located) => Ok(located),
        Found::Buildable { go, into } => {
            let build = Build {
                tool,
                go: &go,
                into: &into,
                say: &notice,
            };
            build.run().await
        }
    }
}
