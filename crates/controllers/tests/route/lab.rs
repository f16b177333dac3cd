//! A route controller, a cluster and a cloud, and a test that turns the hands of the clock.

use std::sync::{Arc, Mutex};

use cloudkeel_api::{Clock, ProviderContext, TokioClock};
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::route::{
    EVENT_SOURCE, Outcome, RouteController, RouteObserver, RouteParts, RouteSettings, Trigger,
};
use cloudkeel_controllers::runtime::{Cache, EventRecorder, NodeWriter, Unobserved, write_events};
use cloudkeel_controllers::view::NodeView;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, Machine, NewRoute, Route};
use cloudkeel_testkit::simulated_cloud::{
    LocalId, MachineSpec, Permission, Settings, SimulatedCloud,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::cluster::Cluster;
use crate::support::gate::What;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// A second project, whose routes are another cloud's.
pub(crate) const OTHER: &str = "other";
const OTHER_TOKEN: &str = "other-token";

/// Hears what came of every look.
#[derive(Default)]
pub(crate) struct Observed(Mutex<Vec<(Outcome, Trigger)>>);

impl RouteObserver for Observed {
    fn reconciled(&self, outcome: Outcome, trigger: Trigger) {
        self.0.lock().unwrap().push((outcome, trigger));
    }
}

pub(crate) struct Lab {
    pub(crate) api: Cluster,
    pub(crate) cloud: SimulatedCloud,
    clock: TokioClock,
    observed: Arc<Observed>,
    stop: DropGuard,
    settings: RouteSettings,
    controller: Option<Arc<RouteController>>,
    /// The clouds of the controller that runs.
    clouds: Vec<Arc<Cloud>>,
}

impl Lab {
    /// A controller at work in an empty cluster.
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default(), |_| {}).await
    }

    pub(crate) async fn with(cloud: Settings, change: impl FnOnce(&mut RouteSettings)) -> Self {
        let cloud = SimulatedCloud::new(cloud);
        cloud.add_project(OTHER);
        cloud.grant(OTHER_TOKEN, OTHER, Permission::ReadWrite);
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let networks = ["10.244.0.0/16", "fd00:244::/48"];
        let networks = networks.map(|network| network.parse().unwrap());
        let mut settings = RouteSettings::new(networks.to_vec());
        change(&mut settings);
        let clock = TokioClock::starting_at(epoch);
        let mut lab = Self {
            api: Cluster::new(clock),
            cloud,
            clock,
            observed: Arc::default(),
            stop: CancellationToken::new().drop_guard(),
            settings,
            controller: None,
            clouds: Vec::new(),
        };
        lab.restart().await;
        lab
    }

    /// So many Nodes with a route each, and nothing left to do.
    pub(crate) async fn settled(nodes: u8) -> Self {
        let lab = Self::new().await;
        for index in 0..nodes {
            lab.join(index);
        }
        lab.pass(MINUTE).await;
        assert_eq!(lab.routes().len(), usize::from(nodes));
        lab.forget();
        lab
    }

    /// Ends the controller, if there is one, and starts another that knows nothing.
    pub(crate) async fn restart(&mut self) {
        let stop = CancellationToken::new();
        self.stop = stop.clone().drop_guard();
        let clock: Arc<dyn Clock> = Arc::new(self.clock);
        let context = ProviderContext {
            clock: Arc::clone(&clock),
            ..ProviderContext::detached("local")
        };
        let first = self.cloud.provider(&context).await.unwrap();
        let other = self
            .cloud
            .provider_for(OTHER_TOKEN, &context)
            .await
            .unwrap();
        let clouds = vec![
            Cloud::new("first", Arc::new(first), None, Arc::clone(&clock)),
            Cloud::new("other", Arc::new(other), None, Arc::clone(&clock)),
        ];
        self.clouds.clone_from(&clouds);
        self.forget();
        let nodes = Cache::<NodeView>::new();
        let (recorder, reports) = EventRecorder::channel();
        let parts = RouteParts {
            nodes: Arc::clone(&nodes),
            clouds,
            writer: NodeWriter::new(self.api.client()),
            events: recorder.sink(EVENT_SOURCE),
            clock: Arc::clone(&clock),
            observer: Arc::<Observed>::clone(&self.observed),
            queue_observer: Arc::new(Unobserved),
        };
        let controller = RouteController::new(parts, self.settings.clone());
        self.controller = Some(Arc::clone(&controller));
        let (watch, client) = (self.api.watch_nodes(), self.api.client());
        tokio::spawn(async move {
            let listeners = [controller.listener()];
            futures::join!(
                nodes.follow(watch, &listeners, &stop),
                controller.run(stop.clone()),
                write_events(client, reports, clock, stop.clone()),
            );
        });
    }

    /// The first cloud gets a new provider, as when its credential is reloaded.
    pub(crate) async fn reload(&self) {
        let context = ProviderContext {
            clock: Arc::new(self.clock),
            ..ProviderContext::detached("local")
        };
        let provider = self.cloud.provider(&context).await.unwrap();
        self.clouds[0].cell.replace(Arc::new(provider));
    }

    pub(crate) fn controller(&self) -> &RouteController {
        self.controller.as_ref().unwrap()
    }

    /// Forgets what was called, written and recorded so far.
    pub(crate) fn forget(&self) {
        self.api.forget();
        self.cloud.reset_calls();
        self.observed.0.lock().unwrap().clear();
    }

    /// A machine and its Node, with the Pod network of this index.
    pub(crate) fn join(&self, index: u8) -> Machine {
        let machine = self.machine(index);
        self.add_node(&machine, &json!({}));
        machine
    }

    pub(crate) fn machine(&self, index: u8) -> Machine {
        let spec = MachineSpec::named(format!("node-{index}"));
        self.cloud.add_machine(spec).unwrap()
    }

    /// The Node of a machine in the first project, with this in addition.
    pub(crate) fn add_node(&self, machine: &Machine, more: &Value) {
        self.add_node_in(SimulatedCloud::PROJECT, machine, more);
    }

    pub(crate) fn add_node_in(&self, project: &str, machine: &Machine, more: &Value) {
        let index = machine.name.rsplit('-').next().unwrap();
        let id = LocalId::new(project, machine.id).provider_id();
        let addresses = machine.addresses.iter();
        let addresses: Vec<_> = addresses
            .map(|address| json!({"type": "InternalIP", "address": address.ip}))
            .collect();
        let mut node = json!({
            "spec": {"providerID": id, "podCIDRs": [format!("10.244.{index}.0/24")]},
            "status": {
                "addresses": addresses,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        json_patch::merge(&mut node, more);
        self.api.world().create(&machine.name, &node);
    }

    /// Lets time pass. The clock moves on only when every task waits.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The routes of the first project, as `network via hop`.
    pub(crate) fn routes(&self) -> Vec<String> {
        described(self.cloud.routes())
    }

    /// A route of another owner to a machine.
    pub(crate) fn add_route(&self, network: &str, machine: &Machine) -> Route {
        let new = NewRoute {
            destination: network.parse().unwrap(),
            hop: Hop::Machine(machine.id),
        };
        self.cloud.add_route(new).unwrap()
    }

    /// Status and reason of a Node's `NetworkUnavailable`.
    pub(crate) fn network_unavailable(&self, node: &str) -> Option<(String, String)> {
        let node = self.api.world().node(node).unwrap();
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|c| c["type"] == "NetworkUnavailable");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        found.map(|c| (text(&c["status"]), text(&c["reason"])))
    }

    pub(crate) fn is_available(&self, node: &str) -> bool {
        self.network_unavailable(node) == Some(("False".into(), "RouteCreated".into()))
    }

    pub(crate) fn is_unavailable(&self, node: &str) -> bool {
        self.network_unavailable(node) == Some(("True".into(), "NoRouteCreated".into()))
    }

    /// How many conditions were written, also in vain.
    pub(crate) fn written(&self) -> usize {
        let writes = self.api.writes();
        assert!(writes.iter().all(|w| w.what == What::WriteConditions));
        writes.len()
    }

    pub(crate) fn observed(&self) -> Vec<(&'static str, &'static str)> {
        let observed = self.observed.0.lock().unwrap();
        let observed = observed.iter();
        observed.map(|(o, t)| (o.as_str(), t.as_str())).collect()
    }
}

/// Routes as `network via hop`, in order.
pub(crate) fn described(routes: Vec<Route>) -> Vec<String> {
    let routes = routes.into_iter();
    let mut routes: Vec<_> = routes
        .map(|route| format!("{} via {}", route.destination, route.hop))
        .collect();
    routes.sort();
    routes
}
