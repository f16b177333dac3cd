//! A provider with a bug: what panics outside of the work on a Service concerns that Service or that cloud alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, CloudProvider, DesiredState, Instances,
    LoadBalancerSpec, LoadBalancers, Observation, Outcome, OwnedResource, Plan, ProviderId,
    Recognition,
};
use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::Settings;

use crate::lab::{Lab, MINUTE, SECOND, Site};

/// The local provider, with bugs that can be switched on.
struct Buggy {
    inner: Arc<dyn CloudProvider>,
    /// In the pure part, for the Service `svc-0`.
    profile: AtomicBool,
    /// In every list.
    lists: AtomicBool,
}

impl Buggy {
    fn balancers(&self) -> &dyn LoadBalancers {
        self.inner.load_balancers().unwrap()
    }

    fn list(&self) {
        assert!(!self.lists.load(Ordering::SeqCst), "planted in a list");
    }
}

impl CloudProvider for Buggy {
    fn name(&self) -> &'static str {
        "local"
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.inner.recognize(id)
    }
    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances()
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }
}

#[async_trait]
impl LoadBalancers for Buggy {
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let is_bad = balancer_ref.service.name == "svc-0";
        assert!(!is_bad || !self.profile.load(Ordering::SeqCst), "planted");
        self.balancers().profile(balancer_ref)
    }
    async fn plan(&self, desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        self.balancers().plan(desired).await
    }
    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        self.balancers().apply(desired).await
    }
    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.balancers().apply_to_existing(spec).await
    }
    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        self.list();
        self.balancers().observe_all(specs).await
    }
    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.list();
        self.balancers().owned().await
    }
}

/// A lab whose only cloud is buggy, with two Services.
async fn lab() -> (Lab, Arc<Buggy>) {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    let buggy = Arc::new(Buggy {
        inner: lab.provider_of(&lab.cloud).await,
        profile: AtomicBool::new(false),
        lists: AtomicBool::new(false),
    });
    lab.set_sites(vec![Site {
        name: "local",
        class: None,
        provider: Arc::<Buggy>::clone(&buggy),
    }]);
    lab.start();
    lab.pass(SECOND * 2).await;
    lab.serve(2).await;
    (lab, buggy)
}

fn panics(lab: &Lab) -> u64 {
    lab.controller().report().queue.panics
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_targets_cannot_be_compared_keeps_no_other_from_following_the_nodes() {
    let (mut lab, buggy) = lab().await;
    buggy.profile.store(true, Ordering::SeqCst);
    lab.add_node("late");
    lab.pass(SECOND * 30).await;
    assert_eq!(lab.targets("svc-1"), ["late", "node-000"]);
    assert_eq!(lab.targets("svc-0"), ["node-000"]);
    assert!(panics(&lab) > 0);
    buggy.profile.store(false, Ordering::SeqCst);
    lab.pass(MINUTE * 10).await;
    assert_eq!(lab.targets("svc-0"), ["late", "node-000"]);
}

#[tokio::test(start_paused = true)]
async fn drift_is_found_again_after_a_list_that_panicked() {
    let (lab, buggy) = lab().await;
    buggy.lists.store(true, Ordering::SeqCst);
    let drifted = lab.balancer("svc-0").unwrap();
    lab.cloud.drop_listener(drifted.id, 80).unwrap();
    lab.pass(MINUTE * 60).await;
    assert!(lab.balancer("svc-0").unwrap().listeners.is_empty());
    assert!(panics(&lab) > 0);
    buggy.lists.store(false, Ordering::SeqCst);
    lab.pass(MINUTE * 60).await;
    assert_eq!(lab.balancer("svc-0").unwrap().listeners.len(), 1);
}
