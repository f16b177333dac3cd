//! What is read of the API server.

use std::sync::Arc;

use cloudkeel_controllers::view::{NodeView, ServiceView, View as _};
use cloudkeel_diagnose::{
    EventState, LeaseState, ManagerPod, NodeOwner, NodeState, Read, ServiceState, Snapshot, Unread,
};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, Client};
use std::time::Duration;

use super::slim_pod::SlimPod;
use super::{Request, Scope, pods, read};
use crate::run::Configuration;

/// Of a cluster full of warnings, the latest are enough.
const MOST_EVENTS: u32 = 2000;

/// The cluster, as far as it could be read.
pub(super) struct Cluster {
    /// The UID of `kube-system`.
    pub(super) uid: Option<String>,
    version: Read<String>,
    nodes: Read<Vec<NodeState>>,
    services: Read<Vec<ServiceState>>,
    pods: Read<Vec<ManagerPod>>,
    leases: Read<Vec<LeaseState>>,
    events: Read<Vec<EventState>>,
}

impl Cluster {
    pub(super) async fn read(
        client: &Client,
        configuration: &Configuration,
        request: &Request<'_>,
    ) -> Self {
        let version = read("API server", async {
            let info = client.apiserver_version().await?;
            Ok(info.git_version)
        })
        .await;
        if let Err(unread) = &version
            && !unread.is_denied
        {
            return Self::unreachable(unread);
        }
        let system: Api<Namespace> = Api::all(client.clone());
        let namespace = configuration.options.election.namespace.as_str();
        let (uid, nodes, services, pods, leases, events) = futures::join!(
            read("namespace kube-system", system.get("kube-system")),
            nodes(client, request),
            services(client, &request.scope),
            manager_pods(client, request, namespace),
            leases(client, namespace),
            events(client, &request.scope),
        );
        Self {
            uid: uid.ok().and_then(|it| it.metadata.uid),
            version,
            nodes,
            services,
            pods,
            leases,
            events,
        }
    }

    fn unreachable(unread: &Unread) -> Self {
        Self {
            uid: None,
            version: Err(unread.clone()),
            nodes: Err(unread.clone()),
            services: Err(unread.clone()),
            pods: Err(unread.clone()),
            leases: Err(unread.clone()),
            events: Err(unread.clone()),
        }
    }

    /// Enters what was read.
    pub(super) fn enter(&self, snapshot: &mut Snapshot) {
        snapshot.api_server.clone_from(&self.version);
        snapshot.nodes.clone_from(&self.nodes);
        snapshot.services.clone_from(&self.services);
        snapshot.pods.clone_from(&self.pods);
        snapshot.leases.clone_from(&self.leases);
        snapshot.events.clone_from(&self.events);
    }

    /// The Nodes.
    pub(super) fn views(&self) -> Vec<Arc<NodeView>> {
        let nodes = self.nodes.iter().flatten();
        nodes.map(|node| Arc::clone(&node.view)).collect()
    }
}

async fn nodes(client: &Client, request: &Request<'_>) -> Read<Vec<NodeState>> {
    let api: Api<Node> = Api::all(client.clone());
    // What the API server has in memory is fresh enough, and spares etcd.
    let list = read("Nodes", api.list(&ListParams::default().match_any())).await?;
    let mut nodes: Vec<_> = list.items.iter().map(node).collect();
    if let Scope::Node(name) = &request.scope
        && let Some(node) = nodes.iter_mut().find(|node| node.name() == name)
    {
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
        let lease = read("Lease of the kubelet", leases.get_opt(name)).await;
        let renewed = lease.ok().flatten().and_then(|it| it.spec?.renew_time);
        node.heartbeat = renewed.map(|time| time.0);
    }
    Ok(nodes)
}

fn node(node: &Node) -> NodeState {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|it| it.type_ == "Ready");
    let info = status.and_then(|status| status.node_info.as_ref());
    NodeState {
        view: Arc::new(NodeView::from(node)),
        kubelet_version: info
            .map(|it| it.kubelet_version.clone())
            .unwrap_or_default(),
        ready_since: ready
            .and_then(|it| it.last_transition_time.as_ref())
            .map(|time| time.0),
        ready_message: ready.and_then(|it| it.message.clone()).unwrap_or_default(),
        owner: NodeOwner::Unowned {
            why: "no cloud is configured".to_owned(),
            is_malformed: false,
        },
        matches: std::collections::BTreeMap::new(),
        heartbeat: None,
        looked_up: Vec::new(),
    }
}

/// Services that have, want or had a load balancer.
async fn services(client: &Client, scope: &Scope) -> Read<Vec<ServiceState>> {
    if matches!(scope, Scope::Node(_)) {
        return Ok(Vec::new());
    }
    let api: Api<Service> = Api::all(client.clone());
    let list = read("Services", api.list(&ListParams::default().match_any())).await?;
    let all = list.items.iter().map(service);
    let matters = |it: &ServiceState| {
        it.view.is_load_balancer()
            || !it.view.finalizers.is_empty()
            || scope.includes_service(&it.key())
    };
    Ok(all.filter(matters).collect())
}

fn service(service: &Service) -> ServiceState {
    let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    ServiceState {
        view: Arc::new(ServiceView::of(service)),
        created: time(&service.metadata.creation_timestamp),
        deleting_since: time(&service.metadata.deletion_timestamp),
        owner: None,
        draft: None,
        observed: None,
        removal: None,
        endpoints: None,
    }
}

/// Managers run where the lease is, which is usually `kube-system`.
async fn manager_pods(
    client: &Client,
    request: &Request<'_>,
    namespace: &str,
) -> Read<Vec<ManagerPod>> {
    let api: Api<SlimPod> = Api::namespaced(client.clone(), namespace);
    let what = format!("Pods in {namespace}");
    let list = read(&what, api.list(&ListParams::default().match_any())).await?;
    let pods = list.items.iter();
    Ok(pods
        .filter_map(|pod| pods::manager_pod(pod, request.registry))
        .collect())
}

async fn leases(client: &Client, namespace: &str) -> Read<Vec<LeaseState>> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let what = format!("Leases in {namespace}");
    let list = read(&what, api.list(&ListParams::default())).await?;
    Ok(list.items.into_iter().map(lease).collect())
}

fn lease(lease: Lease) -> LeaseState {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec
        .lease_duration_seconds
        .and_then(|it| u64::try_from(it).ok());
    LeaseState {
        name: lease.metadata.name.unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        renewed: spec.renew_time.map(|time| time.0),
        duration: Duration::from_secs(seconds.unwrap_or_default()),
    }
}

/// Warnings about Nodes and Services; of one object, all Events about it.
async fn events(client: &Client, scope: &Scope) -> Read<Vec<EventState>> {
    let api: Api<Event> = Api::all(client.clone());
    let selectors = match scope {
        Scope::All => vec![
            "involvedObject.kind=Node,type=Warning".to_owned(),
            "involvedObject.kind=Service,type=Warning".to_owned(),
        ],
        Scope::Node(name) => vec![format!(
            "involvedObject.kind=Node,involvedObject.name={name}"
        )],
        Scope::Service(key) => {
            let (namespace, name) = key.split_once('/').unwrap_or(("", key));
            vec![format!(
                "involvedObject.kind=Service,involvedObject.namespace={namespace},\
                 involvedObject.name={name}"
            )]
        }
    };
    let mut events = Vec::new();
    for selector in selectors {
        let like = ListParams::default().fields(&selector).limit(MOST_EVENTS);
        let list = read("Events", api.list(&like)).await?;
        events.extend(list.items.into_iter().filter_map(event));
    }
    events.sort_by_key(|event| event.last);
    Ok(events)
}

fn event(event: Event) -> Option<EventState> {
    let object = event.involved_object;
    let series = event.series.as_ref();
    let times: [Option<Timestamp>; 4] = [
        series
            .and_then(|it| it.last_observed_time.as_ref())
            .map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
        event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0),
    ];
    let kind = object.kind?;
    // Events about Nodes carry whatever namespace they are written in.
    let namespace = object
        .namespace
        .filter(|_| kind != "Node")
        .unwrap_or_default();
    let component = event.source.and_then(|source| source.component);
    Some(EventState {
        namespace,
        name: object.name?,
        is_warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
        count: series.and_then(|it| it.count).or(event.count).unwrap_or(1),
        last: times.into_iter().flatten().max()?,
        source: component.or(event.reporting_component).unwrap_or_default(),
        kind,
    })
}
