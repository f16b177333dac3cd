//! What every manager needs before it elects and leads, as a process or inside one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, Registry, SystemClock};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{EventRecorder, Reports};
use cloudkeel_controllers::{ControllerName, ControllerSelection};
use futures::future::join_all;
use kube::Client;
use tracing::info;

use super::clouds::{CloudBuilder, CloudParts};
use super::controllers::{ServiceScope, enabled};
use super::invocation::Start;
use super::leader::{LeaderParts, ReplicaIdentity};
use super::manager::RunError;
use crate::background::{self, Provided};
use crate::client::{ClientFactory, ConnectError};
use crate::dry_run::{DryRun, Recorder};
use crate::health::Health;
use crate::log_messages::PROVIDER_CLOSE_TIMED_OUT;
use crate::metrics::{BuildInfo, Metrics};
use crate::options::Options;
use crate::reload::Reloadable;

/// How long providers may take to close their sessions.
pub(super) const PROVIDER_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Metrics of a manager that starts now.
pub(crate) fn metrics(clock: &dyn Clock) -> Metrics {
    Metrics::new(&BuildInfo::of_version(VERSION), clock.now())
}

/// What a run may change.
pub(super) enum Writes {
    /// The cluster and the clouds, unless `--dry-run` says otherwise.
    AsConfigured,
    /// Nothing: what would change is recorded here, until the controllers are idle.
    Recorded(Arc<Recorder>),
    /// The clouds, but nothing in the cluster.
    CloudsOnly,
}

/// The dependencies of a manager.
pub(super) struct ManagerDeps<'a> {
    pub(super) registry: &'a Registry,
    pub(super) start: &'a Start,
    pub(super) factory: ClientFactory,
    pub(super) metrics: Metrics,
    pub(super) events: EventRecorder,
    pub(super) health: Arc<Health>,
    pub(super) clock: Arc<dyn Clock>,
    /// Whether this is a dry run.
    dry_run: Option<DryRun>,
}

impl<'a> ManagerDeps<'a> {
    /// Those of this process, with `$KUBECONFIG`, and the Events that will be reported.
    pub(super) async fn of_process(
        registry: &'a Registry,
        start: &'a Start,
        kubeconfig: Option<&OsStr>,
        writes: Writes,
    ) -> Result<(Self, Reports), ConnectError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let metrics = metrics(clock.as_ref());
        let api_server = &start.options.api_server;
        let factory = ClientFactory::new(api_server, kubeconfig, metrics.clone()).await?;
        Ok(Self::with(registry, start, factory, metrics, clock, writes))
    }

    /// Those of a manager that reaches the API server by this client, and the Events that will be reported.
    pub(super) fn around(
        registry: &'a Registry,
        start: &'a Start,
        api: Client,
        clock: Arc<dyn Clock>,
    ) -> (Self, Reports) {
        let metrics = metrics(clock.as_ref());
        let factory = ClientFactory::around(api, metrics.clone());
        let writes = Writes::AsConfigured;
        Self::with(registry, start, factory, metrics, clock, writes)
    }

    fn with(
        registry: &'a Registry,
        start: &'a Start,
        factory: ClientFactory,
        metrics: Metrics,
        clock: Arc<dyn Clock>,
        writes: Writes,
    ) -> (Self, Reports) {
        let is_cluster_left_alone = matches!(writes, Writes::CloudsOnly);
        let dry_run = match writes {
            Writes::AsConfigured => start.options.generic.dry_run.then(|| DryRun {
                recorder: Arc::new(Recorder::with_metrics(metrics.dry_run.clone())),
                until_idle: false,
            }),
            Writes::Recorded(recorder) => Some(DryRun {
                recorder,
                until_idle: true,
            }),
            Writes::CloudsOnly => None,
        };
        let recorder = dry_run.as_ref().map(|it| Arc::clone(&it.recorder));
        let recorder = recorder.or_else(|| is_cluster_left_alone.then(Arc::default));
        let (events, reports) = EventRecorder::channel();
        let deps = Self {
            registry,
            start,
            factory: factory.recording(recorder),
            metrics,
            events,
            health: Arc::new(Health::new(clock.now())),
            clock,
            dry_run,
        };
        (deps, reports)
    }
}

/// The clouds of a manager, and what runs on them.
pub(super) struct Prepared<'a> {
    pub(super) builder: CloudBuilder<'a>,
    pub(super) reloadable: Vec<Reloadable>,
    pub(super) clouds: Vec<Arc<Cloud>>,
    deps: &'a ManagerDeps<'a>,
    service_scope: ServiceScope,
    enabled: Vec<ControllerName>,
    provided: Vec<Provided>,
}

impl<'a> Prepared<'a> {
    /// Builds the clouds, which may read these variables, and selects the controllers.
    pub(super) async fn with(
        deps: &'a ManagerDeps<'a>,
        env: BTreeMap<String, String>,
    ) -> Result<Self, RunError> {
        let (options, setup) = (&deps.start.options, &deps.start.setup);
        let parts = CloudParts {
            options,
            client: deps.factory.unfenced("start")?,
            metrics: &deps.metrics,
            events: &deps.events,
            clock: Arc::clone(&deps.clock),
            env,
            recorder: deps.dry_run.as_ref().map(|it| Arc::clone(&it.recorder)),
        };
        let builder = CloudBuilder::new(deps.registry, parts).await;
        let reloadable = builder.build_all(setup).await?;
        let clouds: Vec<_> = reloadable.iter().map(|it| Arc::clone(&it.cloud)).collect();
        let selection = select(options, &clouds)?;
        Ok(Self {
            service_scope: ServiceScope::of(setup, &clouds, builder.cluster()),
            enabled: enabled(&selection, options, &clouds, deps.registry),
            provided: background::selected(&selection, &clouds),
            deps,
            builder,
            reloadable,
            clouds,
        })
    }

    /// The parts for leading.
    pub(super) fn leader<'s>(&'s self, replica: &'s ReplicaIdentity) -> LeaderParts<'s> {
        LeaderParts {
            options: &self.deps.start.options,
            factory: &self.deps.factory,
            clouds: &self.clouds,
            service_scope: &self.service_scope,
            enabled: self.enabled.clone(),
            provided: self.provided.clone(),
            metrics: &self.deps.metrics,
            health: &self.deps.health,
            events: &self.deps.events,
            clock: Arc::clone(&self.deps.clock),
            replica,
            dry_run: self.deps.dry_run.clone(),
            sync_check: "informer-sync",
        }
    }

    /// Which clouds serve which Services.
    pub(super) const fn service_scope(&self) -> &ServiceScope {
        &self.service_scope
    }

    /// Closes the providers, but does not wait for one that hangs: the process has to exit.
    pub(super) async fn close(&self) {
        let closing = self.clouds.iter().map(|cloud| cloud.provider());
        let closing = closing.map(|provider| async move { provider.close().await });
        let closing = join_all(closing);
        if tokio::time::timeout(PROVIDER_CLOSE_TIMEOUT, closing)
            .await
            .is_err()
        {
            info!("{PROVIDER_CLOSE_TIMED_OUT}");
        }
    }
}

fn select(options: &Options, clouds: &[Arc<Cloud>]) -> Result<ControllerSelection, RunError> {
    let provided: Vec<_> = clouds
        .iter()
        .flat_map(|cloud| cloud.provider().background_controllers())
        .map(|controller| controller.name())
        .collect();
    ControllerSelection::new(&options.generic.controllers, &provided).map_err(RunError::Selection)
}
