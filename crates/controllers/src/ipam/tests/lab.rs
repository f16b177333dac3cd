//! A controller on the embedded API, which fails by a script.

use std::collections::VecDeque;

use async_trait::async_trait;
use cloudkeel_api::{CollectedEvents, SharedEvents, SystemClock, TokioClock};
use cloudkeel_embedded::{
    After, Before, Call, DirectClient, EmbeddedApi, Interposer, Refusal, Verb,
};
use futures::stream;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::super::*;
use crate::runtime::{Cache, NodeWriter, Unobserved};
use crate::view::SlimNode;

const NODES: &str = "/api/v1/nodes";

/// What goes wrong with a request.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// It does not arrive.
    Lost,
    /// It is carried out, but the answer does not arrive.
    AnswerLost,
    /// It is carried out, but the answer is this status.
    AnswerReplaced(u16),
    /// It is answered with this status and not carried out.
    Refused(u16),
}

/// What happens to the requests of the controller, and which they were.
#[derive(Default)]
struct Script {
    faults: Mutex<VecDeque<Fault>>,
    /// What is to become of the answer to the request that is being carried out.
    answer: Mutex<Option<After>>,
    requests: Mutex<Vec<String>>,
}

#[async_trait]
impl Interposer for Script {
    async fn before(&self, call: &Call) -> Before {
        let method = match call.verb {
            Verb::Get => "GET",
            Verb::Patch => "PATCH",
            other => panic!("the controller should not ask for {other:?}"),
        };
        let name = call.name.as_deref().unwrap();
        self.requests.lock().push(format!("{method} {name}"));
        let fault = self.faults.lock().pop_front();
        let (before, after) = match fault.unwrap_or(Fault::None) {
            Fault::None => (Before::Pass, After::Deliver),
            Fault::Lost => (Before::Disconnect, After::Deliver),
            Fault::Refused(code) => (Before::Refuse(refusal(code)), After::Deliver),
            Fault::AnswerLost => (Before::Pass, After::Lose),
            Fault::AnswerReplaced(code) => (Before::Pass, After::Replace(refusal(code))),
        };
        *self.answer.lock() = Some(after);
        before
    }

    async fn after(&self, _call: &Call, _code: u16) -> After {
        self.answer.lock().take().unwrap()
    }
}

fn refusal(code: u16) -> Refusal {
    let why = "as the test has planned";
    match code {
        403 => Refusal::forbidden(why),
        408 => Refusal::request_timeout(why),
        409 => Refusal::conflict(why),
        500 => Refusal::internal_error(why),
        504 => Refusal::timeout(why),
        other => panic!("no refusal for {other}"),
    }
}

/// The API, as all clients but the controller use it.
pub(super) struct Cluster {
    api: EmbeddedApi,
    direct: DirectClient,
    script: Arc<Script>,
}

impl Cluster {
    fn new() -> Self {
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let api = EmbeddedApi::builder().clock(Arc::new(clock)).build();
        Self {
            direct: api.direct_client("another-client"),
            api,
            script: Arc::default(),
        }
    }

    /// The client of the controller.
    fn client(&self) -> Client {
        let script = Arc::<Script>::clone(&self.script);
        self.api.client_through("cloudkeel", script)
    }

    /// A new Node, as it is then.
    pub(super) fn create(&self, name: &str, cidrs: &[&str]) {
        let node = json!({"metadata": {"name": name}, "spec": spec(cidrs)});
        self.direct.create(NODES, &node).unwrap();
    }

    pub(super) fn delete(&self, name: &str) -> Node {
        let last = self.get(name);
        if last.metadata.deletion_timestamp.is_none() {
            self.direct.delete(&path(name)).unwrap();
        } else {
            self.change(name, &json!({"metadata": {"finalizers": null}}));
        }
        last
    }

    /// Asks for a deletion that has to wait.
    pub(super) fn begin_to_delete(&self, name: &str) {
        let finalizers = json!(["example.com/wait"]);
        self.change(name, &json!({"metadata": {"finalizers": finalizers}}));
        self.direct.delete(&path(name)).unwrap();
    }

    /// Changes a Node as another client would.
    pub(super) fn change(&self, name: &str, change: &Value) {
        self.direct.merge(&path(name), change).unwrap();
    }

    pub(super) fn set_cidrs(&self, name: &str, cidrs: &[&str]) {
        self.change(name, &json!({"spec": spec(cidrs)}));
    }

    /// What happens to the next requests, in their order.
    pub(super) fn fail(&self, faults: &[Fault]) {
        self.script.faults.lock().extend(faults);
    }

    pub(super) fn get(&self, name: &str) -> Node {
        node(self.direct.get(&path(name)).unwrap())
    }

    fn all(&self) -> Vec<Node> {
        let list = self.direct.get(NODES).unwrap();
        let items = list["items"].as_array().unwrap().iter();
        items.cloned().map(node).collect()
    }

    /// The networks of a Node, in one line.
    pub(super) fn cidrs(&self, name: &str) -> String {
        let spec = self.get(name).spec.unwrap_or_default();
        let cidrs = spec.pod_cidrs.unwrap_or_default();
        assert_eq!(spec.pod_cidr.as_ref(), cidrs.first(), "both are written");
        cidrs.join(" ")
    }

    /// All requests of the controller since the last call.
    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.script.requests.lock())
    }
}

/// A controller at work in a [`Cluster`]. Time is paused and passes only where a test lets it.
pub(super) struct Lab {
    pub(super) api: Cluster,
    cache: Arc<Cache<NodeView>>,
    listeners: Vec<Listener<NodeView>>,
    events: Arc<CollectedEvents>,
    _stop: DropGuard,
}

impl Lab {
    /// A controller that has seen these Nodes.
    pub(super) async fn start(settings: &IpamSettings, nodes: &[(&str, &[&str])]) -> Self {
        let lab = Self::blind(settings);
        for (name, cidrs) in nodes {
            lab.api.create(name, cidrs);
        }
        lab.see_all().await;
        lab
    }

    /// A controller that has seen nothing.
    pub(super) fn blind(settings: &IpamSettings) -> Self {
        let (api, cache) = (Cluster::new(), Cache::new());
        let events = Arc::new(CollectedEvents::default());
        let sink: SharedEvents = Arc::<CollectedEvents>::clone(&events);
        let parts = IpamParts {
            nodes: Arc::clone(&cache),
            clouds: Vec::new(),
            writer: NodeWriter::new(api.client()),
            events: sink,
            clock: Arc::new(SystemClock),
            queue_observer: Arc::new(Unobserved),
            observer: Arc::new(Unobserved),
        };
        let controller = IpamController::new(settings, parts).unwrap();
        let listeners = vec![controller.listener()];
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { controller.run(stopped).await });
        Self {
            api,
            cache,
            listeners,
            events,
            _stop: stop.drop_guard(),
        }
    }

    /// The watch lists all Nodes.
    pub(super) async fn see_all(&self) {
        let nodes = self.api.all();
        let mut events = vec![watcher::Event::Init];
        let listed = nodes.into_iter().map(SlimNode::from);
        events.extend(listed.map(watcher::Event::InitApply));
        events.push(watcher::Event::InitDone);
        self.watch(events).await;
    }

    /// The watch shows this Node as it is.
    pub(super) async fn see(&self, name: &str) {
        self.watch(vec![watcher::Event::Apply(self.api.get(name).into())])
            .await;
    }

    pub(super) async fn create(&self, name: &str) {
        self.api.create(name, &[]);
        self.see(name).await;
    }

    pub(super) async fn delete(&self, name: &str) {
        let node = self.api.delete(name);
        self.watch(vec![watcher::Event::Delete(node.into())]).await;
    }

    /// Reasons and messages of all events since the last call.
    pub(super) fn events(&self) -> Vec<(String, String)> {
        let events = self.events.take().into_iter();
        events
            .map(|event| (event.reason.into_owned(), event.message))
            .collect()
    }

    /// The watch shows this.
    pub(super) async fn watch(&self, events: Vec<watcher::Event<SlimNode>>) {
        let events = stream::iter(events.into_iter().map(Ok));
        let never = CancellationToken::new();
        self.cache.follow(events, &self.listeners, &never).await;
        self.quiet().await;
    }

    /// Lets all tasks finish what can be finished now: the clock moves on only when all are idle.
    async fn quiet(&self) {
        self.pass(Duration::from_millis(1)).await;
    }

    /// Lets time pass.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

fn node(value: Value) -> Node {
    serde_json::from_value(value).unwrap()
}

fn path(name: &str) -> String {
    format!("{NODES}/{name}")
}

fn spec(cidrs: &[&str]) -> Value {
    if cidrs.is_empty() {
        return json!({});
    }
    json!({"podCIDR": cidrs[0], "podCIDRs": cidrs})
}
