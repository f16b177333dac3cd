//! The plainest forms of what a Service asks for, to begin from.

use std::collections::BTreeMap;

use super::{
    Affinity, BalancerRef, HealthCheck, Listener, LoadBalancerSpec, Options, OtherServices,
    Protocol, ServiceRef, Target, TargetBy, TargetState, TrafficPolicy,
};
use crate::{ClusterIdentity, IpFamily, NodeFacts, Shared};

impl BalancerRef {
    /// The claim of a Service that points at no balancer.
    pub const fn of(cluster: ClusterIdentity, service: ServiceRef) -> Self {
        Self {
            cluster,
            service,
            class: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            finalizers: Vec::new(),
            ip_family_policy: None,
            ingress: Vec::new(),
            adopt: None,
            others: OtherServices::none(),
        }
    }

    /// Whether the Service points at a balancer: by its status, or by the desired state to take one over.
    pub fn points_at_balancer(&self) -> bool {
        !self.ingress.is_empty() || self.adopt.is_some()
    }
}

impl Listener {
    /// A TCP port, checked by a connection.
    pub const fn tcp(port: u16, node_port: u16) -> Self {
        Self {
            name: None,
            protocol: Protocol::Tcp,
            port,
            node_port: Some(node_port),
            app_protocol: None,
            health_check: HealthCheck::tcp(),
        }
    }
}

impl Target {
    /// A node that is a machine of this cloud and gets new connections.
    pub fn machine(node: impl Into<Shared<NodeFacts>>) -> Self {
        Self {
            node: node.into(),
            by: TargetBy::Machine,
            state: TargetState::Serving,
        }
    }
}

impl LoadBalancerSpec {
    /// A Service that has neither ports nor Nodes and no options.
    pub fn plain(balancer_ref: BalancerRef) -> Self {
        Self {
            balancer_ref,
            listeners: Vec::new(),
            targets: Shared::default(),
            families: vec![IpFamily::V4],
            address: None,
            source_ranges: Vec::new(),
            traffic_policy: TrafficPolicy::Cluster,
            health_check_node_port: None,
            affinity: Affinity::None,
            options: Options::default(),
        }
    }
}
