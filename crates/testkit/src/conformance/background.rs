//! Controllers of its own that a provider brings along.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Capability::BackgroundControllers;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, MetadataChanges, MetadataWriter,
    NodeFacts, NodeFeed, Protocol, ServiceFacts, ServiceFeed, ServicePort, ServiceRef, ServiceType,
    Shared, TrafficPolicy,
};
use futures::FutureExt as _;
use futures::future::{Either, ready, select};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::adapter::Stop;
use super::check::{Check, Done, check};
use super::desired::{balancer_ref, spec};
use super::env::{TestEnv, ensure, ensure_unchanged};
use super::fault::{Fault, FaultTiming};

/// How long a controller runs before it must have come to rest.
const WHILE: Duration = Duration::from_mins(10);

/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(30);

pub(super) const CHECKS: &[Check] = &[
    check(
        BackgroundControllers,
        "background/names-are-unique",
        "no two controllers have one name",
        |env| ready(names(env)).boxed(),
    ),
    check(
        BackgroundControllers,
        "background/runs-until-stopped",
        "a controller runs until it is stopped, ends soon after that, and changes nothing any more",
        |env| stopped(env).boxed(),
    ),
    check(
        BackgroundControllers,
        "background/rests-when-done",
        "a controller that starts again while nothing differs changes nothing, in the cloud and in the cluster",
        |env| rests(env).boxed(),
    ),
    check(
        BackgroundControllers,
        "background/survives-outages",
        "a controller whose cloud fails neither panics nor hangs, and does its work once the cloud is back, in the cluster and in the cloud",
        |env| outage(env).boxed(),
    ),
    check(
        BackgroundControllers,
        "background/follows-the-cluster",
        "a Node and a Service that appear while a controller runs end as if they had been there from the start",
        |env| follows(env).boxed(),
    ),
];

/// Something of the cluster, as it is now.
struct Feed<T> {
    now: Mutex<Vec<T>>,
    changed: Notify,
}

impl<T: Clone> Feed<T> {
    fn of(now: &[T]) -> Self {
        Self {
            now: Mutex::new(now.to_vec()),
            changed: Notify::new(),
        }
    }

    fn set(&self, now: &[T]) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now.to_vec();
        self.changed.notify_one();
    }

    fn get(&self) -> Vec<T> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }
}

#[async_trait]
impl NodeFeed for Feed<Shared<NodeFacts>> {
    fn snapshot(&self) -> Vec<Shared<NodeFacts>> {
        self.get()
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

#[async_trait]
impl ServiceFeed for Feed<ServiceFacts> {
    fn snapshot(&self) -> Vec<ServiceFacts> {
        self.get()
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// What is in the cluster.
#[derive(Clone, Default)]
struct Objects {
    nodes: Vec<Shared<NodeFacts>>,
    services: Vec<ServiceFacts>,
}

impl Objects {
    /// These Nodes, and Services that lead to them.
    fn of(nodes: &[NodeFacts], services: &[&str]) -> Self {
        Self {
            nodes: Shared::of_each(nodes),
            services: services.iter().map(|name| service(name)).collect(),
        }
    }
}

/// One of each type that opens node ports: `web` has a balancer.
fn service(name: &str) -> ServiceFacts {
    let (service_type, node_port) = match name {
        "web" => (ServiceType::LoadBalancer, 30_080),
        _ => (ServiceType::NodePort, 30_081),
    };
    ServiceFacts {
        service: balancer_ref(name).service,
        service_type,
        class: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ports: vec![ServicePort {
            name: None,
            protocol: Protocol::Tcp,
            port: 80,
            node_port: Some(node_port),
        }],
        traffic_policy: TrafficPolicy::Cluster,
        health_check_node_port: None,
        source_ranges: Vec::new(),
        ingress: Vec::new(),
        is_deleting: false,
    }
}

/// What was written to the cluster, as it is now.
#[derive(Default)]
struct Written(Mutex<BTreeMap<String, String>>);

impl Written {
    fn write(&self, kind: &str, name: &str, changes: &MetadataChanges) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in changes {
            all.insert(format!("{kind} {name} {key}"), format!("{value:?}"));
        }
    }

    fn all(&self) -> BTreeMap<String, String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

#[async_trait]
impl MetadataWriter for Written {
    async fn label_node(
        &self,
        node: &NodeFacts,
        labels: &MetadataChanges,
    ) -> Result<(), CloudError> {
        self.write("label", &node.name, labels);
        Ok(())
    }

    async fn annotate_node(
        &self,
        node: &NodeFacts,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError> {
        self.write("annotation", &node.name, annotations);
        Ok(())
    }

    async fn annotate_service(
        &self,
        service: &ServiceRef,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError> {
        self.write("service annotation", &service.name, annotations);
        Ok(())
    }
}

/// How a controller ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// By itself.
    Early(String),
    /// After it was stopped.
    Stopped,
    /// It did not.
    Never,
}

/// Runs a controller for a while and stops it. In the middle of that the cluster changes.
async fn run(
    env: &TestEnv<'_>,
    controller: &dyn BackgroundController,
    [before, after]: [&Objects; 2],
    writer: &Arc<Written>,
) -> Ended {
    let stop = CancellationToken::new();
    let nodes = Arc::new(Feed::of(&before.nodes));
    let is_watching = controller.watches_services();
    let services = |objects: &Objects| {
        let watched = objects.services.iter().filter(|_| is_watching);
        watched.cloned().collect::<Vec<_>>()
    };
    let service_feed = Arc::new(Feed::of(&services(before)));
    let context = BackgroundContext {
        nodes: Arc::<Feed<_>>::clone(&nodes),
        services: Arc::<Feed<_>>::clone(&service_feed),
        writer: Arc::<Written>::clone(writer),
        stop: stop.clone(),
    };
    let meanwhile = async {
        env.cloud.wait(WHILE).await;
        nodes.set(&after.nodes);
        service_feed.set(&services(after));
        env.cloud.wait(WHILE).await;
    };
    let running = match select(controller.run(context), meanwhile.boxed()).await {
        Either::Left((ended, _)) => return Ended::Early(format!("{ended:?}")),
        Either::Right(((), running)) => running,
    };
    stop.cancel();
    match select(running, env.cloud.wait(STOP)).await {
        Either::Left(_) => Ended::Stopped,
        Either::Right(_) => Ended::Never,
    }
}

/// The same in a cluster that does not change.
async fn run_on(
    env: &TestEnv<'_>,
    controller: &dyn BackgroundController,
    objects: &Objects,
    writer: &Arc<Written>,
) -> Ended {
    run(env, controller, [objects, objects], writer).await
}

/// The controller of this name.
fn named(env: &TestEnv<'_>, name: &str) -> Result<Arc<dyn BackgroundController>, Stop> {
    let mut all = env.provider.background_controllers().into_iter();
    let found = all.find(|controller| controller.name() == name);
    found.ok_or_else(|| Stop::failed(format!("{name} is there only sometimes")))
}

/// Two Nodes, and the balancer of the one Service that has one.
async fn prepared(env: &TestEnv<'_>) -> Result<Vec<NodeFacts>, Stop> {
    let nodes = env.add_nodes(2).await?;
    if env.provider.load_balancers().is_some() {
        env.settle(&spec(&[80], &nodes)).await?;
    }
    Ok(nodes)
}

/// What there is in the cloud, without what differs from one cloud to the next.
async fn in_cloud(env: &TestEnv<'_>) -> Result<Vec<String>, Stop> {
    let state = env.cloud.state().await?;
    let balancers = state.balancers.into_iter();
    let balancers = balancers.map(|balancer| format!("{:?}", balancer.shape()));
    let routes = state.routes.iter().map(|route| format!("{route:?}"));
    let mut all: Vec<_> = balancers.chain(routes).collect();
    all.push(format!("{:?}", env.resources().await?));
    all.sort();
    Ok(all)
}

fn names(env: &TestEnv<'_>) -> Done {
    let controllers = env.provider.background_controllers();
    let names: BTreeSet<_> = controllers.iter().map(|c| c.name()).collect();
    ensure(names.len() == controllers.len(), || {
        format!("{} controllers have the names {names:?}", controllers.len())
    })
}

async fn stopped(env: &TestEnv<'_>) -> Done {
    let objects = Objects::of(&prepared(env).await?, &["web"]);
    for controller in env.provider.background_controllers() {
        let written = Arc::new(Written::default());
        let ended = run_on(env, &*controller, &objects, &written).await;
        let name = controller.name();
        ensure(ended == Ended::Stopped, || {
            format!("{name} ended: {ended:?}")
        })?;
        let (before, calls) = (written.all(), env.calls());
        env.cloud.wait(WHILE).await;
        ensure_unchanged(
            env.calls().since(calls),
            &format!("after {name} was stopped"),
        )?;
        ensure(written.all() == before, || {
            format!("{name} writes after it was stopped")
        })?;
    }
    Ok(())
}

async fn rests(env: &TestEnv<'_>) -> Done {
    let objects = Objects::of(&prepared(env).await?, &["web"]);
    for controller in env.provider.background_controllers() {
        let written = Arc::new(Written::default());
        run_on(env, &*controller, &objects, &written).await;
        let (before, calls) = (written.all(), env.calls());
        run_on(env, &*controller, &objects, &written).await;
        let name = controller.name();
        ensure_unchanged(
            env.calls().since(calls),
            &format!("by {name} for what is done"),
        )?;
        let (before, after) = (before, written.all());
        ensure(before == after, || {
            format!("{name} wrote {before:?}, then {after:?}")
        })?;
    }
    Ok(())
}

/// What a controller wrote to the cluster, and what there is in the cloud.
type End = (BTreeMap<String, String>, Vec<String>);

/// That a controller came to the same end as without a disturbance.
fn same_end(name: &str, when: &str, end: &End, expected: &End) -> Done {
    ensure(end.0 == expected.0, || {
        format!("{when} {name} wrote {:?}, not {:?}", end.0, expected.0)
    })?;
    ensure(end.1 == expected.1, || {
        format!(
            "{when} {name} left {:?} in the cloud, not {:?}",
            end.1, expected.1
        )
    })
}

/// The end of a controller that finds everything there.
async fn undisturbed(env: &TestEnv<'_>, name: &str) -> Result<End, Stop> {
    let env = env.another().await?;
    let objects = Objects::of(&prepared(&env).await?, &["api", "web"]);
    let written = Arc::new(Written::default());
    run_on(&env, &*named(&env, name)?, &objects, &written).await;
    Ok((written.all(), in_cloud(&env).await?))
}

async fn outage(env: &TestEnv<'_>) -> Done {
    for controller in env.provider.background_controllers() {
        let name = controller.name();
        let expected = undisturbed(env, name).await?;
        let env = env.another().await?;
        let objects = Objects::of(&prepared(&env).await?, &["api", "web"]);
        let controller = named(&env, name)?;
        let written = Arc::new(Written::default());
        env.inject(FaultTiming::Always, Fault::Unavailable)?;
        let ended = run_on(&env, &*controller, &objects, &written).await;
        // It may end with an error; the manager starts it again.
        ensure(ended != Ended::Never, || {
            format!("{name} does not stop in an outage")
        })?;
        env.clear_faults();
        run_on(&env, &*controller, &objects, &written).await;
        let end = (written.all(), in_cloud(&env).await?);
        same_end(name, "after an outage", &end, &expected)?;
    }
    Ok(())
}

async fn follows(env: &TestEnv<'_>) -> Done {
    for controller in env.provider.background_controllers() {
        let name = controller.name();
        let expected = undisturbed(env, name).await?;
        let env = env.another().await?;
        let nodes = prepared(&env).await?;
        let first = Objects::of(nodes.get(..1).unwrap_or_default(), &["api"]);
        let all = Objects::of(&nodes, &["api", "web"]);
        let written = Arc::new(Written::default());
        run(&env, &*named(&env, name)?, [&first, &all], &written).await;
        let end = (written.all(), in_cloud(&env).await?);
        same_end(name, "in a cluster that grows", &end, &expected)?;
    }
    Ok(())
}
