//! What a pass over all Services costs.

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, CloudProvider, DesiredState, LoadBalancerSpec,
    Observation, Outcome, OwnedResource, Plan, ProviderId, Recognition,
};
use cloudkeel_embedded::EmbeddedApi;
use futures::stream;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::runtime::watcher::Event;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::service::fixtures::{ABLE, controller_of};
use crate::service::owner::owner_of_service;

/// A cloud that is never called.
struct Uncalled;

/// Its own annotation.
const OWN_SELECTOR: &str = "cloud.example/node-selector";

impl CloudProvider for Uncalled {
    fn name(&self) -> &'static str {
        "hcloud"
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        match id.scheme() {
            Some("hcloud") => Recognition::Ours,
            _ => Recognition::Foreign,
        }
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }
}

#[async_trait]
impl LoadBalancers for Uncalled {
    fn profile(&self, _claim: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(ABLE)
    }
    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        let text = annotations.get(OWN_SELECTOR);
        Ok(text.map(|text| text.parse().unwrap()))
    }
    async fn plan(&self, _desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        unreachable!("nothing is asked of the cloud")
    }
    async fn apply(&self, _desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        unreachable!("nothing is asked of the cloud")
    }
    async fn observe_all(
        &self,
        _specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        Vec::new()
    }
    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        Ok(Vec::new())
    }
}

/// A cloud that recognises no ID.
struct Other;

impl CloudProvider for Other {
    fn name(&self) -> &'static str {
        "other"
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&Uncalled)
    }
}

fn node(number: usize) -> Node {
    let label = |index: usize| (format!("example.com/label-{index}"), json!("a value"));
    let labels: serde_json::Map<_, _> = (0..20).map(label).collect();
    let (one, two) = (number / 250, number % 250);
    serde_json::from_value(json!({
        "metadata": {"name": format!("node-{number:05}"), "uid": format!("u-{number}"),
                     "labels": labels, "annotations": {"example.com/note": "a note"}},
        "spec": {"providerID": format!("hcloud://{number}"), "podCIDRs": ["10.244.1.0/24"]},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": format!("node-{number:05}")},
                {"type": "InternalIP", "address": format!("10.0.{one}.{two}")},
                {"type": "ExternalIP", "address": format!("192.0.{one}.{two}")},
            ],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
    .unwrap()
}

fn service(number: usize) -> Service {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": format!("svc-{number}"),
                     "uid": format!("s-{number}"), "resourceVersion": "1"},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"],
                 "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]},
    }))
    .unwrap()
}

/// A controller that has seen so many Services and Nodes.
async fn controller(services: usize, nodes: usize) -> Arc<ServiceController> {
    let controller = controller_of(Arc::new(Uncalled), &EmbeddedApi::new());
    let never = CancellationToken::new();
    let seen = (0..nodes).map(|number| Ok(Event::Apply(node(number).into())));
    let cache = &controller.parts.nodes;
    cache.follow(stream::iter(seen), &[], &never).await;
    let seen = (0..services).map(|number| Ok(Event::Apply(service(number))));
    let cache = &controller.parts.services;
    cache.follow(stream::iter(seen), &[], &never).await;
    controller
}

/// What each Service asks of its balancer.
fn drafts(controller: &ServiceController) -> Vec<Draft> {
    let services = controller.parts.services.all();
    let drafts = services.iter().map(|service| {
        let owner = owner_of_service(service, &controller.parts.classes).unwrap();
        let provider = controller.provider_of(&owner.cloud).unwrap();
        let balancers = provider.load_balancers().unwrap();
        let desired = controller.desired(service, owner, balancers);
        desired.unwrap().0
    });
    drafts.collect()
}

#[tokio::test]
async fn the_facts_of_a_node_are_shared_by_all_specifications() {
    let controller = controller(3, 5).await;
    let drafts = drafts(&controller);
    assert_eq!(drafts.len(), 3);
    for draft in &drafts {
        assert_eq!(draft.spec.targets.len(), 5);
        for (name, target) in &draft.spec.targets {
            let seen = controller.parts.nodes.get(name).unwrap();
            let is_same = std::ptr::eq(&raw const target.node.labels, &raw const seen.facts.labels);
            assert!(is_same, "{name} was copied");
        }
    }
    let mut targets = drafts.iter().map(|draft| &draft.spec.targets);
    let first = targets.next().unwrap();
    assert!(targets.all(|other| other.is_same_as(first)));
}

#[tokio::test]
async fn what_was_chosen_is_forgotten_when_a_node_or_a_provider_changes() {
    let controller = controller(1, 3).await;
    let targets = || drafts(&controller).remove(0).spec.targets;
    let first = targets();
    assert!(targets().is_same_as(&first));
    let never = CancellationToken::new();
    let mut moved = node(1);
    let status = moved.status.get_or_insert_default();
    status.addresses = None;
    let seen = stream::iter([Ok(Event::Apply(moved.into()))]);
    controller.parts.nodes.follow(seen, &[], &never).await;
    let second = targets();
    assert!(second["node-00001"].node.addresses.is_empty());
    let (one, other) = (&first["node-00002"].node, &second["node-00002"].node);
    assert!(one.is_same_as(other), "its facts are the same");

    let [cloud] = controller.parts.clouds.as_slice() else {
        panic!("one cloud");
    };
    cloud.cell.replace(Arc::new(Other));
    assert!(targets().is_empty(), "it recognises none of them");
}

/// Remembers that the balancer of a Service is settled.
fn settle(controller: &ServiceController, service: &Arc<ServiceView>) {
    let owner = owner_of_service(service, &controller.parts.classes).unwrap();
    let provider = controller.provider_of(&owner.cloud).unwrap();
    let balancers = provider.load_balancers().unwrap();
    let desired = controller.desired(service, owner, balancers);
    let (_, targets) = desired.unwrap();
    controller.records.update(service, |record| {
        record.settled = Some(Arc::clone(service));
        record.applied = Some(targets);
    });
}

#[tokio::test]
async fn a_clouds_own_selector_is_followed_when_the_labels_of_a_node_change() {
    let controller = controller(0, 3).await;
    let never = CancellationToken::new();
    let mut selecting = service(0);
    let annotation = (OWN_SELECTOR.to_owned(), "edge=yes".to_owned());
    selecting.metadata.annotations = Some([annotation].into());
    for service in [selecting, service(1)] {
        let seen = stream::iter([Ok(Event::Apply(service))]);
        controller.parts.services.follow(seen, &[], &never).await;
    }
    for service in controller.parts.services.all() {
        settle(&controller, &service);
    }
    controller.compare_targets();
    assert_eq!(controller.queue.report().ready, 0, "nothing has changed");
    let mut labelled = node(1);
    let labels = labelled.metadata.labels.get_or_insert_default();
    labels.insert("edge".to_owned(), "yes".to_owned());
    let seen = stream::iter([Ok(Event::Apply(labelled.into()))]);
    let listeners = [controller.node_listener()];
    controller
        .parts
        .nodes
        .follow(seen, &listeners, &never)
        .await;
    controller.node_changes.ended().await;
    controller.compare_targets();
    let (key, _) = controller.queue.next().await;
    assert_eq!(key, "default/svc-0");
    assert_eq!(
        controller.queue.report().ready,
        0,
        "the other has no selector"
    );
}
