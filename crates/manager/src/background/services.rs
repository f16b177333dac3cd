//! The Services of the cluster, as a provider controller sees them.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{Protocol, ServiceFacts, ServiceFeed, ServicePort, ServiceRef, names};
use cloudkeel_controllers::runtime::{Cache, Listener};
use cloudkeel_controllers::service::ingress_of;
use cloudkeel_controllers::view::ServiceView;
use k8s_openapi::api::core::v1;
use tokio::sync::Notify;

/// All Services, as the shared watch shows them.
pub(super) struct ClusterServices {
    services: Arc<Cache<ServiceView>>,
    changes: Arc<Notify>,
}

impl ClusterServices {
    pub(super) fn new(services: &Arc<Cache<ServiceView>>) -> Self {
        Self {
            services: Arc::clone(services),
            changes: Arc::default(),
        }
    }

    /// Receives the events of the Service watch.
    pub(super) fn listener(&self) -> Listener<ServiceView> {
        let changes = Arc::clone(&self.changes);
        Box::new(move |_change| changes.notify_one())
    }

    /// The Service as last observed, if it has this UID and is not paused.
    pub(super) fn writable(&self, service: &ServiceRef) -> Option<Arc<ServiceView>> {
        let seen = self.services.get(&service.to_string())?;
        let is_paused = names::is_paused(&seen.annotations);
        (seen.service.uid == service.uid && !is_paused).then_some(seen)
    }
}

#[async_trait]
impl ServiceFeed for ClusterServices {
    fn snapshot(&self) -> Vec<ServiceFacts> {
        let mut services: Vec<_> = self.services.all().iter().map(|it| facts(it)).collect();
        services.sort_by(|a, b| a.service.cmp(&b.service));
        services
    }

    async fn changed(&self) {
        self.changes.notified().await;
    }
}

fn facts(service: &ServiceView) -> ServiceFacts {
    ServiceFacts {
        service: service.service.clone(),
        service_type: service.service_type,
        class: service.class.clone(),
        labels: service.labels.clone(),
        annotations: service.annotations.clone(),
        ports: service.ports.iter().filter_map(port).collect(),
        traffic_policy: service.traffic_policy,
        health_check_node_port: service.health_check_node_port.and_then(number),
        source_ranges: service.source_ranges.clone(),
        ingress: ingress_of(service),
        is_deleting: service.deleting,
    }
}

fn port(port: &v1::ServicePort) -> Option<ServicePort> {
    Some(ServicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: match port.protocol.as_deref().unwrap_or("TCP") {
            "TCP" => Protocol::Tcp,
            "UDP" => Protocol::Udp,
            "SCTP" => Protocol::Sctp,
            _ => return None,
        },
        port: number(port.port)?,
        node_port: port.node_port.and_then(number),
    })
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}
