//! The view of a Service.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{Affinity, IpFamily, IpFamilyPolicy, ServiceRef, ServiceType, TrafficPolicy};
use k8s_openapi::api::core::v1::{
    LoadBalancerIngress, Service, ServicePort, ServiceSpec, ServiceStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{View, version_of};

/// How long a client sticks to its backend if the Service does not say.
const DEFAULT_AFFINITY: Duration = Duration::from_hours(3);

/// The whole Service once more, kept by `kubectl apply` for itself. It would weigh as much as all the
/// rest, and show every change twice.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is kept of a Service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceView {
    /// Namespace, name and UID.
    pub service: ServiceRef,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, without the one that `kubectl apply` keeps for itself.
    pub annotations: BTreeMap<String, String>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
    /// `type`
    pub service_type: ServiceType,
    /// `ipFamilyPolicy`
    pub ip_family_policy: Option<IpFamilyPolicy>,
    /// `loadBalancerClass`. An empty one counts as set.
    pub class: Option<String>,
    /// `ports`, which are validated where they are used.
    pub ports: Vec<ServicePort>,
    /// Whether the API server allocates node ports.
    pub allocates_node_ports: bool,
    /// `sessionAffinity` with its timeout.
    pub affinity: Affinity,
    /// `loadBalancerIP`, unless it is empty.
    pub load_balancer_ip: Option<String>,
    /// `externalIPs`
    pub external_ips: Vec<String>,
    /// `loadBalancerSourceRanges`
    pub source_ranges: Vec<String>,
    /// `externalTrafficPolicy`
    pub traffic_policy: TrafficPolicy,
    /// `healthCheckNodePort`, unless there is none.
    pub health_check_node_port: Option<i32>,
    /// `ipFamilies`
    pub families: Vec<IpFamily>,
    /// `status.loadBalancer.ingress`
    pub ingress: Vec<LoadBalancerIngress>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl ServiceView {
    /// The resource version as a number, by which versions of one object can be compared. `None` from
    /// an API server that counts in another way.
    pub fn version(&self) -> Option<u128> {
        version_of(&self.resource_version)
    }

    /// Whether its type is `LoadBalancer`.
    pub fn is_load_balancer(&self) -> bool {
        self.service_type == ServiceType::LoadBalancer
    }

    /// Whether it has this finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|present| present == finalizer)
    }
}

impl View for ServiceView {
    type Object = Service;

    const KIND: &'static str = "Services";

    fn of(service: &Service) -> Self {
        let metadata = &service.metadata;
        let (no_spec, no_status) = (ServiceSpec::default(), ServiceStatus::default());
        let spec = service.spec.as_ref().unwrap_or(&no_spec);
        let status = service.status.as_ref().unwrap_or(&no_status);
        let balancer = status.load_balancer.as_ref();
        Self {
            service: ServiceRef {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
                uid: metadata.uid.clone().unwrap_or_default(),
            },
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations: annotations(service),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            service_type: match spec.type_.as_deref() {
                Some("LoadBalancer") => ServiceType::LoadBalancer,
                Some("NodePort") => ServiceType::NodePort,
                Some("ExternalName") => ServiceType::ExternalName,
                _ => ServiceType::ClusterIp,
            },
            ip_family_policy: match spec.ip_family_policy.as_deref() {
                Some("SingleStack") => Some(IpFamilyPolicy::SingleStack),
                Some("PreferDualStack") => Some(IpFamilyPolicy::PreferDualStack),
                Some("RequireDualStack") => Some(IpFamilyPolicy::RequireDualStack),
                _ => None,
            },
            class: spec.load_balancer_class.clone(),
            ports: spec.ports.clone().unwrap_or_default(),
            allocates_node_ports: spec.allocate_load_balancer_node_ports.unwrap_or(true),
            affinity: affinity(spec),
            load_balancer_ip: spec
                .load_balancer_ip
                .clone()
                .filter(|text| !text.is_empty()),
            external_ips: spec.external_ips.clone().unwrap_or_default(),
            source_ranges: spec.load_balancer_source_ranges.clone().unwrap_or_default(),
            traffic_policy: match spec.external_traffic_policy.as_deref() {
                Some("Local") => TrafficPolicy::Local,
                _ => TrafficPolicy::Cluster,
            },
            health_check_node_port: spec.health_check_node_port.filter(|port| *port != 0),
            families: spec
                .ip_families
                .iter()
                .flatten()
                .filter_map(|name| family(name))
                .collect(),
            ingress: balancer
                .and_then(|it| it.ingress.clone())
                .unwrap_or_default(),
            conditions: status.conditions.clone().unwrap_or_default(),
        }
    }

    fn key(&self) -> String {
        self.service.to_string()
    }

    fn continues(&self, before: &Self) -> bool {
        self.service.uid == before.service.uid
    }
}

fn annotations(service: &Service) -> BTreeMap<String, String> {
    let mut annotations = service.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    annotations
}

fn affinity(spec: &ServiceSpec) -> Affinity {
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return Affinity::None;
    }
    let seconds = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref())
        .and_then(|client| client.timeout_seconds)
        .and_then(|seconds| u64::try_from(seconds).ok());
    Affinity::ClientIp {
        timeout: seconds.map_or(DEFAULT_AFFINITY, Duration::from_secs),
    }
}

fn family(name: &str) -> Option<IpFamily> {
    match name {
        "IPv4" => Some(IpFamily::V4),
        "IPv6" => Some(IpFamily::V6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(value: serde_json::Value) -> ServiceView {
        ServiceView::of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn what_is_used_is_kept_and_the_rest_is_not() {
        let view = view(json!({
            "metadata": {
                "namespace": "default", "name": "web", "uid": "u", "resourceVersion": "7",
                "annotations": {"a": "b", LAST_APPLIED: "{}"}, "finalizers": ["f"],
                "deletionTimestamp": "2026-01-02T03:04:05Z",
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {
                "type": "LoadBalancer", "loadBalancerClass": "", "loadBalancerIP": "192.0.2.1",
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
                "externalTrafficPolicy": "Local", "healthCheckNodePort": 32000,
                "allocateLoadBalancerNodePorts": false,
                "ipFamilies": ["IPv6", "IPv4"], "externalIPs": ["192.0.2.9"],
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "ports": [{"port": 80, "nodePort": 30080, "targetPort": "http", "appProtocol": "h2"}],
            },
            "status": {
                "loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]},
                "conditions": [
                    {"type": "cloudkeel.dev/Accepted", "status": "True", "reason": "R",
                     "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"},
                    {"type": "example.com/Other", "status": "True", "reason": "R",
                     "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"},
                ],
            },
        }));
        assert_eq!(view.key(), "default/web");
        assert_eq!(view.version(), Some(7));
        assert!(view.deleting && view.is_load_balancer() && !view.allocates_node_ports);
        assert!(view.has_finalizer("f") && !view.has_finalizer("g"));
        assert_eq!(view.annotations, [("a".to_owned(), "b".to_owned())].into());
        assert_eq!(view.class.as_deref(), Some(""));
        assert_eq!(view.families, [IpFamily::V6, IpFamily::V4]);
        assert_eq!(view.traffic_policy, TrafficPolicy::Local);
        assert_eq!(view.health_check_node_port, Some(32000));
        let minute = Duration::from_mins(1);
        assert_eq!(view.affinity, Affinity::ClientIp { timeout: minute });
        assert_eq!(view.ports[0].node_port, Some(30080));
        assert_eq!(view.ingress.len(), 1);
        assert_eq!(view.conditions.len(), 2);
    }

    #[test]
    fn an_almost_empty_service_is_read_and_nothing_panics() {
        let view = view(json!({"metadata": {"name": "web"}}));
        assert!(!view.is_load_balancer() && !view.deleting && view.allocates_node_ports);
        assert_eq!(view.class, None);
        assert_eq!(view.affinity, Affinity::None);
        assert!(view.ports.is_empty() && view.ingress.is_empty());
    }

    #[test]
    fn zero_and_empty_mean_absent() {
        let view = view(json!({
            "metadata": {"name": "web"},
            "spec": {
                "loadBalancerIP": "", "healthCheckNodePort": 0, "sessionAffinity": "ClientIP",
            },
        }));
        assert_eq!(view.load_balancer_ip, None);
        assert_eq!(view.health_check_node_port, None);
        let timeout = DEFAULT_AFFINITY;
        assert_eq!(view.affinity, Affinity::ClientIp { timeout });
    }
}
