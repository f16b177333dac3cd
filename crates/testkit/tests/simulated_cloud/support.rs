//! What the tests of this folder share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{Affinity, CloudProvider as _};
use cloudkeel_api::{
    BalancerRef, ClusterIdentity, CollectedEvents, HealthCheck, Instances, IpFamily, KnownInstance,
    Listener, LoadBalancerSpec, LoadBalancers, NodeAddress, NodeFacts, Options, Protocol,
    ProviderContext, Routes, ServiceRef, Target, TargetBy, TargetState, TokioClock, TrafficPolicy,
};
use cloudkeel_http::Transport as _;
use cloudkeel_provider_local::wire::Machine;
use cloudkeel_provider_local::{LocalId, LocalProvider};
use cloudkeel_testkit::simulated_cloud::{InProcess, MachineSpec, Settings, SimulatedCloud};
use http::{HeaderMap, Method};
use serde_json::Value;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The REST API, spoken by hand.
pub(crate) struct Rest {
    transport: InProcess,
    token: String,
}

/// What the REST API said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// The IDs of a list.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let items = self.body["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["id"].as_u64().unwrap())
            .collect()
    }
}

impl Rest {
    pub(crate) fn of(cloud: &SimulatedCloud) -> Self {
        Self::with_token(cloud, SimulatedCloud::TOKEN)
    }

    pub(crate) fn with_token(cloud: &SimulatedCloud, token: &str) -> Self {
        Self {
            transport: cloud.transport(),
            token: token.to_owned(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, Value::Null, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, body, None).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Value,
        if_match: Option<&str>,
    ) -> Answer {
        self.try_call(method, path, body, if_match).await.unwrap()
    }

    /// `None` if the connection broke.
    pub(crate) async fn try_call(
        &self,
        method: Method,
        path: &str,
        body: Value,
        if_match: Option<&str>,
    ) -> Option<Answer> {
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", InProcess::URL).parse().unwrap();
        let bearer = format!("Bearer {}", self.token);
        let headers = request.headers_mut();
        headers.insert("authorization", bearer.parse().unwrap());
        if let Some(etag) = if_match {
            headers.insert("if-match", etag.parse().unwrap());
        }
        let (head, body) = self.transport.send(request).await.ok()?.into_parts();
        Some(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }
}

/// A cloud with machines `node-0`, `node-1` and so on.
pub(crate) fn cloud_with(machines: usize) -> SimulatedCloud {
    let cloud = SimulatedCloud::new(Settings::default());
    cloud
        .add_machines(machines, |i| MachineSpec::named(format!("node-{i}")))
        .unwrap();
    cloud
}

/// A cloud with machines `node-0`, `node-1` and so on, and the provider for it.
pub(crate) struct Lab {
    pub(crate) cloud: SimulatedCloud,
    pub(crate) provider: LocalProvider,
    pub(crate) events: Arc<CollectedEvents>,
    pub(crate) machines: Vec<Machine>,
}

impl Lab {
    pub(crate) async fn with(machines: usize) -> Self {
        Self::set_up(machines, Settings::default()).await
    }

    pub(crate) async fn set_up(machines: usize, settings: Settings) -> Self {
        let cloud = SimulatedCloud::new(settings);
        let machines = cloud
            .add_machines(machines, |i| MachineSpec::named(format!("node-{i}")))
            .unwrap();
        let events = Arc::new(CollectedEvents::default());
        let provider = cloud.provider(&context(&events)).await.unwrap();
        cloud.reset_calls();
        Self {
            cloud,
            provider,
            events,
            machines,
        }
    }

    pub(crate) fn instances(&self) -> &dyn Instances {
        self.provider.instances().unwrap()
    }

    pub(crate) fn balancers(&self) -> &dyn LoadBalancers {
        self.provider.load_balancers().unwrap()
    }

    pub(crate) fn routes(&self) -> &dyn Routes {
        self.provider.routes().unwrap()
    }

    /// The Node of the machine at this index.
    pub(crate) fn node(&self, index: usize) -> NodeFacts {
        node_of(&self.machines[index])
    }

    /// A fresh known instance of the machine at this index.
    pub(crate) async fn known_instance_besides(&self, index: usize) -> Option<KnownInstance> {
        let list = self.instances().list().await.unwrap();
        let id = self.node(index).provider_id.unwrap();
        list.known_instance_besides(&id, |_| true)
    }

    /// A Service with these ports and all machines as targets.
    pub(crate) fn spec(&self, ports: &[u16]) -> LoadBalancerSpec {
        spec("u-1", ports, self.machines.iter().map(node_of))
    }
}

pub(crate) fn context(events: &Arc<CollectedEvents>) -> ProviderContext {
    let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
    ProviderContext {
        cluster: cluster(),
        events: Arc::<CollectedEvents>::clone(events),
        clock: Arc::new(TokioClock::starting_at(epoch)),
        ..ProviderContext::detached("local")
    }
}

pub(crate) fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        name: "kubernetes".into(),
        uid: Some("cluster-1".into()),
        pod_cidrs: vec![],
    }
}

/// A registered Node of a machine of the first project.
pub(crate) fn node_of(machine: &Machine) -> NodeFacts {
    let id = LocalId::new(SimulatedCloud::PROJECT, machine.id);
    NodeFacts {
        name: machine.name.clone(),
        uid: format!("uid-{}", machine.id),
        provider_id: Some(id.provider_id()),
        system_uuid: Some(machine.uuid.to_uppercase()),
        addresses: machine
            .addresses
            .iter()
            .map(|address| NodeAddress::internal(address.ip))
            .collect(),
        ..NodeFacts::default()
    }
}

pub(crate) fn balancer_ref(uid: &str) -> BalancerRef {
    let service = ServiceRef {
        namespace: "ns".into(),
        name: format!("svc-{uid}"),
        uid: uid.into(),
    };
    BalancerRef::of(cluster(), service)
}

pub(crate) fn spec(
    uid: &str,
    ports: &[u16],
    nodes: impl IntoIterator<Item = NodeFacts>,
) -> LoadBalancerSpec {
    let target = |node: NodeFacts| Target {
        node: node.into(),
        by: TargetBy::Machine,
        state: TargetState::Serving,
    };
    LoadBalancerSpec {
        balancer_ref: balancer_ref(uid),
        listeners: ports.iter().copied().map(listener).collect(),
        targets: nodes
            .into_iter()
            .map(|node| (node.name.clone(), target(node)))
            .collect(),
        families: vec![IpFamily::V4],
        address: None,
        source_ranges: vec![],
        traffic_policy: TrafficPolicy::Cluster,
        health_check_node_port: None,
        affinity: Affinity::None,
        options: Options::default(),
    }
}

fn listener(port: u16) -> Listener {
    Listener {
        name: None,
        protocol: Protocol::Tcp,
        port,
        node_port: Some(30_000 + port % 1_000),
        app_protocol: None,
        health_check: HealthCheck::tcp(),
    }
}
