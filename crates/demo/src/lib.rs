//! `cloudkeel demo`: a cluster, a cloud with real load balancers, and two managers on one host.
//!
//! The Kubernetes API, the kubelets and the cloud run in this process; the managers are child processes, as in
//! production. A guided scenario shows what they do, and a live page shows the state.

mod addresses;
mod args;
mod children;
mod cloud;
mod cluster;
mod command;
mod control_plane;
mod fleet;
mod live;
mod managers;
mod polling;
mod probe;
mod scenario;
mod settings;
mod terminal;
mod traffic;
mod world;

pub use command::{RunManager, command, main};
