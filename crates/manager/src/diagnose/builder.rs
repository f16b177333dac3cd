//! Builds the clouds as the manager does, and reads what belongs to no single object.

use std::sync::Arc;

use cloudkeel_api::{BuildError, CloudError, ClusterIdentity, ErrorKind, RegistryError};
use cloudkeel_controllers::clouds::{Cloud, Snapshot as Listed};
use cloudkeel_controllers::route::facts_in;
use cloudkeel_controllers::runtime::EventRecorder;
use cloudkeel_controllers::view::NodeView;
use cloudkeel_diagnose::{CloudState, InstancesState, Trouble};
use futures::future::join_all;
use kube::Client;
use std::time::Duration;
use tokio::time::Instant;

use super::Request;
use crate::config::Setup;
use crate::metrics::{CloudsMetrics, Metrics};
use crate::run::{CloudBuilder, CloudParts, Configuration};

/// The longest that one cloud may take for one read of everything.
const CLOUD_TIMEOUT: Duration = Duration::from_mins(2);

/// What clouds are built with.
pub(super) struct Clouds<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) configuration: &'a Configuration,
    pub(super) client: &'a Client,
    pub(super) metrics: &'a Metrics,
    pub(super) uid: Option<String>,
}

/// A cloud, or why it could not be built.
pub(super) struct Built {
    pub(super) name: String,
    pub(super) provider: String,
    pub(super) cloud: Option<Arc<Cloud>>,
    pub(super) error: Option<Trouble>,
    metrics: CloudsMetrics,
}

impl Built {
    /// The requests that are left, as the cloud said in its last answer.
    pub(super) fn budget(&self) -> Option<(u64, u64)> {
        let budget = self.metrics.spent(&self.name).budget?;
        Some((budget.remaining, budget.limit))
    }
}

impl Clouds<'_> {
    /// Each cloud by itself, so that one that is broken hides no other.
    pub(super) async fn build(&self, setup: &Setup) -> Vec<Built> {
        // What providers report as Events goes nowhere: this only reads.
        let (events, _reports) = EventRecorder::channel();
        let parts = CloudParts {
            options: &self.configuration.options,
            client: self.client.clone(),
            metrics: self.metrics,
            events: &events,
            clock: Arc::clone(&self.request.clock),
            env: self.request.environment.env.clone(),
            recorder: None,
        };
        let builder = CloudBuilder::with_uid(self.request.registry, parts, self.uid.clone());
        let building = setup.clouds.iter().map(|entry| async {
            let built = tokio::time::timeout(CLOUD_TIMEOUT, builder.build_cloud(entry)).await;
            let built = match built {
                Ok(built) => built.map_err(|error| trouble(&error)),
                Err(_) => Err(no_answer()),
            };
            let (cloud, error) = match built {
                Ok(cloud) => (Some(cloud), None),
                Err(error) => (None, Some(error)),
            };
            Built {
                name: entry.name.clone(),
                provider: entry.provider.clone(),
                cloud,
                error,
                metrics: self.metrics.clouds.clone(),
            }
        });
        join_all(building).await
    }
}

/// The cluster, as providers label their resources with it.
pub(super) fn identity(configuration: &Configuration, uid: Option<String>) -> ClusterIdentity {
    let generic = &configuration.options.generic;
    ClusterIdentity {
        name: generic.cluster_name.clone(),
        uid,
        pod_cidrs: generic.cluster_cidrs.clone(),
    }
}

/// Reads scope, instances, and if asked for routes and what carries the cluster's labels.
pub(super) async fn read_cloud(
    cloud: &Arc<Cloud>,
    clouds: &[Arc<Cloud>],
    nodes: Option<Vec<Arc<NodeView>>>,
    wants_owned: bool,
) -> (CloudState, Option<Arc<Listed>>) {
    let provider = cloud.provider();
    let mut state = CloudState::unread(&cloud.name, provider.name());
    state.has_cluster_id = provider.has_cluster_id();
    let (scope, listed) = futures::join!(bounded(provider.check()), async {
        provider.instances()?;
        let listing = cloud.inventory.begun_after(Instant::now());
        Some(bounded(async { listing.await.map_err(|error| error.clone_without_source()) }).await)
    });
    state.scope = Some(scope.map(|scope| scope.to_string()));
    let list = listed.as_ref().and_then(|it| it.as_ref().ok()).cloned();
    state.instances = listed.map(|listed| listed.map(|list| instances(&list)));
    if let Some(routes) = provider.routes()
        && let Some(nodes) = nodes
    {
        let facts: Vec<_> = nodes
            .iter()
            .map(|node| facts_in(cloud, clouds, node))
            .collect();
        state.routes = Some(bounded(routes.list(&facts)).await);
    }
    if let Some(balancers) = provider.load_balancers()
        && wants_owned
    {
        state.owned = Some(bounded(balancers.owned()).await);
    }
    (state, list)
}

fn instances(list: &Listed) -> InstancesState {
    let list = &list.list;
    let blind_spots = list.blind_spots().iter();
    InstancesState {
        count: list.instances().len(),
        blind_spots: blind_spots
            .map(|spot| (spot.part.clone(), spot.error.to_string()))
            .collect(),
        without_node: Vec::new(),
    }
}

fn no_answer() -> Trouble {
    Trouble {
        kind: ErrorKind::Timeout,
        text: format!("no answer within {}s", CLOUD_TIMEOUT.as_secs()),
    }
}

/// Wrong settings are what is invalid; otherwise it is what the cloud answered.
fn trouble(error: &RegistryError) -> Trouble {
    let kind = match error {
        RegistryError::Build {
            source: BuildError::Cloud(error),
            ..
        } => error.kind(),
        _ => ErrorKind::Invalid,
    };
    Trouble {
        kind,
        text: error.to_string(),
    }
}

/// A read of a cloud in bounded time.
pub(super) async fn bounded<T>(
    reading: impl Future<Output = Result<T, CloudError>> + Send,
) -> Result<T, Trouble> {
    match tokio::time::timeout(CLOUD_TIMEOUT, reading).await {
        Ok(answer) => answer.map_err(|error| Trouble::from(&error)),
        Err(_) => Err(no_answer()),
    }
}
