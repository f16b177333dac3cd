//! Whole managers in this process, with a cluster and a cloud, on a paused clock: hours take moments, and the wall
//! clock of a manager can be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cloudkeel_api::{Clock, ConfigSource, Registry, TokioClock};
use cloudkeel_embedded::{DirectClient, EmbeddedApi};
use cloudkeel_manager::election::BackgroundTasks;
use cloudkeel_manager::run::{Ending, Invocation, Replica, RunError, Start, read_invocation};
use cloudkeel_provider_local::LocalFactory;
use cloudkeel_testkit::simulated_cloud::{InProcess, MachineSpec, Settings, SimulatedCloud};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

const NODES: &str = "/api/v1/nodes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const KUBELETS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// How often a kubelet renews its lease.
const BEAT: Duration = Duration::from_secs(10);

pub(crate) struct Simulated {
    pub(crate) cloud: SimulatedCloud,
    api: EmbeddedApi,
    direct: DirectClient,
    time: TokioClock,
    /// The Nodes whose kubelets renew their leases.
    beating: Vec<String>,
}

/// A manager. Dropping it ends it at once.
pub(crate) struct Manager {
    pub(crate) clock: WallClock,
    task: JoinHandle<()>,
    _stop: DropGuard,
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The clock of a manager's host: durations are right, but the wall clock may be off.
#[derive(Clone)]
pub(crate) struct WallClock {
    right: TokioClock,
    off_by_seconds: Arc<AtomicI64>,
}

impl WallClock {
    pub(crate) fn jump(&self, seconds: i64) {
        self.off_by_seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let off_by = SignedDuration::from_secs(self.off_by_seconds.load(Ordering::Relaxed));
        self.right.now() + off_by
    }
}

impl Simulated {
    pub(crate) fn new() -> Self {
        let start = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let time = TokioClock::starting_at(start);
        let api = EmbeddedApi::builder().clock(Arc::new(time)).build();
        Self {
            cloud: SimulatedCloud::new(Settings::default()),
            direct: api.direct_client("user"),
            api,
            time,
            beating: Vec::new(),
        }
    }

    /// A manager with these flags besides the usual ones.
    pub(crate) fn start(&self, name: &str, flags: &[&str]) -> Manager {
        let factory = LocalFactory::wired(self.cloud.wiring());
        let registry = Registry::new().with(factory).expect("one provider");
        let clock = WallClock {
            right: self.time,
            off_by_seconds: Arc::default(),
        };
        let replica = Replica {
            start: start(&registry, flags),
            api: self.api.client(name),
            clock: Arc::new(clock.clone()),
            name: name.to_owned(),
            seed: 1,
            background: BackgroundTasks::default(),
            reload: None,
        };
        let stop = CancellationToken::new();
        let until = stop.clone();
        let task = tokio::spawn(async move {
            // Its outcome shows in what it did.
            let _ = replica.run(&registry, until).await;
        });
        Manager {
            clock,
            task,
            _stop: stop.drop_guard(),
        }
    }

    /// A manager with another provider and exactly this command line. It ends as it ends.
    pub(crate) fn run(
        &self,
        name: &str,
        registry: Registry,
        command: &[&str],
    ) -> JoinHandle<Result<Ending, RunError>> {
        let words: Vec<String> = command.iter().map(ToString::to_string).collect();
        let invocation = read_invocation(&words, &registry, &[]).expect("good flags");
        let Invocation::Manager(start) = invocation else {
            panic!("{words:?} is not the command line of a manager");
        };
        let replica = Replica {
            start: *start,
            api: self.api.client(name),
            clock: Arc::new(self.time),
            name: name.to_owned(),
            seed: 1,
            background: BackgroundTasks::default(),
            reload: None,
        };
        tokio::spawn(async move { replica.run(&registry, CancellationToken::new()).await })
    }

    /// Advances the clock, while kubelets report.
    pub(crate) async fn advance(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            for node in &self.beating {
                self.beat(node);
            }
            let step = left.min(BEAT);
            tokio::time::sleep(step).await;
            left -= step;
        }
    }

    fn beat(&self, node: &str) {
        let renewed = format!("{:.6}", self.time.now());
        let spec =
            json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed});
        let path = format!("{KUBELETS}/{node}");
        if self.direct.merge(&path, &json!({"spec": spec})).is_err() {
            let lease = json!({"metadata": {"name": node}, "spec": spec});
            self.direct.create(KUBELETS, &lease).expect("a lease");
        }
    }

    /// An instance and its Node, whose kubelet reports from now on. Returns the ID of the instance.
    pub(crate) fn join(&mut self, name: &str) -> u64 {
        let machine = self.cloud.add_machine(MachineSpec::named(name));
        let machine = machine.expect("a machine").id;
        self.register(name, &json!({}));
        machine
    }

    /// A Node that waits to be initialized, with these fields. Its kubelet reports from now on.
    pub(crate) fn register(&mut self, name: &str, spec: &Value) {
        let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
        let mut node = json!({
            "metadata": {"name": name},
            "spec": {"taints": [taint]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (key, value) in spec.as_object().expect("an object") {
            node["spec"][key] = value.clone();
        }
        self.direct.create(NODES, &node).expect("a node");
        self.beating.push(name.to_owned());
    }

    /// The kubelet stops reporting.
    pub(crate) fn stop_heartbeats(&mut self, name: &str) {
        self.beating.retain(|beating| beating != name);
    }

    pub(crate) fn set_ready(&self, name: &str, ready: &str) {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let status = json!({"status": {"conditions": conditions}});
        let path = format!("{NODES}/{name}/status");
        self.direct
            .merge(&path, &status)
            .expect("the node is there");
    }

    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        self.direct.get(&format!("{NODES}/{name}")).ok()
    }

    pub(crate) fn is_initialized(&self, name: &str) -> bool {
        let node = self.node(name).expect("the node is there");
        let taints = node["spec"]["taints"].as_array().cloned();
        let mut taints = taints.unwrap_or_default().into_iter();
        !taints.any(|taint| taint["key"] == UNINITIALIZED)
    }

    pub(crate) fn serve(&self, name: &str, annotations: &Value) {
        let service = json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
        });
        self.direct.create(SERVICES, &service).expect("a service");
    }

    pub(crate) fn unserve(&self, name: &str) {
        let deleted = self.direct.delete(&format!("{SERVICES}/{name}"));
        deleted.expect("the service is there");
    }

    pub(crate) fn is_service(&self, name: &str) -> bool {
        self.direct.get(&format!("{SERVICES}/{name}")).is_ok()
    }

    pub(crate) fn address(&self, service: &str) -> Option<String> {
        let service = self.direct.get(&format!("{SERVICES}/{service}"));
        let service = service.expect("the service is there");
        let ip = &service["status"]["loadBalancer"]["ingress"][0]["ip"];
        ip.as_str().map(str::to_owned)
    }

    /// The events about an object with this reason.
    pub(crate) fn events(&self, name: &str, reason: &str) -> Vec<Value> {
        let all = self.direct.get(EVENTS).expect("events can be listed");
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let about = |event: &Value| event["involvedObject"]["name"] == name;
        let is_meant = |event: &Value| about(event) && event["reason"] == reason;
        all.into_iter().filter(is_meant).collect()
    }

    /// The leader, and how often it has changed.
    pub(crate) fn leader(&self) -> (String, u64) {
        let lease = self.direct.get(LEASE).expect("there is a leader");
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let changes = lease["spec"]["leaseTransitions"].as_u64();
        (holder.to_owned(), changes.unwrap_or_default())
    }
}

/// The command line of a manager.
fn start(registry: &Registry, flags: &[&str]) -> Start {
    let usual = ["cloudkeel", "--cloud-provider=local", "--secure-port=0"];
    let words = usual.iter().chain(flags).map(ToString::to_string);
    let words: Vec<String> = words.collect();
    let invocation = read_invocation(&words, registry, &[]).expect("good flags");
    let Invocation::Manager(mut start) = invocation else {
        panic!("{words:?} is not the command line of a manager");
    };
    let config = json!({
        "endpoint": InProcess::URL,
        "token": SimulatedCloud::TOKEN,
        "project": SimulatedCloud::PROJECT,
    });
    let cloud = start.setup.clouds.first_mut().expect("there is a cloud");
    cloud.config = ConfigSource::Own(config);
    *start
}
