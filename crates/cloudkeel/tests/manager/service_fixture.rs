//! Services of a world, as their users handle them.

use cloudkeel_testkit::cluster::{
    NodeBuilder, ServiceBuilder, TestNamespace, eventually, unique_name, wait_for_service,
    wait_for_service_gone,
};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::simulated_cloud::wire::Balancer;
use k8s_openapi::api::core::v1::{Event, Service, ServicePort, ServiceSpec};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::harness::{DEADLINE, Manager, World};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// A manager at work, a namespace, and so many Nodes.
pub(crate) struct ServiceFixture {
    pub(crate) world: World,
    pub(crate) manager: Manager,
    pub(crate) nodes: Vec<String>,
    namespace: TestNamespace,
}

impl ServiceFixture {
    pub(crate) async fn open(on: EitherApi, nodes: usize) -> Self {
        let world = World::on(on).await;
        let mut names = Vec::new();
        for _ in 0..nodes {
            names.push(join(&world).await);
        }
        let namespace = TestNamespace::create(&world.client, "services").await;
        let namespace = namespace.expect("the namespace is made");
        let manager = world.start(&["--controllers=service"]);
        Self {
            world,
            manager,
            nodes: names,
            namespace,
        }
    }

    /// A Service of this world, not made yet.
    pub(crate) fn service(&self, name: &str) -> ServiceBuilder {
        ServiceBuilder::new(self.namespace.name(), name).class(self.world.class())
    }

    pub(crate) async fn create(&self, service: ServiceBuilder) -> Service {
        let made = service.create(&self.world.client).await;
        made.expect("the service is made")
    }

    pub(crate) async fn create_as(&self, service: &Service) {
        let made = self.api().create(&PostParams::default(), service).await;
        made.expect("the service is made");
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Service {
        let patched = self
            .api()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.expect("the service is changed")
    }

    /// Writes the addresses of a Service, as its own controller would.
    pub(crate) async fn patch_status(&self, name: &str, ingress: Value) {
        let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
        let written = self
            .api()
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        written.expect("the status is written");
    }

    /// Deletes a Service and removes its finalizer, before the controller can act.
    pub(crate) async fn delete_by_force(&self, name: &str) {
        let finalizers = json!({"metadata": {"finalizers": null}});
        self.patch(name, finalizers).await;
        self.delete(name).await;
        self.until_gone(name).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        let deleted = self.api().delete(name, &DeleteParams::default()).await;
        deleted.expect("the service is there");
    }

    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(&Service) -> bool) -> Service {
        let namespace = self.namespace.name();
        wait_for_service(&self.world.client, namespace, name, DEADLINE, wanted).await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let namespace = self.namespace.name();
        wait_for_service_gone(&self.world.client, namespace, name, DEADLINE).await;
    }

    /// Waits for the address.
    pub(crate) async fn address(&self, name: &str) -> String {
        let served = self.until(name, |service| address(service).is_some()).await;
        address(&served).expect("just seen")
    }

    /// Waits until there is no address and no finalizer.
    pub(crate) async fn until_released(&self, name: &str) -> Service {
        self.until(name, |service| {
            address(service).is_none() && !has_finalizer(service)
        })
        .await
    }

    /// Waits until the balancer of the world is like this.
    pub(crate) async fn balancer(&self, wanted: impl Fn(&Balancer) -> bool) -> Balancer {
        eventually("the balancer is as wanted", DEADLINE, || async {
            let balancers = self.balancers();
            match balancers.as_slice() {
                [balancer] if wanted(balancer) => Ok(Some(balancer.clone())),
                _ => Err(format!("{balancers:#?}")),
            }
        })
        .await
    }

    pub(crate) fn balancers(&self) -> Vec<Balancer> {
        self.world.cloud.balancers_of(&self.world.id)
    }

    /// The reasons of all events about a Service.
    pub(crate) async fn reasons(&self, name: &str) -> Vec<String> {
        let events = self.events_about(name).await.into_iter();
        events.filter_map(|event| event.reason).collect()
    }

    async fn events_about(&self, name: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.world.client.clone(), self.namespace.name());
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let found = events.list(&about).await;
        found.expect("events can be listed").items
    }

    /// Waits for an event about a Service with this reason, and returns its message.
    pub(crate) async fn wait_for_event(&self, name: &str, reason: &str) -> String {
        eventually(reason, DEADLINE, || async {
            let events = self.events_about(name).await.into_iter();
            events
                .filter(|event| event.reason.as_deref() == Some(reason))
                .find_map(|event| event.message)
        })
        .await
    }

    /// Another process takes over.
    pub(crate) async fn restart(&mut self) {
        self.manager.signal("TERM");
        assert_eq!(self.manager.ended().await.code(), Some(0));
        self.manager = self.world.start(&["--controllers=service"]);
        self.manager
            .wait_for_log("checked existing load balancers")
            .await;
    }

    fn api(&self) -> Api<Service> {
        Api::namespaced(self.world.client.clone(), self.namespace.name())
    }

    /// `{"type": …}` with the class that goes with it.
    pub(crate) fn of_type(&self, kind: &str) -> Value {
        let class = (kind == "LoadBalancer").then(|| self.world.class());
        json!({"spec": {"type": kind, "loadBalancerClass": class}})
    }
}

/// A machine and its initialised Node.
pub(crate) async fn join(world: &World) -> String {
    let name = unique_name("node");
    let machine = world.machine(&name);
    let (key, value) = world.label();
    let node = NodeBuilder::new(&name)
        .label(key, value)
        .provider_id(format!("local://{}/{machine}", world.id))
        .initialized();
    node.create(&world.client).await.expect("the node is made");
    name
}

pub(crate) fn address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer.ingress.as_ref()?.first()?.ip.clone()
}

pub(crate) fn has_finalizer(service: &Service) -> bool {
    let finalizers = service.metadata.finalizers.as_deref();
    finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == FINALIZER))
}

pub(crate) fn spec(service: &Service) -> &ServiceSpec {
    service.spec.as_ref().expect("a spec")
}

pub(crate) fn port(service: &Service) -> &ServicePort {
    let ports = spec(service).ports.as_deref();
    ports.unwrap_or_default().first().expect("a port")
}

/// The node port, if there is one.
pub(crate) fn node_port(service: &Service) -> Option<i32> {
    port(service).node_port.filter(|port| *port != 0)
}
