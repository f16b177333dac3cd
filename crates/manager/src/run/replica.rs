//! A manager inside another process: no ports and no signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{Clock, Registry};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::elections::elect_and_lead;
use super::invocation::Start;
use super::leader::ReplicaIdentity;
use super::manager::{Ending, RunError};
use super::prepare::{ManagerDeps, Prepared};
use crate::config::Setup;
use crate::election::BackgroundTasks;

/// One of several managers in one process, each with its own API client and its own clock. It elects, leads and
/// writes as the manager of a process does.
pub struct Replica {
    /// The command line and the clouds.
    pub start: Start,
    /// The API client.
    pub api: Client,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Its name in the lease.
    pub name: String,
    /// The seed of its random choices: the same seed gives the same choices.
    pub seed: u64,
    /// How it starts what runs beside [`Replica::run`]: the tasks of its elections.
    pub background: BackgroundTasks,
    /// Reads the clouds' settings again, every `--cloud-reload-period`; without it they stay as they are.
    pub reload: Option<Reload>,
}

/// Reads the clouds' settings again.
pub type Reload = Arc<dyn Fn() -> Result<Setup, String> + Send + Sync>;

impl Replica {
    /// Runs until `stop`, or until the lease is lost. Dropping the future ends everything it does.
    pub async fn run(
        self,
        registry: &Registry,
        stop: CancellationToken,
    ) -> Result<Ending, RunError> {
        let (deps, reports) = ManagerDeps::around(registry, &self.start, self.api, self.clock);
        let mut prepared = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Ending::Stopped),
            prepared = Prepared::with(&deps, BTreeMap::new()) => prepared?,
        };
        let replica = ReplicaIdentity {
            name: self.name,
            seed: self.seed,
            background: self.background,
        };
        let reloadable = std::mem::take(&mut prepared.reloadable);
        let leader = prepared.leader(&replica);
        let options = &self.start.options;
        let load = || match &self.reload {
            Some(load) => load(),
            None => Ok(self.start.setup.clone()),
        };
        let keep_current = prepared.builder.keep_current(reloadable, options, &load);
        let ending = tokio::select! {
            biased;
            ending = Box::pin(elect_and_lead(leader, reports, stop)) => ending,
            never = Box::pin(keep_current) => match never {},
        };
        prepared.close().await;
        ending
    }
}
