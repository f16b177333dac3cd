//! Services, Nodes and clouds for the tests of this folder.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudProvider, ClusterIdentity, CollectedEvents, Features, HealthCheckPolicy, ProxyProtocols,
    SystemClock, TargetBy,
};
use cloudkeel_embedded::EmbeddedApi;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::controller::{ServiceController, ServiceObserver, ServiceParts, ServiceSettings};
use super::owner::{Classes, ServiceOwner};
use super::spec::Setting;
use crate::clouds::Cloud;
use crate::runtime::{Cache, ServiceWriter, Unobserved};
use crate::view::{NodeView, ServiceView, View as _};

/// Some moment.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A Service of type `LoadBalancer` with one TCP port, and these fields on top.
pub(super) fn service(over: Value) -> ServiceView {
    let mut object = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u-1", "resourceVersion": "1"},
        "spec": {
            "type": "LoadBalancer",
            "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080}],
        },
    });
    merge(&mut object, over);
    ServiceView::of(&serde_json::from_value(object).unwrap())
}

/// As [`service`], with these annotations.
pub(super) fn annotated(pairs: &[(&str, &str)]) -> ServiceView {
    let mut view = service(json!({}));
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    view.annotations = pairs.iter().map(owned).collect();
    view
}

fn merge(into: &mut Value, over: Value) {
    match (into, over) {
        (Value::Object(into), Value::Object(over)) => {
            for (key, value) in over {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, over) => *into = over,
    }
}

/// A Node of this name with an ID and an address.
pub(super) fn node(name: &str) -> NodeView {
    NodeView::of(
        &serde_json::from_value(json!({
            "metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"providerID": format!("hcloud://p1/{name}")},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }))
        .unwrap(),
    )
}

/// A cloud that serves Services of this class, or those without one.
pub(super) fn owner(cloud: &str, default: bool, class: Option<&str>) -> ServiceOwner {
    ServiceOwner {
        is_own_config: false,
        cloud: cloud.to_owned(),
        default,
        classes: class.map(str::to_owned).into_iter().collect(),
        target_clouds: Vec::new(),
        by: TargetBy::Machine,
    }
}

/// One cloud that serves what has no class: what every Go CCM does.
pub(super) fn lone() -> Classes {
    Classes::new(vec![owner("fsn", true, None)])
}

/// A cluster without a name of its own.
pub(super) fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: Some("c-1".to_owned()),
        pod_cidrs: Vec::new(),
    }
}

/// Ignores everything.
struct Ignored;

impl ServiceObserver for Ignored {
    fn hosts_updated(&self, _took: Duration, _failed: bool) {}
    fn nodes_followed(&self, _took: Duration) {}
    fn published(&self, _cloud: &str, _took: Duration) {}
    fn drifted(&self, _cloud: &str) {}
    fn left_over(&self, _cloud: &str, _balancers: usize) {}
}

/// A controller of this cloud, which serves what has no class, that has seen nothing yet.
pub(super) fn controller_of(
    provider: Arc<dyn CloudProvider>,
    api: &EmbeddedApi,
) -> Arc<ServiceController> {
    let parts = ServiceParts {
        services: Cache::new(),
        nodes: Cache::new(),
        clouds: vec![Cloud::new("fsn", provider, None, Arc::new(SystemClock))],
        classes: lone(),
        cluster: cluster(),
        writer: ServiceWriter::new(api.client("cloudkeel")),
        events: Arc::new(CollectedEvents::default()),
        clock: Arc::new(SystemClock),
        observer: Arc::new(Ignored),
        queue_observer: Arc::new(Unobserved),
    };
    ServiceController::new(parts, ServiceSettings::default())
}

/// Balancers that can do everything.
pub(super) const ABLE: Features = Features {
    drain: true,
    targets_by_address: true,
    every_node: false,
    udp: true,
    sctp: true,
    mixed_protocols: true,
    source_ranges: true,
    client_affinity: true,
    proxy_protocol: ProxyProtocols::Both,
    internal: true,
    chosen_address: true,
    dual_stack: true,
    healthy_threshold: true,
    shared: true,
};

/// A cloud that can do this, and checks node ports.
pub(super) fn setting(cluster: &ClusterIdentity, features: Features) -> Setting<'_> {
    Setting {
        cluster,
        features,
        health_checks: HealthCheckPolicy::NodePort,
    }
}
