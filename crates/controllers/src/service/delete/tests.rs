//! A watch that lags behind what was just written.

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, CloudError, CloudProvider, Features, LoadBalancerSpec, OwnedResource, Plan,
    PlannedStep, Surveyed,
};
use cloudkeel_embedded::EmbeddedApi;
use futures::stream;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::controller::ServiceController;
use super::super::fixtures::controller_of;
use super::*;
use crate::wellknown::CLEANUP_FINALIZER;

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Removes whatever it is asked to remove.
struct Obedient;

impl CloudProvider for Obedient {
    fn name(&self) -> &'static str {
        "obedient"
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }
}

#[async_trait]
impl LoadBalancers for Obedient {
    fn profile(&self, _claim: &Claim) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
    async fn plan(&self, _wish: Wish<'_>) -> Result<Plan, CloudError> {
        Ok(Plan::default())
    }
    async fn apply(&self, _wish: Wish<'_>) -> Result<Outcome, CloudError> {
        let step = PlannedStep {
            text: "delete the load balancer".to_owned(),
            destructive: true,
            ineffective: false,
        };
        let done = Plan { steps: vec![step] };
        Ok(Outcome::Gone {
            done,
            kept: Vec::new(),
            acknowledged: true,
        })
    }
    async fn survey(&self, _specs: &[LoadBalancerSpec]) -> Vec<Result<Surveyed, CloudError>> {
        Vec::new()
    }
    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        Ok(Vec::new())
    }
}

fn controller(api: &EmbeddedApi) -> Arc<ServiceController> {
    controller_of(Arc::new(Obedient), api)
}

/// The watch shows a Service like this.
async fn show(controller: &Arc<ServiceController>, shown: Value) {
    let shown: Service = serde_json::from_value(shown).unwrap();
    let events = stream::iter([Ok(Event::Apply(shown))]);
    let (listeners, never) = ([controller.service_listener()], CancellationToken::new());
    let services = &controller.parts.services;
    services.follow(events, &listeners, &never).await;
}

#[tokio::test]
async fn a_service_that_wants_a_balancer_again_is_known_to_have_no_finalizer_before_the_watch_shows_it()
 {
    let api = EmbeddedApi::new();
    let (hand, controller) = (api.hand("somebody"), controller(&api));
    let path = format!("{SERVICES}/web");
    let retyped = json!({
        "metadata": {"name": "web", "finalizers": [CLEANUP_FINALIZER]},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80}]},
    });
    hand.create(SERVICES, &retyped).unwrap();
    show(&controller, hand.get(&path).unwrap()).await;
    let retyped = controller.current("default/web").unwrap();
    // Somebody changes their mind while the balancer is being removed.
    hand.merge(&path, &json!({"spec": {"type": "LoadBalancer"}}))
        .unwrap();
    let again = hand.get(&path).unwrap();
    assert_eq!(controller.delete(&retyped, 0).await, Verdict::Done);
    show(&controller, again).await;
    let known = controller.current("default/web").unwrap();
    assert!(known.is_load_balancer && !known.has_finalizer(CLEANUP_FINALIZER));
    show(&controller, hand.get(&path).unwrap()).await;
    let known = controller.current("default/web").unwrap();
    assert!(!known.has_finalizer(CLEANUP_FINALIZER));
}
