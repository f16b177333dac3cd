//! The cloud of the demo, whichever it is. What it has is described in the types of the local cloud's API: the page
//! and the scenario need no others.

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

/// A project that is not the demo's, with a machine in it.
const OTHER_PROJECT: &str = "another-project";
const STRANGER: &str = "stranger";

/// Where a new machine is, and what it is called.
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
    /// Those that ask for machines.
    pub(crate) of_machines: u64,
}

/// A cloud that runs in this process, and whose balancers carry real traffic.
#[async_trait]
pub(crate) trait Cloud: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;
    /// Its provider.
    fn provider(&self) -> &'static str;
    /// How the provider IDs of its machines begin.
    fn id_prefix(&self) -> &'static str;
    /// The label of a balancer with the UID of its Service.
    fn service_uid_label(&self) -> &'static str;
    /// Where its API is.
    fn url(&self) -> String;
    /// What its provider is configured with.
    fn config(&self) -> Value;

    fn machines(&self) -> Vec<Machine>;
    fn balancers(&self) -> Vec<Balancer>;
    fn routes(&self) -> Vec<Route>;
    /// What the balancers have carried.
    async fn stats(&self) -> Vec<BalancerStats>;
    fn calls(&self) -> Calls;

    /// Makes a machine; returns its ID.
    fn add_machine(&self, place: Place<'_>) -> Result<u64, String>;
    fn power_off(&self, machine: u64) -> Result<(), String>;
    fn power_on(&self, machine: u64) -> Result<(), String>;
    fn destroy(&self, machine: u64) -> Result<(), String>;
    /// Waits until balancers follow what was done to machines.
    async fn settle(&self) -> Result<(), String>;

    /// Answers every call with 503.
    fn break_down(&self);
    /// Makes the managers' token one of another project.
    fn swap_token(&self);
    /// Mends whatever was broken.
    fn mend(&self);
    fn is_broken(&self) -> bool;
    /// How much was made in the other project. Nothing should be.
    fn made_elsewhere(&self) -> usize;
}

/// Starts the cloud that is asked for, with its files in this folder.
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
