//! A manager without a process around it: no ports and no signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{Clock, Registry};
use cloudkeel_controllers::runtime::EventRecorder;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::balancing::Balancing;
use super::clouds::{CloudBuilder, CloudParts};
use super::controllers::wanted;
use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::{Identity, LeaderParts};
use super::manager::{Ending, RunError, select};
use crate::background;
use crate::client::ClientFactory;
use crate::health::Health;
use crate::metrics::{BuildInfo, Metrics};

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
        let Start { options, setup, .. } = &self.start;
        let build = BuildInfo::of_version(env!("CARGO_PKG_VERSION"));
        let metrics = Metrics::new(&build, self.clock.now());
        let factory = ClientFactory::around(self.api, metrics.clone());
        let (events, reports) = EventRecorder::channel();
        let parts = CloudParts {
            options,
            client: factory.unfenced("start")?,
            metrics: &metrics,
            events: &events,
            clock: Arc::clone(&self.clock),
            env: BTreeMap::new(),
        };
        let builder = CloudBuilder::new(registry, parts).await;
        let reloadable = builder.build_all(setup).await?;
        let clouds: Vec<_> = reloadable.iter().map(|it| Arc::clone(&it.cloud)).collect();
        let selection = select(options, &clouds)?;
        let replica = Identity {
            name: self.name,
            seed: self.seed,
        };
        let leader = LeaderParts {
            options,
            factory: &factory,
            clouds: &clouds,
            balancing: &Balancing::of(setup, builder.cluster.clone()),
            wanted: wanted(&selection, options, &clouds, registry),
            provided: background::selected(&selection, &clouds),
            metrics: &metrics,
            health: &Health::new(self.clock.now()),
            events: &events,
            clock: Arc::clone(&self.clock),
            replica: &replica,
        };
        let ending = Box::pin(elect_and_lead(leader, reports, stop)).await;
        for cloud in &clouds {
            cloud.provider.close().await;
        }
        ending
    }
}
