//! Both controllers, a cluster and a cloud, and a test that turns the hands of the clock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cloudkeel_api::{
    Clock, CloudProvider, Instances, ProviderContext, ProviderId, Recognition, TokioClock,
};
use cloudkeel_controllers::Controller;
use cloudkeel_controllers::clouds::{Cloud, NodeMatcher};
use cloudkeel_controllers::lifecycle::{
    LeaseHeartbeats, LifecycleController, LifecycleObserver, LifecycleParts, LifecycleSettings,
};
use cloudkeel_controllers::node::{NodeController, NodeObserver, NodeParts, NodeSettings};
use cloudkeel_controllers::report::ControllerReport;
use cloudkeel_controllers::runtime::{Cache, EventRecorder, NodeWriter, Unobserved, write_events};
use cloudkeel_controllers::view::NodeView;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;
use cloudkeel_testkit::simulated_cloud::wire::Machine;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};
use futures::stream;
use jiff::Timestamp;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::cluster::Cluster;
use crate::support::gate::What;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
/// Long enough for everything that is asked again at all to be asked several times.
pub(crate) const TEN_MINUTES: Duration = Duration::from_mins(10);

/// Before the name of a Node whose kubelet has no lease.
const STATUS: &str = "status of ";

/// Hears what the lifecycle controller says of itself.
#[derive(Default)]
pub(crate) struct Observed {
    stops: Mutex<Vec<bool>>,
    looks: AtomicUsize,
}

impl LifecycleObserver for Observed {
    fn instance_checked(&self, _result: &'static str) {}
    fn node_deleted(&self, _cloud: &str) {}
    fn deletions_stopped(&self, _cloud: &str, stopped: bool) {
        self.stops.lock().unwrap().push(stopped);
    }
    fn reconciled(&self, _took: Duration) {
        self.looks.fetch_add(1, Ordering::SeqCst);
    }
}

impl NodeObserver for Observed {
    fn initialized(&self, _since_created: Duration) {}
}

pub(crate) struct Lab {
    pub(crate) api: Cluster,
    pub(crate) cloud: SimulatedCloud,
    pub(crate) machines: Vec<Machine>,
    clock: TokioClock,
    observed: Arc<Observed>,
    controllers: [Arc<dyn Controller>; 2],
    /// The clouds of the configuration; the first one is the Nodes'.
    clouds: Vec<Arc<Cloud>>,
    /// The Nodes whose kubelets renew their leases.
    live: Arc<Mutex<BTreeSet<String>>>,
    /// Breaks the watch of Nodes.
    breaks: UnboundedSender<()>,
    _stop: DropGuard,
}

impl Lab {
    /// Controllers at work in an empty cluster, on a cloud without machines.
    pub(crate) async fn empty(settings: Settings) -> Self {
        Self::beside(settings, &[]).await
    }

    /// The same with other clouds in the same configuration.
    pub(crate) async fn beside(settings: Settings, others: &[&SimulatedCloud]) -> Self {
        let (cloud, clock) = (SimulatedCloud::new(settings), new_clock());
        let mut clouds = vec![named("local", provider_of(&cloud, clock).await, clock)];
        for (index, other) in others.iter().enumerate() {
            let provider = provider_of(other, clock).await;
            clouds.push(named(&format!("other-{index}"), provider, clock));
        }
        Self::on(cloud, clouds, clock)
    }

    /// Controllers at work in an empty cluster, with what the configuration says of Nodes.
    pub(crate) async fn matching(selector: Option<&str>, matchers: &[NodeMatcher]) -> Self {
        let (cloud, clock) = (SimulatedCloud::new(Settings::default()), new_clock());
        let provider = provider_of(&cloud, clock).await;
        let nodes = (selector.map(|it| it.parse().unwrap()), matchers.to_vec());
        let clock_of = Arc::new(clock);
        let clouds = vec![Cloud::configured(
            "local",
            provider,
            nodes,
            clock_of,
            Arc::default(),
        )];
        Self::on(cloud, clouds, clock)
    }

    /// The same through instances that are made of the cloud's own.
    pub(crate) async fn through<I: Instances + 'static>(
        make: impl FnOnce(Arc<dyn CloudProvider>) -> I,
    ) -> Self {
        Self::through_beside(make, &[]).await
    }

    /// The same with other clouds in the same configuration.
    pub(crate) async fn through_beside<I: Instances + 'static>(
        make: impl FnOnce(Arc<dyn CloudProvider>) -> I,
        others: &[(&str, Arc<dyn CloudProvider>)],
    ) -> Self {
        let (cloud, clock) = (SimulatedCloud::new(Settings::default()), new_clock());
        let own = provider_of(&cloud, clock).await;
        let instances = make(Arc::clone(&own));
        let provider = Arc::new(WithInstances { own, instances });
        let mut clouds = vec![named("local", provider, clock)];
        let others = others.iter();
        clouds.extend(others.map(|(name, other)| named(name, Arc::clone(other), clock)));
        Self::on(cloud, clouds, clock)
    }

    fn on(cloud: SimulatedCloud, clouds: Vec<Arc<Cloud>>, clock: TokioClock) -> Self {
        let (api, observed) = (Cluster::new(clock), Arc::new(Observed::default()));
        let stop = CancellationToken::new();
        let (breaks, broken) = unbounded_channel();
        let controllers = spawn(&api, clouds.clone(), clock, &observed, broken, &stop);
        let live = Arc::default();
        tokio::spawn(renew_leases(
            api.clone(),
            Arc::clone(&live),
            clock,
            stop.clone(),
        ));
        cloud.reset_calls();
        Self {
            api,
            cloud,
            machines: Vec::new(),
            clock,
            observed,
            controllers,
            clouds,
            live,
            breaks,
            _stop: stop.drop_guard(),
        }
    }

    /// So many Ready Nodes, initialised by the controller, with a machine each. They are a day old,
    /// and it is a minute since anything happened.
    pub(crate) async fn settled(nodes: usize) -> Self {
        Self::settled_on(Settings::default(), nodes).await
    }

    /// The same on a cloud that behaves like this.
    pub(crate) async fn settled_on(settings: Settings, nodes: usize) -> Self {
        let mut lab = Self::empty(settings).await;
        lab.add_machines(nodes);
        for machine in &lab.machines {
            lab.add_node(&machine.name, "True");
        }
        lab.pass(MINUTE).await;
        for machine in &lab.machines {
            assert!(!lab.is_tainted(&machine.name), "{}", machine.name);
        }
        lab.api.forget();
        lab.cloud.reset_calls();
        lab
    }

    /// The cloud gets a new provider, as when its credential is reloaded. What happens before it is used, it does not know.
    pub(crate) async fn reload(&self, before: impl FnOnce()) {
        let provider = provider_of(&self.cloud, self.clock).await;
        before();
        self.clouds[0].cell.replace(provider);
    }

    pub(crate) fn add_machines(&mut self, count: usize) {
        let name = |i: usize| MachineSpec::named(format!("node-{i:03}"));
        self.machines = self.cloud.add_machines(count, name).unwrap();
    }

    /// A Node, a day old, that waits to be initialised.
    pub(crate) fn add_node(&self, name: &str, ready: &str) {
        self.add_node_with(name, ready, &tainted());
    }

    /// A Node, a day old, with this in addition.
    pub(crate) fn add_node_with(&self, name: &str, ready: &str, more: &Value) {
        let mut node = reporting(ready);
        json_patch::merge(&mut node, more);
        let a_day = Duration::from_hours(24);
        self.api.world().create_aged(name, a_day, &node);
    }

    /// A Node that has just appeared, with this in addition.
    pub(crate) fn add_new_node_with(&self, name: &str, ready: &str, more: &Value) {
        let mut node = reporting(ready);
        json_patch::merge(&mut node, more);
        self.api.world().create(name, &node);
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.machines[index].name
    }

    /// The watch of Nodes breaks, and goes on by itself.
    pub(crate) fn break_watch(&self) {
        self.breaks.send(()).unwrap();
    }

    /// The machine vanishes from the cloud.
    pub(crate) fn destroy(&self, index: usize) {
        self.cloud.destroy(self.machines[index].id).unwrap();
    }

    /// The kubelet falls silent, and the cluster has noticed.
    pub(crate) fn silence(&self, index: usize) {
        self.mute(self.name(index));
        self.set_ready(index, "Unknown");
    }

    /// The kubelet renews its lease every ten seconds from now on.
    pub(crate) fn live(&self, name: &str) {
        let api = self.api.world();
        api.renew_lease(name, &self.clock.now());
        self.live.lock().unwrap().insert(name.to_owned());
    }

    /// The kubelet has no lease, and reports its status every ten seconds for a quarter of an hour.
    pub(crate) fn report_status(&self, index: usize) {
        let (api, clock, name) = (self.api.clone(), self.clock, self.name(index).to_owned());
        self.live.lock().unwrap().insert(STATUS.to_owned() + &name);
        let live = Arc::clone(&self.live);
        tokio::spawn(async move {
            while live.lock().unwrap().contains(&(STATUS.to_owned() + &name)) {
                let ready = json!({"type": "Ready", "status": "True",
                    "lastHeartbeatTime": clock.now().to_string()});
                let patch = json!({"status": {"conditions": [ready]}});
                api.world().change(&name, &patch);
                tokio::time::sleep(SECOND * 10).await;
            }
        });
    }

    /// The kubelet falls silent.
    pub(crate) fn mute(&self, name: &str) {
        let mut live = self.live.lock().unwrap();
        live.remove(name);
        live.remove(&(STATUS.to_owned() + name));
    }

    /// The time, as the deletions of the cluster show it.
    pub(crate) fn now(&self) -> Duration {
        self.api.elapsed()
    }

    pub(crate) fn set_ready(&self, index: usize, ready: &str) {
        self.set_ready_of(self.name(index), ready);
    }

    pub(crate) fn set_ready_of(&self, name: &str, ready: &str) {
        self.api.world().change(name, &reporting(ready));
    }

    /// The machine vanishes, and with it its kubelet.
    pub(crate) fn lose(&self, indexes: impl IntoIterator<Item = usize>) {
        for index in indexes {
            self.destroy(index);
            self.silence(index);
        }
    }

    pub(crate) fn annotate(&self, index: usize, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.api.world().change(self.name(index), &patch);
    }

    pub(crate) fn renew_lease(&self, index: usize) {
        self.api
            .world()
            .renew_lease(self.name(index), &self.clock.now());
    }

    pub(crate) fn is_tainted(&self, name: &str) -> bool {
        let taints = self.taints_of(name);
        taints.iter().any(|key| key == UNINITIALIZED_TAINT)
    }

    /// The keys of a Node's taints.
    pub(crate) fn taints(&self, index: usize) -> Vec<String> {
        self.taints_of(self.name(index))
    }

    fn taints_of(&self, name: &str) -> Vec<String> {
        let node = self.api.world().node(name).unwrap();
        let taints = node["spec"]["taints"].as_array().cloned();
        let taints = taints.unwrap_or_default().into_iter();
        let key = |taint: Value| taint["key"].as_str().unwrap().to_owned();
        taints.map(key).collect()
    }

    /// Lets time pass. The clock moves on only when every task waits.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The Nodes that were deleted, in order of their names.
    pub(crate) fn deleted(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .api
            .deletions()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.sort();
        names
    }

    /// How often writes of a kind were sent.
    pub(crate) fn written(&self, what: What) -> usize {
        let writes = self.api.writes();
        writes.iter().filter(|write| write.what == what).count()
    }

    /// How often the lifecycle controller looked at a Node.
    pub(crate) fn looks(&self) -> usize {
        self.observed.looks.load(Ordering::SeqCst)
    }

    /// How the node and the lifecycle controller say they stand.
    pub(crate) fn reports(&self) -> [ControllerReport; 2] {
        self.controllers.each_ref().map(|it| it.report())
    }

    /// Whether deletions are stopped, as far as was observed.
    pub(crate) fn are_deletions_stopped(&self) -> bool {
        self.observed.stops.lock().unwrap().last().copied() == Some(true)
    }
}

/// What kubelets that live do.
async fn renew_leases(
    api: Cluster,
    live: Arc<Mutex<BTreeSet<String>>>,
    clock: TokioClock,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        tokio::time::sleep(SECOND * 10).await;
        let live = live.lock().unwrap().clone();
        for name in live.iter().filter(|name| !name.starts_with(STATUS)) {
            api.world().renew_lease(name, &clock.now());
        }
    }
}

/// A provider with other instances than its own.
struct WithInstances<I> {
    own: Arc<dyn CloudProvider>,
    instances: I,
}

impl<I: Instances> CloudProvider for WithInstances<I> {
    fn name(&self) -> &str {
        self.own.name()
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.own.recognize(id)
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(&self.instances)
    }
}

pub(crate) fn new_clock() -> TokioClock {
    let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    TokioClock::starting_at(epoch)
}

pub(crate) async fn provider_of(
    cloud: &SimulatedCloud,
    clock: TokioClock,
) -> Arc<dyn CloudProvider> {
    let context = ProviderContext {
        clock: Arc::new(clock),
        ..ProviderContext::detached("local")
    };
    Arc::new(cloud.provider(&context).await.unwrap())
}

fn named(name: &str, provider: Arc<dyn CloudProvider>, clock: TokioClock) -> Arc<Cloud> {
    Cloud::new(name, provider, None, Arc::new(clock))
}

/// A Node whose kubelet says this of itself.
fn reporting(ready: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

/// What a Node is registered with while its cloud has not seen it.
pub(crate) fn tainted() -> Value {
    json!({"spec": {"taints": [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}]}})
}

fn spawn(
    api: &Cluster,
    clouds: Vec<Arc<Cloud>>,
    clock: TokioClock,
    observed: &Arc<Observed>,
    broken: UnboundedReceiver<()>,
    stop: &CancellationToken,
) -> [Arc<dyn Controller>; 2] {
    let clock: Arc<dyn Clock> = Arc::new(clock);
    let nodes = Cache::<NodeView>::new();
    let (recorder, reports) = EventRecorder::channel();
    let node = NodeController::new(
        NodeParts {
            nodes: Arc::clone(&nodes),
            clouds: clouds.clone(),
            writer: NodeWriter::new(api.client()),
            events: recorder.sink("cloud-node-controller"),
            clock: Arc::clone(&clock),
            observer: Arc::<Observed>::clone(observed),
            queue_observer: Arc::new(Unobserved),
        },
        NodeSettings::default(),
    );
    let lifecycle = LifecycleController::new(
        LifecycleParts {
            nodes: Arc::clone(&nodes),
            clouds,
            writer: NodeWriter::new(api.client()),
            events: recorder.sink("cloud-node-lifecycle-controller"),
            clock: Arc::clone(&clock),
            observer: Arc::<Observed>::clone(observed),
            queue_observer: Arc::new(Unobserved),
        },
        LeaseHeartbeats::new(api.client(), api.client()),
        LifecycleSettings::default(),
    );
    let breaks = stream::unfold(broken, |mut broken| async move {
        broken.recv().await?;
        Some((Err(watcher::Error::NoResourceVersion), broken))
    });
    let watch = stream::select(api.watch_nodes(), breaks);
    let (client, stop) = (api.client(), stop.clone());
    let both: [Arc<dyn Controller>; 2] = [
        Arc::<NodeController>::clone(&node),
        Arc::<LifecycleController>::clone(&lifecycle),
    ];
    tokio::spawn(async move {
        let listeners = [node.listener(), lifecycle.listener()];
        futures::join!(
            nodes.follow(watch, &listeners, &stop),
            node.run(stop.clone()),
            lifecycle.run(stop.clone()),
            write_events(client, reports, clock, stop.clone()),
        );
    });
    both
}
