//! Parts of snapshots for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Instance, InstanceState, LoadBalancerStatus, NodeAddress, Observation, Report, ServiceRef,
};
use cloudkeel_controllers::lifecycle::decide::Caution;
use cloudkeel_controllers::view::{NodeView, ServiceView, View as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Service};
use serde_json::{Value, json};

use crate::snapshot::{
    CloudState, InstanceMatch, InstancesState, LeaseState, NodeOwner, NodeState, ServiceState,
    Settings, Snapshot,
};

pub(crate) const TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The time of every snapshot.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:00:00Z".parse().unwrap()
}

/// So long before it.
pub(crate) fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

pub(crate) fn settings() -> Settings {
    Settings {
        version: "1".to_owned(),
        elects: true,
        lease: "ccm".to_owned(),
        lease_namespace: "kube-system".to_owned(),
        cluster_cidrs: vec!["10.0.0.0/8".parse().unwrap()],
        routes: true,
        allow_untagged_cloud: false,
        caution: Caution::default(),
        deletion_burst: 10,
        node_list_period: Duration::from_mins(5),
        service_list_period: Duration::from_mins(10),
        repairs_drift: true,
    }
}

/// A cluster that is led, with cloud `fsn`, which shows these Nodes' machines.
pub(crate) fn healthy(nodes: Vec<NodeState>) -> Snapshot {
    let mut snapshot = Snapshot::empty(now(), settings());
    snapshot.api_server = Ok("v1.35.1".to_owned());
    snapshot.leases = Ok(vec![LeaseState {
        name: "ccm".to_owned(),
        holder: Some("pod-a".to_owned()),
        renewed: Some(ago(2)),
        duration: Duration::from_secs(15),
    }]);
    let mut cloud = CloudState::unread("fsn", "hcloud");
    cloud.scope = Some(Ok("project p".to_owned()));
    cloud.instances = Some(Ok(InstancesState {
        count: nodes.len(),
        ..InstancesState::default()
    }));
    snapshot.clouds = vec![cloud];
    snapshot.nodes = Ok(nodes);
    snapshot
}

/// A machine of this name, which runs.
pub(crate) fn machine(name: &str) -> Instance {
    let mut instance = Instance::new(format!("hcloud://{name}").parse().unwrap(), name);
    instance.state = InstanceState::Running;
    instance.addresses = vec![NodeAddress::internal("10.1.0.1".parse().unwrap())];
    instance
}

/// The match of a machine.
pub(crate) fn one(instance: Instance) -> InstanceMatch {
    InstanceMatch::One {
        addresses: instance.addresses.clone(),
        instance: Box::new(instance),
    }
}

/// A Node of cloud `fsn` that is Ready, initialised and shown by its cloud.
pub(crate) fn node(name: &str) -> NodeState {
    node_with(name, json!({}))
}

/// The same with other fields.
pub(crate) fn node_with(name: &str, more: Value) -> NodeState {
    let mut node = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": ago(3600).to_string()},
        "spec": {"providerID": format!("hcloud://{name}"), "podCIDRs": []},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
        },
    });
    merge(&mut node, more);
    let node: Node = serde_json::from_value(node).unwrap();
    NodeState {
        view: Arc::new(NodeView::from(&node)),
        kubelet_version: "v1.35.0".to_owned(),
        ready_since: Some(ago(600)),
        ready_message: String::new(),
        owner: NodeOwner::Cloud("fsn".to_owned()),
        matches: [("fsn".to_owned(), one(machine(name)))].into(),
        heartbeat: Some(ago(5)),
        looked_up: Vec::new(),
    }
}

/// One that waits to be initialised, and whose machines are these.
pub(crate) fn tainted(name: &str, found: InstanceMatch) -> NodeState {
    let taints = json!([{"key": TAINT, "effect": "NoSchedule", "timeAdded": ago(180).to_string()}]);
    let mut node = node_with(name, json!({"spec": {"providerID": "", "taints": taints}}));
    node.matches = BTreeMap::from([("fsn".to_owned(), found)]);
    node
}

/// Not Ready, for ten minutes.
pub(crate) fn not_ready(name: &str, more: Value) -> NodeState {
    let mut fields = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    merge(&mut fields, more);
    node_with(name, fields)
}

/// A Service of cloud `fsn` in `default`, an hour old, with other fields.
pub(crate) fn service_with(name: &str, more: Value) -> ServiceState {
    let mut service = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    });
    merge(&mut service, more);
    let service: Service = serde_json::from_value(service).unwrap();
    ServiceState {
        view: Arc::new(ServiceView::of(&service)),
        created: Some(ago(3600)),
        deleting_since: None,
        owner: Some("fsn".to_owned()),
        draft: None,
        observed: None,
        removal: None,
        endpoints: None,
    }
}

/// An observation of a load balancer that is there, at `192.0.2.1`.
pub(crate) fn observed() -> Observation {
    let ingress = cloudkeel_api::Ingress::Ip {
        ip: "192.0.2.1".parse().unwrap(),
        mode: cloudkeel_api::IpMode::Vip,
    };
    Observation {
        report: Report {
            status: LoadBalancerStatus::of("lb-1", vec![ingress]),
            ..Report::default()
        },
        ..Observation::default()
    }
}

pub(crate) fn service_ref(name: &str) -> ServiceRef {
    ServiceRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
    }
}

/// Objects are merged, everything else is replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
