//! The cloud of the demo. Its state is described in the types of the local cloud's API, which the page and the
//! scenario use.

#[cfg(feature = "hetzner")]
mod hetzner;
mod local;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_local_cloud::BalancerStats;
use cloudkeel_local_cloud::simulated_cloud::wire::{Balancer, Machine, Route};
use serde_json::Value;

use self::local::Local;
use crate::addresses::Block;
use crate::args::CloudKind;

/// Another project than the demo's, with an instance in it.
const OTHER_PROJECT: &str = "another-project";
const STRANGER: &str = "stranger";

/// The number and address of a new instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    /// Counted from 1.
    pub(crate) number: u8,
    pub(crate) address: IpAddr,
}

/// Calls so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) all: u64,
    pub(crate) mutations: u64,
    /// Those that list or look up instances.
    pub(crate) of_machines: u64,
}

/// A cloud that runs in this process, and whose load balancers carry real traffic.
#[async_trait]
pub(crate) trait Cloud: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;
    /// Its provider.
    fn provider(&self) -> &'static str;
    /// The prefix of its instances' provider IDs.
    fn id_prefix(&self) -> &'static str;
    /// The label of a balancer with the UID of its Service.
    fn service_uid_label(&self) -> &'static str;
    /// Where its API is.
    fn url(&self) -> String;
    /// The configuration of its provider.
    fn config(&self) -> Value;

    fn machines(&self) -> Vec<Machine>;
    fn balancers(&self) -> Vec<Balancer>;
    fn routes(&self) -> Vec<Route>;
    /// The traffic statistics of the load balancers.
    async fn stats(&self) -> Vec<BalancerStats>;
    fn calls(&self) -> Calls;

    /// Creates an instance; returns its ID.
    fn add_machine(&self, place: Place<'_>) -> Result<u64, String>;
    fn power_off(&self, machine: u64) -> Result<(), String>;
    fn power_on(&self, machine: u64) -> Result<(), String>;
    fn destroy(&self, machine: u64) -> Result<(), String>;
    /// Waits until load balancers follow a change of instances.
    async fn settle(&self) -> Result<(), String>;

    /// Fails every request with 503.
    fn break_down(&self);
    /// Makes the managers' token one of another project.
    fn swap_token(&self);
    /// Undoes all failures.
    fn repair(&self);
    fn is_broken(&self) -> bool;
    /// How many resources were created in the other project. It should be zero.
    fn made_elsewhere(&self) -> usize;
}

/// Starts the selected cloud, with its files in this folder.
pub(crate) async fn start(
    kind: CloudKind,
    folder: &Path,
    block: Block,
) -> Result<Arc<dyn Cloud>, String> {
    Ok(match kind {
        CloudKind::Local => Arc::new(Local::start(folder, block).await?),
        #[cfg(feature = "hetzner")]
        CloudKind::Hetzner => Arc::new(hetzner::Hetzner::start(block).await?),
    })
}
