//! What all clients but the controllers do in a cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cloudkeel_embedded::DirectClient;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::Duration;

use super::clock::ServerClock;

const NODES: &str = "/api/v1/nodes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Nodes, their leases, and the Services of namespace `default`. Clones are the same.
#[derive(Clone)]
pub(crate) struct World {
    pub(super) direct: DirectClient,
    pub(super) clock: Arc<ServerClock>,
    /// By how many minutes the clocks of kubelets are wrong.
    pub(super) skew: Arc<AtomicI64>,
}

impl World {
    /// A Node that appears.
    pub(crate) fn create(&self, name: &str, object: &Value) {
        let mut node = json!({"metadata": {"name": name}});
        json_patch::merge(&mut node, object);
        self.direct.create(NODES, &node).unwrap();
    }

    /// A Node that appeared so long ago.
    pub(crate) fn create_aged(&self, name: &str, age: Duration, object: &Value) {
        self.clock.ago(age, || self.create(name, object));
    }

    /// Changes a Node as another client would.
    pub(crate) fn change(&self, name: &str, patch: &Value) {
        self.patch(&format!("{NODES}/{name}"), patch);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.direct.delete(&format!("{NODES}/{name}")).unwrap();
    }

    /// The Node as it is, if it is there.
    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        self.find(&format!("{NODES}/{name}"))
    }

    /// The names of all Nodes.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.names(NODES)
    }

    /// The clocks of kubelets are wrong by so many minutes.
    pub(crate) fn shift_leases(&self, minutes: i64) {
        self.skew.store(minutes, Ordering::SeqCst);
    }

    /// The kubelet of a Node renews its lease.
    pub(crate) fn renew_lease(&self, name: &str, at: &jiff::Timestamp) {
        let skew = SignedDuration::from_mins(self.skew.load(Ordering::SeqCst));
        let at = *at + skew;
        let spec = json!({
            "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{at:.6}"),
        });
        let lease = format!("{LEASES}/{name}");
        if self.find(&lease).is_some() {
            self.patch(&lease, &json!({"spec": spec}));
        } else {
            let new = json!({"metadata": {"name": name}, "spec": spec});
            self.direct.create(LEASES, &new).unwrap();
        }
    }

    /// A Service of type LoadBalancer with TCP port 80, changed by `more`.
    pub(crate) fn create_service(&self, name: &str, more: &Value) {
        let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
        let spec = json!({"type": "LoadBalancer", "ports": ports});
        let mut service = json!({"metadata": {"name": name}, "spec": spec});
        json_patch::merge(&mut service, more);
        self.direct.create(SERVICES, &service).unwrap();
    }

    /// Changes a Service as another client would.
    pub(crate) fn change_service(&self, name: &str, patch: &Value) {
        self.patch(&format!("{SERVICES}/{name}"), patch);
    }

    /// Asks for a deletion, which waits for finalizers.
    pub(crate) fn delete_service(&self, name: &str) {
        self.direct.delete(&format!("{SERVICES}/{name}")).unwrap();
    }

    pub(crate) fn service(&self, name: &str) -> Option<Value> {
        self.find(&format!("{SERVICES}/{name}"))
    }

    /// The names of all Services but that of the API itself.
    pub(crate) fn services(&self) -> Vec<String> {
        let mut names = self.names(SERVICES);
        names.retain(|name| name != "kubernetes");
        names
    }

    /// Forgets recorded Events.
    pub(super) fn forget_events(&self) {
        self.direct.delete(EVENTS).unwrap();
    }

    /// The status has a path of its own.
    fn patch(&self, path: &str, patch: &Value) {
        let mut rest = patch.clone();
        if let Some(status) = rest.as_object_mut().unwrap().remove("status") {
            let status = json!({"status": status});
            self.direct
                .merge(&format!("{path}/status"), &status)
                .unwrap();
        }
        if rest != json!({}) {
            self.direct.merge(path, &rest).unwrap();
        }
    }

    fn find(&self, path: &str) -> Option<Value> {
        match self.direct.get(path) {
            Ok(object) => Some(object),
            Err(refusal) => {
                assert_eq!(refusal.code, 404, "{path}: {refusal}");
                None
            }
        }
    }

    fn names(&self, path: &str) -> Vec<String> {
        let list = self.direct.get(path).unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.map(name).collect()
    }
}
