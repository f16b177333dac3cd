//! The controller, a cluster and a cloud, and a test that turns the hands of the clock.

use std::sync::{Arc, Mutex};

use cloudkeel_api::{
    Clock, CloudProvider, ClusterIdentity, CollectedEvents, ProviderContext, TargetBy, TokioClock,
};
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{
    Cache, EventRecorder, ServiceWriter, Unobserved, write_events,
};
use cloudkeel_controllers::service::owner::{Classes, ServiceOwner};
use cloudkeel_controllers::service::{
    EVENT_SOURCE, ServiceController, ServiceObserver, ServiceParts, ServiceSettings,
};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, Machine};
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};
use serde_json::{Value, json};
use tokio::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::cluster::Cluster;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The UID of this cluster.
pub(crate) const CLUSTER: &str = "cluster-1";

/// Hears what the controller says of itself.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) updates: Mutex<Vec<bool>>,
    pub(crate) passes: Mutex<Vec<Duration>>,
    pub(crate) published: Mutex<Vec<Duration>>,
    pub(crate) drifts: Mutex<usize>,
    pub(crate) left_over: Mutex<usize>,
}

impl ServiceObserver for Observed {
    fn hosts_updated(&self, _took: Duration, failed: bool) {
        self.updates.lock().unwrap().push(failed);
    }
    fn nodes_followed(&self, took: Duration) {
        self.passes.lock().unwrap().push(took);
    }
    fn published(&self, _cloud: &str, took: Duration) {
        self.published.lock().unwrap().push(took);
    }
    fn drifted(&self, _cloud: &str) {
        *self.drifts.lock().unwrap() += 1;
    }
    fn left_over(&self, _cloud: &str, balancers: usize) {
        *self.left_over.lock().unwrap() = balancers;
    }
}

/// One cloud of a lab: its name, the class it serves if it is not the default, and itself.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    pub(crate) class: Option<&'static str>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

pub(crate) struct Lab {
    pub(crate) api: Cluster,
    pub(crate) cloud: SimulatedCloud,
    pub(crate) machines: Vec<Machine>,
    pub(crate) observed: Arc<Observed>,
    /// Events of the provider itself.
    pub(crate) provider_events: Arc<CollectedEvents>,
    clock: TokioClock,
    sites: Vec<Site>,
    settings: ServiceSettings,
    running: Option<(Arc<ServiceController>, DropGuard)>,
    /// The clouds of the controller that runs.
    clouds: Vec<Arc<Cloud>>,
}

impl Lab {
    /// A cluster of so many Nodes with a machine each, and the controller at work in it.
    pub(crate) async fn with_nodes(nodes: usize) -> Self {
        Self::with(nodes, Settings::default(), ServiceSettings::default()).await
    }

    pub(crate) async fn with(nodes: usize, cloud: Settings, settings: ServiceSettings) -> Self {
        let mut lab = Self::idle(nodes, cloud, settings).await;
        lab.start();
        lab.pass(SECOND * 2).await;
        lab.cloud.reset_calls();
        lab
    }

    /// The same without the controller.
    pub(crate) async fn idle(nodes: usize, cloud: Settings, settings: ServiceSettings) -> Self {
        let cloud = SimulatedCloud::new(cloud);
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let mut lab = Self {
            api: Cluster::new(clock),
            machines: Vec::new(),
            observed: Arc::default(),
            provider_events: Arc::default(),
            clock,
            sites: Vec::new(),
            settings,
            running: None,
            clouds: Vec::new(),
            cloud: cloud.clone(),
        };
        let provider = lab.provider_of(&cloud).await;
        lab.sites.push(Site {
            name: "local",
            class: None,
            provider,
        });
        for index in 0..nodes {
            lab.add_node(&format!("node-{index:03}"));
        }
        lab
    }

    pub(crate) async fn provider_of(&self, cloud: &SimulatedCloud) -> Arc<dyn CloudProvider> {
        let context = ProviderContext {
            clock: Arc::new(self.clock),
            cluster: identity(),
            events: Arc::<CollectedEvents>::clone(&self.provider_events),
            ..ProviderContext::detached("local")
        };
        Arc::new(cloud.provider(&context).await.unwrap())
    }

    /// Other clouds than the one that was there from the beginning.
    pub(crate) fn set_sites(&mut self, sites: Vec<Site>) {
        self.sites = sites;
    }

    /// A process begins, as after a restart or a change of leader.
    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none());
        let stop = CancellationToken::new();
        let clock: Arc<dyn Clock> = Arc::new(self.clock);
        let cloud = |site: &Site| {
            let provider = Arc::clone(&site.provider);
            Cloud::new(site.name, provider, None, Arc::clone(&clock))
        };
        self.clouds = self.sites.iter().map(cloud).collect();
        let controller = self.spawn(&stop);
        self.running = Some((controller, stop.drop_guard()));
    }

    /// The process ends, in the middle of whatever it does.
    pub(crate) async fn stop(&mut self) {
        self.running = None;
        self.pass(Duration::from_millis(10)).await;
    }

    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start();
    }

    pub(crate) fn controller(&self) -> &ServiceController {
        &self.running.as_ref().unwrap().0
    }

    /// The first cloud gets another provider, as when its configuration is reloaded.
    pub(crate) fn reload(&self, provider: Arc<dyn CloudProvider>) {
        self.clouds[0].cell.replace(provider);
    }

    /// Lists the machines of all clouds, as the node controller does in a whole manager.
    pub(crate) async fn list_machines(&self) {
        for cloud in &self.clouds {
            let listed = cloud.inventory.no_older_than(Duration::ZERO).await;
            listed.unwrap();
        }
    }

    /// How many Services the controller remembers.
    pub(crate) fn remembered(&self) -> usize {
        self.controller().remembered()
    }

    fn spawn(&self, stop: &CancellationToken) -> Arc<ServiceController> {
        let clock: Arc<dyn Clock> = Arc::new(self.clock);
        let nodes = Cache::<NodeView>::new();
        let services = Cache::<ServiceView>::new();
        let (recorder, reports) = EventRecorder::channel();
        let owner = |site: &Site| ServiceOwner {
            is_own_config: false,
            cloud: site.name.to_owned(),
            default: site.class.is_none(),
            classes: site.class.map(str::to_owned).into_iter().collect(),
            target_clouds: Vec::new(),
            by: TargetBy::Machine,
        };
        let controller = ServiceController::new(
            ServiceParts {
                services: Arc::clone(&services),
                nodes: Arc::clone(&nodes),
                clouds: self.clouds.clone(),
                classes: Classes::new(self.sites.iter().map(owner).collect()),
                cluster: identity(),
                writer: ServiceWriter::new(self.api.client()),
                events: recorder.sink(EVENT_SOURCE),
                clock: Arc::clone(&clock),
                observer: Arc::<Observed>::clone(&self.observed),
                queue_observer: Arc::new(Unobserved),
            },
            self.settings.clone(),
        );
        let (api, stop, running) = (self.api.clone(), stop.clone(), Arc::clone(&controller));
        let work = async move {
            let node_listeners = [running.node_listener()];
            let service_listeners = [running.service_listener()];
            let never = CancellationToken::new();
            futures::join!(
                nodes.follow(api.watch_nodes(), &node_listeners, &never),
                services.follow(api.watch_services(), &service_listeners, &never),
                running.run(never.clone()),
                write_events(api.client(), reports, clock, never.clone()),
            );
        };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
        controller
    }

    /// A machine, and a Node of its name that is initialised.
    pub(crate) fn add_node(&mut self, name: &str) {
        let machine = self.cloud.add_machine(MachineSpec::named(name)).unwrap();
        let node = json!({
            "spec": {"providerID": format!("local://{}/{}", SimulatedCloud::PROJECT, machine.id)},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        self.api.world().create(name, &node);
        self.machines.push(machine);
    }

    /// A Node of another cloud, by the scheme of its ID.
    pub(crate) fn add_node_of(&self, scheme: &str, name: &str) {
        let node = json!({"spec": {"providerID": format!("{scheme}://{name}")}});
        self.api.world().create(name, &node);
    }

    /// Lets time pass. The clock moves on only when every task waits.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// So many Services, served: `svc-0` and on.
    pub(crate) async fn serve(&self, services: usize) {
        for index in 0..services {
            self.api
                .world()
                .create_service(&format!("svc-{index}"), &json!({}));
        }
        self.pass(SECOND * 5).await;
        for index in 0..services {
            assert!(
                self.address(&format!("svc-{index}")).is_some(),
                "svc-{index}"
            );
        }
        self.forget();
    }

    /// Forgets what was written, recorded and called.
    pub(crate) fn forget(&self) {
        self.api.forget();
        self.cloud.reset_calls();
    }

    /// The published address of a Service.
    pub(crate) fn address(&self, service: &str) -> Option<String> {
        let service = self.api.world().service(service)?;
        let ip = &service["status"]["loadBalancer"]["ingress"][0]["ip"];
        ip.as_str().map(str::to_owned)
    }

    pub(crate) fn has_finalizer(&self, service: &str) -> bool {
        let service = self.api.world().service(service).unwrap();
        let finalizers = service["metadata"]["finalizers"].as_array().cloned();
        finalizers.unwrap_or_default().contains(&json!(FINALIZER))
    }

    /// Whether the Service is there and waits for its balancer to go.
    pub(crate) fn is_held(&self, service: &str) -> bool {
        self.api.world().service(service).is_some() && self.has_finalizer(service)
    }

    /// The balancer of a Service, by its owner labels.
    pub(crate) fn balancer(&self, service: &str) -> Option<Balancer> {
        let service = self.api.world().service(service)?;
        let uid = service["metadata"]["uid"].as_str()?.to_owned();
        let mut balancers = self.cloud.balancers().into_iter();
        balancers.find(|balancer| balancer.labels.get("cloudkeel.dev/service-uid") == Some(&uid))
    }

    /// The messages of events about a Service with this reason, with repeats.
    pub(crate) fn events(&self, service: &str, reason: &str) -> Vec<String> {
        let events = self.api.events(reason).into_iter();
        events
            .filter(|events| events.about == service)
            .flat_map(|events| {
                let count = usize::try_from(events.count).unwrap();
                std::iter::repeat_n(events.message, count)
            })
            .collect()
    }

    /// What was patched, as far as it matters, with the HTTP status of each answer.
    pub(crate) fn patched(&self, service: &str) -> Vec<(Value, u16)> {
        let writes = self.api.writes().into_iter();
        writes
            .filter(|write| write.name == service)
            .map(|write| (write.body, write.status))
            .collect()
    }

    /// The names of the Nodes that a Service's balancer sends traffic to.
    pub(crate) fn targets(&self, service: &str) -> Vec<String> {
        use cloudkeel_testkit::simulated_cloud::wire::{TargetAt, TargetState};
        let balancer = self.balancer(service).unwrap();
        let name = |id: u64| {
            let known = self.machines.iter().find(|machine| machine.id == id);
            known.map_or_else(|| id.to_string(), |machine| machine.name.clone())
        };
        let targets = balancer.targets.iter().map(|target| {
            let name = match target.at {
                TargetAt::Machine(id) => name(id),
                TargetAt::Ip(ip) => ip.to_string(),
            };
            match target.state {
                TargetState::Serving => name,
                TargetState::Draining => format!("{name} (draining)"),
            }
        });
        let mut targets: Vec<_> = targets.collect();
        targets.sort();
        targets
    }
}

pub(crate) fn identity() -> ClusterIdentity {
    ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: Some(CLUSTER.to_owned()),
        pod_cidrs: Vec::new(),
    }
}
