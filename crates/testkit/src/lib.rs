//! Test support shared by the crates of this workspace.
//!
//! | module | feature | what it gives |
//! |---|---|---|
//! | [`conformance`] | `conformance` | what every provider must do, as checks for any of them |
//! | [`control_plane`] | `control-plane` | a real etcd and kube-apiserver, started for a test and gone with it |
//! | [`cluster`] | `control-plane` | Nodes as kubelets write them, Services, and waiting for a condition |
//! | [`either_api`] | `both-apis` | one suite on the real API server and on the embedded one |
//! | [`namespaces`] | `namespaces` | tests that need root, in network namespaces of their own, and nodes in others |
//! | [`simulated_cloud`] | `simulated-cloud` | a small but real cloud with a REST API, faults by script and time by tokio |
//! | [`vcsim`] | `vcsim` | simulated vCenters, for the tests of the tier `vsphere` |

#[cfg(feature = "control-plane")]
pub mod cluster;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "control-plane")]
pub mod control_plane;
#[cfg(feature = "both-apis")]
pub mod either_api;
#[cfg(feature = "namespaces")]
pub mod namespaces;
/// The simulated cloud. It has a crate of its own, because the local cloud is the same one with real
/// proxies, and a program that is shipped builds nothing of the test kit.
#[cfg(feature = "simulated-cloud")]
pub use cloudkeel_local_cloud::simulated_cloud;
#[cfg(feature = "vcsim")]
pub mod vcsim;
