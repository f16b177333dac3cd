//! Test support shared by the crates of this workspace.
//!
//! | module | feature | what it gives |
//! |---|---|---|
//! | [`control_plane`] | `control-plane` | a real etcd and kube-apiserver, started for a test and gone with it |
//! | [`cluster`] | `control-plane` | Nodes as kubelets write them, Services, and waiting for a condition |
//! | [`hetzner`] | `hetzner` | the Hetzner Cloud and Robot APIs on loopback |
//! | [`simulated_cloud`] | `simulated-cloud` | a small but real cloud with a REST API, faults by script and time by tokio |

#[cfg(feature = "control-plane")]
pub mod cluster;
#[cfg(feature = "control-plane")]
pub mod control_plane;
#[cfg(feature = "hetzner")]
pub mod hetzner;
#[cfg(feature = "simulated-cloud")]
pub mod simulated_cloud;
