//! A watch that lags behind what was just written.

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, CloudError, CloudProvider, Features, LoadBalancerSpec, Observation,
    OwnedResource, Plan, PlannedStep, StepAction,
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
    fn profile(&self, _claim: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
    async fn plan(&self, _desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        Ok(Plan::default())
    }
    async fn apply(&self, _desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        let step = PlannedStep {
            text: "delete the load balancer".to_owned(),
            action: StepAction::Delete,
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
async fn a_service_that_wants_a_balancer_again_is_known_to_have_no_address_before_the_watch_shows_it()
 {
    let api = EmbeddedApi::new();
    let (direct, controller) = (api.direct_client("another-client"), controller(&api));
    let path = format!("{SERVICES}/web");
    let retyped = json!({
        "metadata": {"name": "web", "finalizers": [CLEANUP_FINALIZER]},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80}]},
    });
    direct.create(SERVICES, &retyped).unwrap();
    show(&controller, direct.get(&path).unwrap()).await;
    let retyped = controller.current("default/web").unwrap();
    // The type changes back while the balancer is being deleted.
    direct
        .merge(&path, &json!({"spec": {"type": "LoadBalancer"}}))
        .unwrap();
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    direct.merge(&format!("{path}/status"), &status).unwrap();
    let again = direct.get(&path).unwrap();
    assert_eq!(controller.delete(&retyped, 0).await, Verdict::Done);
    for shown in [again, direct.get(&path).unwrap()] {
        show(&controller, shown).await;
        let known = controller.current("default/web").unwrap();
        assert!(known.is_load_balancer() && known.has_finalizer(CLEANUP_FINALIZER));
        assert_eq!(known.ingress, []);
    }
}
