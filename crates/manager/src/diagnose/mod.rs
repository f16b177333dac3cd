//! Fills a snapshot for `doctor` and `explain`: what is read of the API server and of the clouds, with few calls and
//! without a write. What cannot be read is a finding, and keeps nothing else from being checked.

mod access;
mod builder;
mod cluster;
mod nodes;
mod pods;
mod services;
mod slim_pod;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::DriftPolicy;
use cloudkeel_api::{Clock, Registry};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::lifecycle::decide::Caution;
use cloudkeel_controllers::runtime::ErrorText;
use cloudkeel_diagnose::{CloudState, Read, Settings, Snapshot, Unread};
use futures::future::join_all;

use crate::client::ClientFactory;
use crate::run::{Configuration, Environment, metrics, read_configuration};
use builder::{Built, Clouds};
use cluster::Cluster;

/// The longest that one read of the API server may take.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// What is asked for.
pub struct Request<'a> {
    /// The flags of the manager.
    pub flags: &'a [String],
    /// The name under which this program was started, which may select a provider.
    pub program: &'a str,
    /// The providers.
    pub registry: &'a Registry,
    /// Variables, and `$KUBECONFIG`.
    pub environment: Environment,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// What is read.
    pub scope: Scope,
    /// Where progress is reported.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    All,
    /// What concerns this Node.
    Node(String),
    /// What concerns this Service, `namespace/name`.
    Service(String),
}

impl Scope {
    const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    const fn is_service(&self) -> bool {
        matches!(self, Self::Service(_))
    }

    /// Whether this Service is to be compared with its load balancer.
    fn includes_service(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node(_) => false,
            Self::Service(name) => name == key,
        }
    }
}

/// Reads the cluster and its clouds. Fails only if the command line cannot be understood.
pub async fn collect(request: &Request<'_>) -> Result<Snapshot, String> {
    let configuration = read_configuration(
        request.program,
        request.flags,
        request.registry,
        &request.environment,
    )?;
    let mut snapshot = Snapshot::empty(request.clock.now(), settings(&configuration));
    snapshot.config_errors.clone_from(&configuration.errors);
    snapshot.config_notes.clone_from(&configuration.notes);
    let variable = request.environment.kubeconfig.as_deref();
    let server = &configuration.options.api_server;
    let metrics = metrics(request.clock.as_ref());
    let factory = ClientFactory::new(server, variable, metrics.clone()).await;
    let client = factory.and_then(|factory| factory.unfenced("doctor"));
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            snapshot.api_server = Err(unreachable(error.to_string()));
            return Ok(snapshot);
        }
    };
    (request.progress)("reading the API server");
    let cluster = Box::pin(Cluster::read(&client, &configuration, request)).await;
    cluster.enter(&mut snapshot);
    let Some(setup) = &configuration.setup else {
        snapshot.now = request.clock.now();
        return Ok(snapshot);
    };
    for entry in &setup.clouds {
        (request.progress)(&format!("asking cloud {}", entry.name));
    }
    let clouds = Clouds {
        request,
        configuration: &configuration,
        client: &client,
        metrics: &metrics,
        uid: cluster.uid.clone(),
    };
    let built = clouds.build(setup).await;
    fill(&mut snapshot, &cluster, &built, &configuration, request).await;
    for built in &built {
        if let Some(cloud) = &built.cloud {
            cloud.provider().close().await;
        }
    }
    if request.scope.is_all() {
        (request.progress)("checking permissions");
        snapshot.access = access::read_access(&client, &snapshot, &configuration).await;
    }
    services::read_endpoints(&client, &mut snapshot, &request.scope).await;
    // What was read is at most as old as this.
    snapshot.now = request.clock.now();
    Ok(snapshot)
}

/// Everything that depends on a cloud.
async fn fill(
    snapshot: &mut Snapshot,
    cluster: &Cluster,
    built: &[Built],
    configuration: &Configuration,
    request: &Request<'_>,
) {
    let clouds: Vec<Arc<Cloud>> = built.iter().filter_map(|it| it.cloud.clone()).collect();
    let reading = clouds.iter().map(|cloud| async {
        let routes = (!request.scope.is_service()).then_some(cluster.views());
        let wants_owned = request.scope.is_all();
        builder::read_cloud(cloud, &clouds, routes, wants_owned).await
    });
    let mut states: Vec<CloudState> = Vec::new();
    let mut lists = Vec::new();
    let mut read = join_all(reading).await.into_iter();
    for built in built {
        match &built.error {
            Some(error) => {
                let mut state = CloudState::unread(&built.name, &built.provider);
                state.build_error = Some(error.clone());
                states.push(state);
            }
            None => {
                if let Some((state, list)) = read.next() {
                    states.push(state);
                    lists.push(list);
                }
            }
        }
    }
    if let Ok(nodes) = &mut snapshot.nodes {
        nodes::match_instances(nodes, &clouds, &lists, &mut states).await;
        if let Scope::Node(name) = &request.scope
            && let Some(node) = nodes.iter_mut().find(|node| node.name() == name)
        {
            nodes::look_up(node, &clouds, &lists).await;
        }
    }
    if let Ok(services) = &mut snapshot.services
        && let Some(setup) = &configuration.setup
    {
        let context = services::Context {
            setup,
            options: &configuration.options,
            clouds: &clouds,
            nodes: &cluster.views(),
            cluster: builder::identity(configuration, cluster.uid.clone()),
            scope: &request.scope,
        };
        context.compare(services).await;
    }
    for (state, built) in states.iter_mut().zip(built) {
        state.budget = built.budget();
    }
    snapshot.clouds = states;
}

fn settings(configuration: &Configuration) -> Settings {
    let options = &configuration.options;
    let deletion = &options.node.deletion;
    Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        elects: options.election.enabled,
        lease: options.election.name.clone(),
        lease_namespace: options.election.namespace.clone(),
        cluster_cidrs: options.generic.cluster_cidrs.clone(),
        routes: options.route.enabled,
        allow_untagged_cloud: options.generic.allow_untagged_cloud,
        caution: Caution {
            grace: deletion.grace,
            proofs: deletion.proofs,
            over: deletion.confirmation,
        },
        deletion_burst: usize::try_from(deletion.burst).unwrap_or(usize::MAX),
        node_list_period: options.node.list_period,
        service_list_period: options.service.list_period,
        repairs_drift: options.service.drift == DriftPolicy::Repair,
    }
}

fn unreachable(why: String) -> Unread {
    Unread {
        what: "API server".to_owned(),
        why,
        is_denied: false,
    }
}

/// A read of the API server in bounded time.
async fn read<T>(
    what: &str,
    reading: impl Future<Output = Result<T, kube::Error>> + Send,
) -> Read<T> {
    let unread = |why, is_denied| Unread {
        what: what.to_owned(),
        why,
        is_denied,
    };
    match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let is_denied = matches!(&error, kube::Error::Api(status) if status.code < 500);
            Err(unread(ErrorText(&error).to_string(), is_denied))
        }
        Err(_) => Err(unread(
            format!("no answer within {}s", READ_TIMEOUT.as_secs()),
            false,
        )),
    }
}

/// The names in a list, to look them up.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    all.collect()
}
