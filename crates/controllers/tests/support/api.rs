//! An API server in memory: Nodes, the leases of their kubelets, and events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::objects::{merge, merge_by_type, node_of};

/// A write that arrived at a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    /// Since the server was made.
    pub(crate) at: Duration,
    pub(crate) what: What,
    pub(crate) node: String,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
}

/// What is asked of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Read,
    WriteStatus,
    /// A strategic merge of the status, as conditions are written.
    WriteConditions,
    Write,
    Delete,
}

/// An event in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) source: String,
    pub(crate) reason: String,
    pub(crate) node: String,
    pub(crate) message: String,
    /// How often.
    pub(crate) count: u64,
    name: String,
}

type Deed = Box<dyn FnOnce(&mut World) + Send>;

pub(crate) struct World {
    started: Instant,
    nodes: BTreeMap<String, Value>,
    leases: BTreeMap<String, Value>,
    events: Vec<Told>,
    writes: Vec<Write>,
    watches: Vec<UnboundedSender<watcher::Result<watcher::Event<Node>>>>,
    deeds: Vec<(What, Deed)>,
    refusals: Vec<(What, u16)>,
    version: u64,
}

/// The server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct FakeApi(Arc<Mutex<World>>);

impl FakeApi {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(World {
            started: Instant::now(),
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            events: Vec::new(),
            writes: Vec::new(),
            watches: Vec::new(),
            deeds: Vec::new(),
            refusals: Vec::new(),
            version: 0,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Lists all Nodes and goes on with every change.
    pub(crate) fn watch(&self) -> UnboundedReceiver<watcher::Result<watcher::Event<Node>>> {
        let (sender, receiver) = unbounded();
        let mut world = self.world();
        let send = |event| sender.unbounded_send(Ok(event)).unwrap();
        send(watcher::Event::Init);
        for node in world.nodes.values() {
            send(watcher::Event::InitApply(node_of(node)));
        }
        send(watcher::Event::InitDone);
        world.watches.push(sender);
        receiver
    }

    /// The Node as it is, if it is there.
    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        self.world().nodes.get(name).cloned()
    }

    /// How many Nodes there are.
    pub(crate) fn count(&self) -> usize {
        self.world().nodes.len()
    }

    /// Changes a Node as somebody else would.
    pub(crate) fn change(&self, name: &str, patch: &Value) {
        self.world().change(name, patch);
    }

    /// Does something right before the next such request is carried out.
    pub(crate) fn before(&self, what: What, deed: impl FnOnce(&mut World) + Send + 'static) {
        self.world().deeds.push((what, Box::new(deed)));
    }

    /// Refuses the next such request with this HTTP status.
    pub(crate) fn refuse(&self, what: What, status: u16) {
        self.world().refusals.push((what, status));
    }

    /// The kubelet of a Node renews its lease.
    pub(crate) fn renew_lease(&self, name: &str, at: &jiff::Timestamp) {
        let spec = json!({"renewTime": format!("{at:.6}"), "leaseDurationSeconds": 40});
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec,
        });
        self.world().leases.insert(name.to_owned(), lease);
    }

    /// Every write to a Node so far, also those that were refused.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.world().writes.clone()
    }

    /// When which Node was deleted by request.
    pub(crate) fn deletions(&self) -> Vec<(String, Duration)> {
        let writes = self.writes().into_iter();
        writes
            .filter(|write| write.what == What::Delete && write.status == 200)
            .map(|write| (write.node, write.at))
            .collect()
    }

    /// The events with this reason.
    pub(crate) fn told(&self, reason: &str) -> Vec<Told> {
        let world = self.world();
        let told = world.events.iter().filter(|told| told.reason == reason);
        told.cloned().collect()
    }

    /// Forgets what was written and told.
    pub(crate) fn forget(&self) {
        let mut world = self.world();
        world.writes.clear();
        world.events.clear();
    }
}

impl World {
    /// A Node that appears, with what every object has.
    pub(crate) fn create(&mut self, name: &str, object: &Value) {
        self.version += 1;
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "uid": format!("uid-{}", self.version),
                "resourceVersion": self.version.to_string(),
            },
        });
        merge(&mut node, object);
        self.show(&watcher::Event::Apply(node_of(&node)));
        self.nodes.insert(name.to_owned(), node);
    }

    /// Changes a Node; a patch that changes nothing makes no new version and is not shown.
    pub(crate) fn change(&mut self, name: &str, patch: &Value) {
        let node = self.nodes.get_mut(name).unwrap();
        let before = node.clone();
        merge(node, patch);
        if *node == before {
            return;
        }
        self.version += 1;
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let shown = node_of(node);
        self.show(&watcher::Event::Apply(shown));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let node = self.nodes.remove(name).unwrap();
        self.show(&watcher::Event::Delete(node_of(&node)));
    }

    fn show(&mut self, event: &watcher::Event<Node>) {
        self.watches
            .retain(|watch| watch.unbounded_send(Ok(event.clone())).is_ok());
    }

    /// Carries out a request about a Node.
    pub(crate) fn ask_node(&mut self, what: What, name: &str, body: &Value) -> (u16, Value) {
        if let Some(due) = self.deeds.iter().position(|(when, _)| *when == what) {
            let (_, deed) = self.deeds.remove(due);
            deed(self);
        }
        let refusal = self.refusals.iter().position(|(when, _)| *when == what);
        let (status, answer) = match refusal {
            Some(due) => (self.refusals.remove(due).1, Value::Null),
            None => self.carry_out(what, name, body),
        };
        if what != What::Read {
            self.writes.push(Write {
                at: self.started.elapsed(),
                what,
                node: name.to_owned(),
                status,
            });
        }
        (status, answer)
    }

    fn carry_out(&mut self, what: What, name: &str, body: &Value) -> (u16, Value) {
        let Some(node) = self.nodes.get(name) else {
            return (404, Value::Null);
        };
        let metadata = &node["metadata"];
        let differs = |wanted: &Value, key| !wanted[key].is_null() && wanted[key] != metadata[key];
        match what {
            What::Read => return (200, node.clone()),
            What::Delete => {
                let wanted = &body["preconditions"];
                if differs(wanted, "uid") || differs(wanted, "resourceVersion") {
                    return (409, Value::Null);
                }
                self.remove(name);
                return (200, json!({"kind": "Status", "status": "Success"}));
            }
            What::Write | What::WriteStatus | What::WriteConditions => {}
        }
        let wanted = &body["metadata"];
        if differs(wanted, "uid") {
            return (422, json!({"causes": [{"field": "metadata.uid"}]}));
        }
        if differs(wanted, "resourceVersion") {
            return (409, Value::Null);
        }
        let mut patch = body.clone();
        if what == What::WriteConditions {
            let (known, new) = (&node["status"]["conditions"], &body["status"]["conditions"]);
            patch["status"]["conditions"] = merge_by_type(known, new);
        }
        let untouched: &[&str] = match what {
            What::WriteStatus | What::WriteConditions => &["metadata", "spec"],
            _ => &["status"],
        };
        for part in untouched {
            patch.as_object_mut().unwrap().remove(*part);
        }
        self.change(name, &patch);
        (200, self.nodes[name].clone())
    }

    pub(crate) fn lease(&self, name: &str) -> (u16, Value) {
        match self.leases.get(name) {
            Some(lease) => (200, lease.clone()),
            None => (404, Value::Null),
        }
    }

    /// Takes an event, or one more of the same.
    pub(crate) fn tell(
        &mut self,
        method: &Method,
        name: Option<&str>,
        body: &Value,
    ) -> (u16, Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if *method == Method::POST {
            self.events.push(Told {
                source: text(&body["source"]["component"]),
                reason: text(&body["reason"]),
                node: text(&body["involvedObject"]["name"]),
                message: text(&body["message"]),
                count: 1,
                name: text(&body["metadata"]["name"]),
            });
            return (201, body.clone());
        }
        let known = self
            .events
            .iter_mut()
            .find(|told| Some(&*told.name) == name);
        let Some(told) = known else {
            return (404, Value::Null);
        };
        told.count = body["count"].as_u64().unwrap();
        let object = json!({"name": told.node});
        (
            200,
            json!({"metadata": {"name": name}, "involvedObject": object}),
        )
    }
}
