//! Services of an API server in memory: created, patched through their status, watched, and gone only
//! when their last finalizer is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::api::core::v1::Service;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::strategic::apply;
use crate::support::objects::merge;

/// A patch that arrived at the status of a Service.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Patched {
    /// Since the server was made.
    pub(crate) at: Duration,
    pub(crate) service: String,
    pub(crate) patch: Value,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
}

type Events = UnboundedSender<watcher::Result<watcher::Event<Service>>>;

struct State {
    started: Instant,
    objects: BTreeMap<String, Value>,
    patches: Vec<Patched>,
    watches: Vec<Events>,
    refusals: VecDeque<u16>,
    version: u64,
}

/// The Services of namespace `default`. Clones are the same.
#[derive(Clone)]
pub(crate) struct Services(Arc<Mutex<State>>);

impl Services {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            started: Instant::now(),
            objects: BTreeMap::new(),
            patches: Vec::new(),
            watches: Vec::new(),
            refusals: VecDeque::new(),
            version: 1_000_000,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Lists all Services and goes on with every change.
    pub(crate) fn watch(&self) -> UnboundedReceiver<watcher::Result<watcher::Event<Service>>> {
        let (sender, receiver) = unbounded();
        let mut state = self.state();
        let send = |event| sender.unbounded_send(Ok(event)).unwrap();
        send(watcher::Event::Init);
        for object in state.objects.values() {
            send(watcher::Event::InitApply(service_of(object)));
        }
        send(watcher::Event::InitDone);
        state.watches.push(sender);
        receiver
    }

    /// Makes a Service of type LoadBalancer with TCP port 80, changed by `more`.
    pub(crate) fn create(&self, name: &str, more: &Value) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let mut object = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "namespace": "default", "name": name,
                "uid": format!("{version:08}-0000-4000-8000-000000000000"),
                "resourceVersion": version.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "type": "LoadBalancer", "ipFamilies": ["IPv4"], "sessionAffinity": "None",
                "externalTrafficPolicy": "Cluster",
                "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}],
            },
            "status": {"loadBalancer": {}},
        });
        merge(&mut object, more);
        state.show(&watcher::Event::Apply(service_of(&object)));
        assert!(state.objects.insert(name.to_owned(), object).is_none());
    }

    /// Changes a Service as somebody else would.
    pub(crate) fn change(&self, name: &str, patch: &Value) {
        self.state().change(name, |object| merge(object, patch));
    }

    /// Asks for a deletion, which waits for finalizers.
    pub(crate) fn delete(&self, name: &str) {
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"}});
        self.change(name, &deleted);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.state().objects.get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// Refuses the next patch with this HTTP status.
    pub(crate) fn refuse(&self, status: u16) {
        self.state().refusals.push_back(status);
    }

    /// Every patch so far, also those that were refused.
    pub(crate) fn patches(&self) -> Vec<Patched> {
        self.state().patches.clone()
    }

    pub(crate) fn forget_patches(&self) {
        self.state().patches.clear();
    }

    /// `PATCH …/services/{name}/status`
    pub(crate) fn patch_status(&self, name: &str, patch: &Value) -> (u16, Value) {
        let mut state = self.state();
        let (status, answer) = match state.refusals.pop_front() {
            Some(status) => (status, Value::Null),
            None => state.carry_out(name, patch),
        };
        let at = state.started.elapsed();
        state.patches.push(Patched {
            at,
            service: name.to_owned(),
            patch: patch.clone(),
            status,
        });
        (status, answer)
    }

    /// `GET …/services?fieldSelector=metadata.name=…`
    pub(crate) fn list(&self, name: &str) -> (u16, Value) {
        let items: Vec<_> = self.get(name).into_iter().collect();
        let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": {}, "items": items});
        (200, list)
    }
}

impl State {
    fn carry_out(&mut self, name: &str, patch: &Value) -> (u16, Value) {
        let Some(object) = self.objects.get(name) else {
            return (404, Value::Null);
        };
        let uid = &patch["metadata"]["uid"];
        if !uid.is_null() && *uid != object["metadata"]["uid"] {
            return (422, json!({"causes": [{"field": "metadata.uid"}]}));
        }
        assert!(patch.get("spec").is_none(), "a status has no spec: {patch}");
        let mut answer = object.clone();
        self.change(name, |object| {
            apply(object, patch);
            answer = object.clone();
        });
        (200, self.objects.get(name).cloned().unwrap_or(answer))
    }

    /// A change that changes nothing makes no new version and is not shown.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let object = self.objects.get_mut(name).unwrap();
        let before = object.clone();
        change(object);
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"].as_array();
        let is_held = finalizers.is_some_and(|finalizers| !finalizers.is_empty());
        if !metadata["deletionTimestamp"].is_null() && !is_held {
            let gone = self.objects.remove(name).unwrap();
            self.show(&watcher::Event::Delete(service_of(&gone)));
            return;
        }
        if *object == before {
            return;
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let shown = service_of(object);
        self.show(&watcher::Event::Apply(shown));
    }

    fn show(&mut self, event: &watcher::Event<Service>) {
        self.watches
            .retain(|watch| watch.unbounded_send(Ok(event.clone())).is_ok());
    }
}

fn service_of(value: &Value) -> Service {
    serde_json::from_value(value.clone()).unwrap()
}
