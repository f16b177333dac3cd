//! Controllers of its own that a provider brings along.

use std::collections::BTreeSet;
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
use tokio_util::sync::CancellationToken;

use super::actual::ActualBalancer;
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
        "a controller whose cloud fails neither panics nor hangs, and does its work once the cloud is back",
        |env| outage(env).boxed(),
    ),
];

/// The Nodes of the kit, which do not change.
struct Nodes(Vec<Shared<NodeFacts>>);

#[async_trait]
impl NodeFeed for Nodes {
    fn snapshot(&self) -> Vec<Shared<NodeFacts>> {
        self.0.clone()
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

/// The Services of the kit, which do not change: one of each type that opens ports.
struct Services;

fn service(name: &str, service_type: ServiceType, node_port: u16) -> ServiceFacts {
    ServiceFacts {
        service: balancer_ref(name).service,
        service_type,
        class: None,
        labels: std::collections::BTreeMap::new(),
        annotations: std::collections::BTreeMap::new(),
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

#[async_trait]
impl ServiceFeed for Services {
    fn snapshot(&self) -> Vec<ServiceFacts> {
        vec![
            service("ports", ServiceType::NodePort, 30_081),
            service("web", ServiceType::LoadBalancer, 30_080),
        ]
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

/// What was written to the cluster, each thing once: a writer is idempotent.
#[derive(Default)]
struct Written(Mutex<BTreeSet<String>>);

impl Written {
    fn write(&self, kind: &str, name: &str, changes: &MetadataChanges) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in changes {
            all.insert(format!("{kind} {name} {key}={value:?}"));
        }
    }

    fn all(&self) -> BTreeSet<String> {
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

/// Runs a controller for a while and stops it.
async fn run(
    env: &TestEnv<'_>,
    controller: &dyn BackgroundController,
    nodes: &[NodeFacts],
    writer: &Arc<Written>,
) -> Ended {
    let stop = CancellationToken::new();
    let context = BackgroundContext {
        nodes: Arc::new(Nodes(Shared::of_each(nodes))),
        services: Arc::new(Services),
        writer: Arc::<Written>::clone(writer),
        stop: stop.clone(),
    };
    let running = match select(controller.run(context), env.cloud.wait(WHILE)).await {
        Either::Left((ended, _)) => return Ended::Early(format!("{ended:?}")),
        Either::Right(((), running)) => running,
    };
    stop.cancel();
    match select(running, env.cloud.wait(STOP)).await {
        Either::Left(_) => Ended::Stopped,
        Either::Right(_) => Ended::Never,
    }
}

/// Two Nodes, and the balancer of the one Service that has one.
async fn prepared(env: &TestEnv<'_>) -> Result<Vec<NodeFacts>, Stop> {
    let nodes = env.add_nodes(2).await?;
    if env.provider.load_balancers().is_some() {
        env.settle(&spec(&[80], &nodes)).await?;
    }
    Ok(nodes)
}

/// What is in the cloud, as far as it does not depend on which cloud of the same kind it is.
async fn left(env: &TestEnv<'_>) -> Result<impl PartialEq + std::fmt::Debug + use<>, Stop> {
    let balancers = env.cloud.balancers().await?.into_iter();
    let balancers: Vec<_> = balancers.map(ActualBalancer::shape).collect();
    Ok((env.resources().await?, balancers))
}

fn names(env: &TestEnv<'_>) -> Done {
    let controllers = env.provider.background_controllers();
    let names: BTreeSet<_> = controllers.iter().map(|c| c.name()).collect();
    ensure(names.len() == controllers.len(), || {
        format!("{} controllers have the names {names:?}", controllers.len())
    })
}

async fn stopped(env: &TestEnv<'_>) -> Done {
    let nodes = prepared(env).await?;
    for controller in env.provider.background_controllers() {
        let written = Arc::new(Written::default());
        let ended = run(env, &*controller, &nodes, &written).await;
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
    let nodes = prepared(env).await?;
    for controller in env.provider.background_controllers() {
        let written = Arc::new(Written::default());
        run(env, &*controller, &nodes, &written).await;
        let (before, calls) = (written.all(), env.calls());
        run(env, &*controller, &nodes, &written).await;
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

async fn outage(env: &TestEnv<'_>) -> Done {
    for at in 0..env.provider.background_controllers().len() {
        // What another controller did is none of this one's doing.
        let undisturbed = env.another().await?;
        let nodes = prepared(&undisturbed).await?;
        let controllers = undisturbed.provider.background_controllers();
        let Some(controller) = controllers.get(at) else {
            continue;
        };
        let expected = Arc::new(Written::default());
        run(&undisturbed, &**controller, &nodes, &expected).await;
        let env = env.another().await?;
        let nodes = prepared(&env).await?;
        let controllers = env.provider.background_controllers();
        let Some(controller) = controllers.get(at) else {
            continue;
        };
        let written = Arc::new(Written::default());
        env.inject(FaultTiming::Always, Fault::Unavailable)?;
        let ended = run(&env, &**controller, &nodes, &written).await;
        let name = controller.name();
        // It may end with an error; the manager starts it again.
        ensure(ended != Ended::Never, || {
            format!("{name} does not stop in an outage")
        })?;
        env.clear_faults();
        run(&env, &**controller, &nodes, &written).await;
        let (expected, written) = (expected.all(), written.all());
        ensure(written == expected, || {
            format!("after an outage {name} wrote {written:?}, not {expected:?}")
        })?;
        let (expected, left) = (left(&undisturbed).await?, left(&env).await?);
        ensure(left == expected, || {
            format!("after an outage {name} left {left:?}, not {expected:?}")
        })?;
    }
    Ok(())
}
