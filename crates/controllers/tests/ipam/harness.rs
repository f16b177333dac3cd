//! A part of a shared cluster, and a controller that sees no more of it.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::SystemClock;
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::ipam::{EVENT_SOURCE, IpamController, IpamParts, IpamSettings};
use cloudkeel_controllers::runtime::{Cache, EventRecorder, NodeWriter, Unobserved, write_events};
use cloudkeel_controllers::view::SlimNode;
use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name, wait_for_node};
use cloudkeel_testkit::either_api::{EitherApi, RunningApi};
use k8s_openapi::api::core::v1::{Event, Node, ServiceAccount};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Far beyond what anything here takes.
const DEADLINE: Duration = Duration::from_mins(1);
const LABEL: &str = "test.cloudkeel.dev/cluster";

/// Settings for these cluster CIDRs.
pub(crate) fn settings(cluster: &[&str]) -> IpamSettings {
    IpamSettings::new(cluster.iter().map(|cidr| cidr.parse().unwrap()).collect())
}

/// The Nodes of one test, distinguished by a label.
pub(crate) struct Cluster {
    api: RunningApi,
    admin: Client,
    label: String,
}

impl Cluster {
    pub(crate) async fn on(api: EitherApi) -> Self {
        let api = api.run().await;
        Self {
            admin: api.client(),
            api,
            label: unique_name("ipam"),
        }
    }

    /// A client with the rights that the controller has in every cluster.
    pub(crate) async fn client(&self) -> Client {
        let (namespace, name) = ("kube-system", "node-controller");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), namespace);
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match accounts.create(&PostParams::default(), &account).await {
            Ok(_) => {}
            // Another test was first.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("no service account: {error}"),
        }
        self.api.service_account_client(namespace, name).await
    }

    /// Starts a controller.
    pub(crate) async fn start(&self, settings: &IpamSettings) -> Running {
        self.start_through(settings, self.client().await).await
    }

    /// Starts a controller that writes Nodes through this client.
    pub(crate) async fn start_through(&self, settings: &IpamSettings, writing: Client) -> Running {
        let client = self.client().await;
        let nodes = Cache::new();
        let (recorder, reports) = EventRecorder::channel();
        let parts = IpamParts {
            nodes: Arc::clone(&nodes),
            clouds: Vec::new(),
            writer: NodeWriter::new(writing),
            events: recorder.sink(EVENT_SOURCE),
            clock: Arc::new(SystemClock),
            queue_observer: Arc::new(Unobserved),
            observer: Arc::new(Unobserved),
        };
        let controller = IpamController::new(settings, parts).unwrap();
        let listeners = [controller.listener()];

        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let stopped = stop.clone();
        tasks.spawn(async move { controller.run(stopped).await });
        let clock = Arc::new(SystemClock);
        tasks.spawn(write_events(client.clone(), reports, clock, stop.clone()));
        let stopped = stop.clone();
        let ours = watcher::Config::default().labels(&format!("{LABEL}={}", self.label));
        let events = watcher(Api::<SlimNode>::all(client), ours).default_backoff();
        tasks.spawn(async move { nodes.follow(events, &listeners, &stopped).await });
        Running { stop, tasks }
    }

    pub(crate) async fn create(&self, name: &str) -> Node {
        let node = NodeBuilder::new(name).label(LABEL, &self.label);
        node.create(&self.admin).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The networks of a Node; none if it is gone.
    pub(crate) async fn cidrs(&self, name: &str) -> Vec<String> {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes
            .get_opt(name)
            .await
            .unwrap()
            .as_ref()
            .map(cidrs)
            .unwrap_or_default()
    }

    /// The networks of a Node, once it has some.
    pub(crate) async fn wait_for_cidrs(&self, name: &str) -> Vec<String> {
        let has_some = |node: &Node| !cidrs(node).is_empty();
        cidrs(&wait_for_node(&self.admin, name, DEADLINE, has_some).await)
    }

    pub(crate) async fn wait_for_event(&self, node: &str, reason: &str) -> Event {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), "default");
        let which = format!("involvedObject.name={node},reason={reason}");
        let wanted = ListParams::default().fields(&which);
        eventually(&format!("an event with {which}"), DEADLINE, || async {
            let found = events.list(&wanted).await;
            found.map(|found| found.items.into_iter().next())
        })
        .await
    }
}

fn cidrs(node: &Node) -> Vec<String> {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.pod_cidrs.clone())
        .unwrap_or_default()
}

/// A controller at work, until it is dropped.
pub(crate) struct Running {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    /// Stops it and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}
