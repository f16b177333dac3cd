//! `cloudkeel demo`: a cluster, a cloud with real load balancers, and two managers on one machine.
//!
//! The Kubernetes API, the kubelets and the cloud live in this process; the managers are children of it,
//! as real as in production. A guided scenario shows what they do, and a live page shows it all.

mod addresses;
mod args;
mod cloud;
mod cluster;
mod command;
mod fleet;
mod lifeline;
mod live;
mod managers;
mod probe;
mod real;
mod scenario;
mod screen;
mod settings;
mod traffic;
mod wait;
mod world;

pub use command::{RunManager, main};
