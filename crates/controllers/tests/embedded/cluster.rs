//! A cluster, its cloud, and the controllers between them.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, ProviderContext, TokioClock};
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::lifecycle::{
    LeaseHeartbeats, LifecycleController, LifecycleObserver, LifecycleParts, LifecycleSettings,
};
use cloudkeel_controllers::node::{NodeController, NodeObserver, NodeParts, NodeSettings};
use cloudkeel_controllers::runtime::{Cache, EventRecorder, NodeWriter, Unobserved, write_events};
use cloudkeel_controllers::view::{NodeView, SlimNode};
use cloudkeel_embedded::{Commit, EmbeddedApi, Kubelet, KubeletConfig, NodeMonitor};
use cloudkeel_testkit::simulated_cloud::wire::Machine;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Observes nothing.
struct Unheard;

impl LifecycleObserver for Unheard {
    fn instance_checked(&self, _result: &'static str) {}
    fn node_deleted(&self, _cloud: &str) {}
    fn deletions_stopped(&self, _cloud: &str, _stopped: bool) {}
}

impl NodeObserver for Unheard {
    fn initialized(&self, _since_created: Duration) {}
}

pub(crate) struct Cluster {
    api: EmbeddedApi,
    cloud: SimulatedCloud,
    machines: Vec<Machine>,
    kubelets: Vec<Kubelet>,
    _monitor: NodeMonitor,
    _stop: DropGuard,
}

impl Cluster {
    /// So many machines with a kubelet each, and both controllers at work.
    pub(crate) async fn start(count: usize) -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        let cloud = SimulatedCloud::new(Settings::default());
        let context = ProviderContext {
            clock: Arc::clone(&clock),
            ..ProviderContext::detached("local")
        };
        let provider = cloud.provider(&context).await.expect("a provider");
        let machine = |index: usize| MachineSpec::named(format!("node-{index}"));
        let machines = cloud.add_machines(count, machine).expect("machines");
        let api = EmbeddedApi::builder()
            .clock(Arc::clone(&clock))
            .keep_journal()
            .build();
        let clouds = vec![Cloud::new(
            "local",
            Arc::new(provider),
            None,
            Arc::clone(&clock),
        )];
        let stop = CancellationToken::new();
        control(&api.client("cloudkeel"), clouds, &clock, &stop);
        let kubelet = |machine: &Machine| {
            let address = machine.addresses.first().expect("an address").ip;
            let config = KubeletConfig::new(&machine.name, address);
            Kubelet::start(&api.client("kubelet"), Arc::clone(&clock), config)
        };
        Self {
            kubelets: machines.iter().map(kubelet).collect(),
            _monitor: NodeMonitor::start(&api.client("kube-controller-manager"), clock),
            _stop: stop.drop_guard(),
            api,
            cloud,
            machines,
        }
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.machines[index].name
    }

    pub(crate) fn kubelet(&self, index: usize) -> &Kubelet {
        &self.kubelets[index]
    }

    pub(crate) async fn node(&self, index: usize) -> Option<Node> {
        let nodes: Api<Node> = Api::all(self.api.client("test"));
        nodes.get_opt(self.name(index)).await.expect("an answer")
    }

    /// The machine vanishes from the cloud.
    pub(crate) fn destroy(&self, index: usize) {
        self.cloud
            .destroy(self.machines[index].id)
            .expect("a machine");
    }

    /// Every change so far, and who made it.
    pub(crate) fn changes(&self) -> Vec<Arc<Commit>> {
        self.api.journal()
    }
}

/// Runs both controllers as the manager does: one watch, one cache, one client.
fn control(
    client: &Client,
    clouds: Vec<Arc<Cloud>>,
    clock: &Arc<dyn Clock>,
    stop: &CancellationToken,
) {
    let nodes = Cache::<NodeView>::new();
    let (recorder, reports) = EventRecorder::channel();
    let node = NodeController::new(
        NodeParts {
            nodes: Arc::clone(&nodes),
            clouds: clouds.clone(),
            writer: NodeWriter::new(client.clone()),
            events: recorder.sink("cloud-node-controller"),
            clock: Arc::clone(clock),
            observer: Arc::new(Unheard),
            queue_observer: Arc::new(Unobserved),
        },
        NodeSettings::default(),
    );
    let lifecycle = LifecycleController::new(
        LifecycleParts {
            nodes: Arc::clone(&nodes),
            clouds,
            writer: NodeWriter::new(client.clone()),
            events: recorder.sink("cloud-node-lifecycle-controller"),
            clock: Arc::clone(clock),
            observer: Arc::new(Unheard),
            queue_observer: Arc::new(Unobserved),
        },
        LeaseHeartbeats::new(client.clone(), client.clone()),
        LifecycleSettings::default(),
    );
    let watch = watcher(
        Api::<SlimNode>::all(client.clone()),
        watcher::Config::default(),
    );
    let (client, clock, stop) = (client.clone(), Arc::clone(clock), stop.clone());
    tokio::spawn(async move {
        let listeners = [node.listener(), lifecycle.listener()];
        futures::join!(
            nodes.follow(watch.default_backoff(), &listeners, &stop),
            node.run(stop.clone()),
            lifecycle.run(stop.clone()),
            write_events(client, reports, clock, stop.clone()),
        );
    });
}
