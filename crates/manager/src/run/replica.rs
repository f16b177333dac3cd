//! A manager without a process around it: no ports and no signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{Clock, Registry};
use cloudkeel_controllers::runtime::EventRecorder;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::Identity;
use super::manager::{Ending, RunError};
use super::prepare::{self, ManagerDeps, Prepared};
use crate::client::ClientFactory;
use crate::health::Health;

/// One of several managers that may live in one process, each with its own way to the API and its own
/// idea of the time. It elects, leads and writes as the manager of a process does.
pub struct Replica {
    /// The command line and the clouds.
    pub start: Start,
    /// The way to the API.
    pub api: Client,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Its name in the lease.
    pub name: String,
    /// What its random choices begin with: the same seed, the same choices.
    pub seed: u64,
}

impl Replica {
    /// Runs until `stop`, or until the lease is lost. Whoever drops this ends everything it does.
    pub async fn run(
        self,
        registry: &Registry,
        stop: CancellationToken,
    ) -> Result<Ending, RunError> {
        let metrics = prepare::metrics(self.clock.as_ref());
        let factory = ClientFactory::around(self.api, metrics.clone());
        let (events, reports) = EventRecorder::channel();
        let health = Health::new(self.clock.now());
        let deps = ManagerDeps {
            registry,
            start: &self.start,
            factory: &factory,
            metrics: &metrics,
            events: &events,
            health: &health,
            clock: self.clock,
        };
        let prepared = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Ending::Stopped),
            prepared = Prepared::with(&deps, BTreeMap::new()) => prepared?,
        };
        let replica = Identity {
            name: self.name,
            seed: self.seed,
        };
        let leader = prepared.leader(&replica);
        let ending = Box::pin(elect_and_lead(leader, reports, stop)).await;
        prepared.close().await;
        ending
    }
}
