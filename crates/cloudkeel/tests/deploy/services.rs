//! Services of type LoadBalancer.

use cloudkeel_testkit::cluster::{
    ServiceBuilder, TestNamespace, wait_for_service, wait_for_service_gone,
};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::harness::{DEADLINE, World};
use crate::nodes::wait_for_event;

const NAME: &str = "web";

/// A Service of a world, in a namespace of its own.
pub(crate) struct Served<'a> {
    world: &'a World,
    namespace: TestNamespace,
}

impl<'a> Served<'a> {
    /// Makes one.
    pub(crate) async fn new(world: &'a World) -> Self {
        let namespace = TestNamespace::create(&world.client, "services").await;
        let namespace = namespace.expect("the namespace is made");
        let service = ServiceBuilder::new(namespace.name(), NAME).class(world.class());
        let made = service.port("main", 80).create(&world.client).await;
        made.expect("the service is made");
        Self { world, namespace }
    }

    /// Waits for its address.
    pub(crate) async fn address(&self) {
        let namespace = self.namespace.name();
        let client = &self.world.client;
        wait_for_service(client, namespace, NAME, DEADLINE, has_address).await;
    }

    pub(crate) async fn change_port(&self) {
        let ports = json!([{"name": "main", "port": 81}]);
        let patch = Patch::Merge(json!({"spec": {"ports": ports}}));
        let patched = self
            .api()
            .patch(NAME, &PatchParams::default(), &patch)
            .await;
        patched.expect("the service is there");
    }

    /// Deletes it, and waits until it is gone.
    pub(crate) async fn delete(&self) {
        let deleted = self.api().delete(NAME, &DeleteParams::default()).await;
        deleted.expect("the service is there");
        let namespace = self.namespace.name();
        wait_for_service_gone(&self.world.client, namespace, NAME, DEADLINE).await;
    }

    /// Waits for an event about it.
    pub(crate) async fn wait_for_event(&self, reason: &str) {
        wait_for_event(self.world, self.namespace.name(), NAME, reason, 1).await;
    }

    fn api(&self) -> Api<Service> {
        Api::namespaced(self.world.client.clone(), self.namespace.name())
    }
}

fn has_address(service: &Service) -> bool {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    balancer.is_some_and(|balancer| balancer.ingress.is_some())
}
