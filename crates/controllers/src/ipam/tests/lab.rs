//! A controller with an API server in memory that knows Nodes, and fails as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use cloudkeel_api::CollectedEvents;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;
use tower_service::Service;

use super::super::*;
use crate::runtime::Unobserved;

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

#[derive(Default)]
struct World {
    nodes: BTreeMap<String, Value>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
    uids: u32,
}

/// An API server that knows Nodes.
#[derive(Clone, Default)]
pub(super) struct FakeApi(Arc<Mutex<World>>);

impl FakeApi {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// A new Node, as it is then.
    pub(super) fn create(&self, name: &str, cidrs: &[&str]) {
        let mut world = self.world();
        world.uids += 1;
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": format!("uid-{}", world.uids)},
            "spec": spec(cidrs),
        });
        world.nodes.insert(name.to_owned(), node);
    }

    pub(super) fn delete(&self, name: &str) -> Node {
        node(self.world().nodes.remove(name).unwrap())
    }

    /// Changes a Node as somebody else would.
    pub(super) fn change(&self, name: &str, change: &Value) {
        merge(self.world().nodes.get_mut(name).unwrap(), change);
    }

    pub(super) fn set_cidrs(&self, name: &str, cidrs: &[&str]) {
        self.change(name, &json!({"spec": spec(cidrs)}));
    }

    /// What happens to the next requests, in their order.
    pub(super) fn fail(&self, faults: &[Fault]) {
        self.world().faults.extend(faults);
    }

    pub(super) fn get(&self, name: &str) -> Node {
        node(self.world().nodes[name].clone())
    }

    /// The networks of a Node, in one line.
    pub(super) fn cidrs(&self, name: &str) -> String {
        let spec = self.get(name).spec.unwrap_or_default();
        let cidrs = spec.pod_cidrs.unwrap_or_default();
        assert_eq!(spec.pod_cidr.as_ref(), cidrs.first(), "both are written");
        cidrs.join(" ")
    }

    /// All requests since the last call.
    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.world().requests)
    }

    fn answer(&self, method: &Method, name: &str, body: &[u8]) -> io::Result<(u16, Value)> {
        let mut world = self.world();
        world.requests.push(format!("{method} {name}"));
        match world.faults.pop_front().unwrap_or(Fault::None) {
            Fault::None => Ok(world.carry_out(method, name, body)),
            Fault::Lost => Err(io::ErrorKind::ConnectionRefused.into()),
            Fault::Refused(code) => Ok((code, Value::Null)),
            Fault::AnswerLost => {
                world.carry_out(method, name, body);
                Err(io::ErrorKind::TimedOut.into())
            }
            Fault::AnswerReplaced(code) => {
                world.carry_out(method, name, body);
                Ok((code, Value::Null))
            }
        }
    }
}

impl World {
    fn carry_out(&mut self, method: &Method, name: &str, body: &[u8]) -> (u16, Value) {
        let Some(node) = self.nodes.get_mut(name) else {
            return (404, Value::Null);
        };
        if *method == Method::PATCH {
            let patch: Value = serde_json::from_slice(body).unwrap();
            let has = &node["spec"]["podCIDRs"];
            let is_set_to_other = !has.is_null() && *has != patch["spec"]["podCIDRs"];
            if is_set_to_other || patch["metadata"]["uid"] != node["metadata"]["uid"] {
                return (422, Value::Null);
            }
            merge(node, &patch);
        }
        (200, node.clone())
    }
}

impl Service<Request<Body>> for FakeApi {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let name = parts.uri.path().strip_prefix("/api/v1/nodes/").unwrap();
            let (code, answer) = api.answer(&parts.method, name, &body)?;
            let answer = if answer.is_null() {
                json!({"kind": "Status", "status": "Failure", "code": code})
            } else {
                answer
            };
            let mut response = Response::new(Body::from(serde_json::to_vec(&answer)?));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            Ok(response)
        })
    }
}

/// A controller at work on a [`FakeApi`]. Time is paused and passes only where a test lets it.
pub(super) struct Lab {
    pub(super) api: FakeApi,
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
        let (api, cache) = (FakeApi::default(), Cache::new());
        let events = Arc::new(CollectedEvents::default());
        let sink: SharedEvents = Arc::<CollectedEvents>::clone(&events);
        let context = IpamContext {
            nodes: Arc::clone(&cache),
            writer: NodeWriter::new(Client::new(api.clone(), "default")),
            events: sink,
            queue_observer: Arc::new(Unobserved),
            observer: Arc::new(Unobserved),
        };
        let controller = IpamController::new(settings, context).unwrap();
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
        let nodes: Vec<_> = self.api.world().nodes.values().cloned().map(node).collect();
        let mut events = vec![watcher::Event::Init];
        events.extend(nodes.into_iter().map(watcher::Event::InitApply));
        events.push(watcher::Event::InitDone);
        self.watch(events).await;
    }

    /// The watch shows this Node as it is.
    pub(super) async fn see(&self, name: &str) {
        self.watch(vec![watcher::Event::Apply(self.api.get(name))])
            .await;
    }

    pub(super) async fn create(&self, name: &str) {
        self.api.create(name, &[]);
        self.see(name).await;
    }

    pub(super) async fn delete(&self, name: &str) {
        let node = self.api.delete(name);
        self.watch(vec![watcher::Event::Delete(node)]).await;
    }

    /// Reasons and messages of all events since the last call.
    pub(super) fn events(&self) -> Vec<(String, String)> {
        let events = self.events.take().into_iter();
        events
            .map(|event| (event.reason.into_owned(), event.message))
            .collect()
    }

    /// The watch shows this.
    pub(super) async fn watch(&self, events: Vec<watcher::Event<Node>>) {
        let events = stream::iter(events.into_iter().map(Ok));
        let never = CancellationToken::new();
        self.cache.follow(events, &self.listeners, &never).await;
        self.quiet().await;
    }

    /// Lets everybody finish what can be finished now: the clock moves on only when all are idle.
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

fn spec(cidrs: &[&str]) -> Value {
    if cidrs.is_empty() {
        return json!({});
    }
    json!({"podCIDR": cidrs[0], "podCIDRs": cidrs})
}

/// A JSON merge patch, as far as it is needed here.
fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}
