//! What a provider sees of a Service besides its load balancer.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Ingress, Protocol, ServiceRef, TrafficPolicy, names};

/// `spec.type` of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub enum ServiceType {
    /// Reachable inside the cluster.
    #[default]
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    /// Reachable on a port of every Node.
    NodePort,
    /// Reachable through a load balancer.
    LoadBalancer,
    /// A DNS alias.
    ExternalName,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Transport.
    pub protocol: Protocol,
    /// The port of the Service.
    pub port: u16,
    /// The port of the Nodes, if there is one.
    pub node_port: Option<u16>,
}

/// The facts of a Service that background controllers see in place of the Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFacts {
    /// Namespace, name and UID.
    pub service: ServiceRef,
    /// `spec.type`
    pub service_type: ServiceType,
    /// `spec.loadBalancerClass`
    pub class: Option<String>,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// `spec.ports` that can be parsed.
    pub ports: Vec<ServicePort>,
    /// `externalTrafficPolicy`
    pub traffic_policy: TrafficPolicy,
    /// `healthCheckNodePort`
    pub health_check_node_port: Option<u16>,
    /// `loadBalancerSourceRanges`
    pub source_ranges: Vec<String>,
    /// The addresses in its status.
    pub ingress: Vec<Ingress>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

impl ServiceFacts {
    /// Whether it asks for a load balancer, and is not being deleted.
    pub fn has_balancer(&self) -> bool {
        self.service_type == ServiceType::LoadBalancer && !self.is_deleting
    }

    /// Whether its load balancer may be changed: it has one, and is not paused.
    pub fn has_managed_balancer(&self) -> bool {
        self.has_balancer() && !names::is_paused(&self.annotations)
    }
}
