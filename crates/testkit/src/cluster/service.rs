//! A Service of type `LoadBalancer`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::PostParams;
use kube::{Api, Client};

/// Builds a Service of type `LoadBalancer`. Everything that is not said is left to the API server's defaults.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds or creates the Service"]
pub struct ServiceBuilder {
    metadata: ObjectMeta,
    spec: ServiceSpec,
}

impl ServiceBuilder {
    /// A Service without ports; the API server wants at least one.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            spec: ServiceSpec {
                type_: Some("LoadBalancer".to_owned()),
                selector: Some(BTreeMap::from([("app".to_owned(), name.clone())])),
                ..ServiceSpec::default()
            },
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.into()),
                ..ObjectMeta::default()
            },
        }
    }

    /// A TCP port of this name and number.
    pub fn port(self, name: &str, port: i32) -> Self {
        self.port_of("TCP", name, port)
    }

    /// A UDP port of this name and number.
    pub fn udp_port(self, name: &str, port: i32) -> Self {
        self.port_of("UDP", name, port)
    }

    fn port_of(self, protocol: &str, name: &str, port: i32) -> Self {
        self.with_port(ServicePort {
            name: Some(name.to_owned()),
            port,
            protocol: Some(protocol.to_owned()),
            ..ServicePort::default()
        })
    }

    /// A TCP port that leads to another port of the Pods, through a node port of choice.
    pub fn port_through(self, name: &str, port: i32, node_port: i32, target_port: i32) -> Self {
        self.with_port(ServicePort {
            name: Some(name.to_owned()),
            port,
            node_port: Some(node_port),
            target_port: Some(IntOrString::Int(target_port)),
            ..ServicePort::default()
        })
    }

    fn with_port(mut self, port: ServicePort) -> Self {
        self.spec.ports.get_or_insert_default().push(port);
        self
    }

    /// The type, where a test changes it to or from `LoadBalancer`.
    pub fn service_type(mut self, kind: &str) -> Self {
        self.spec.type_ = Some(kind.to_owned());
        self
    }

    /// The `loadBalancerClass`.
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.spec.load_balancer_class = Some(class.into());
        self
    }

    /// A label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let labels = self.metadata.labels.get_or_insert_default();
        labels.insert(key.into(), value.into());
        self
    }

    /// An annotation.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let annotations = self.metadata.annotations.get_or_insert_default();
        annotations.insert(key.into(), value.into());
        self
    }

    /// A finalizer that is there from the start.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.metadata
            .finalizers
            .get_or_insert_default()
            .push(name.into());
        self
    }

    /// `externalTrafficPolicy: Local`: only nodes with a Pod take traffic, which the health check node port reports.
    pub fn external_traffic_local(mut self) -> Self {
        self.spec.external_traffic_policy = Some("Local".to_owned());
        self
    }

    /// `allocateLoadBalancerNodePorts: false`.
    pub fn without_node_ports(mut self) -> Self {
        self.spec.allocate_load_balancer_node_ports = Some(false);
        self
    }

    /// `sessionAffinity: ClientIP`.
    pub fn client_ip_affinity(mut self) -> Self {
        self.spec.session_affinity = Some("ClientIP".to_owned());
        self
    }

    /// The object as it would be posted.
    pub fn build(&self) -> Service {
        Service {
            metadata: self.metadata.clone(),
            spec: Some(self.spec.clone()),
            status: None,
        }
    }

    /// Posts the object and returns what the API server made of it: with addresses, node ports and defaults.
    pub async fn create(&self, client: &Client) -> Result<Service, kube::Error> {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(client.clone(), namespace);
        services.create(&PostParams::default(), &self.build()).await
    }
}
