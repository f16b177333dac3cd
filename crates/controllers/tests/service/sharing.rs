//! Who goes first, who waits for whom, and what others do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, CloudProvider, DesiredState, ErrorKind, Features,
    Ingress, IpMode, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, LockKey, Observation,
    Outcome, OwnedResource, Plan, ServiceChanges,
};
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::Settings;
use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND, Site};

const SHARE: &str = "example.com/share";
const ELSEWHERE: &str = "example.com/elsewhere";

/// A cloud whose every change takes ten seconds, and on whose balancers Services may meet.
#[derive(Default)]
struct Slow {
    under_way: Mutex<BTreeMap<String, usize>>,
    most_at_once: Mutex<BTreeMap<String, usize>>,
    order: Mutex<Vec<String>>,
}

impl CloudProvider for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }
}

/// What must not be worked on twice at once.
fn place_of(balancer_ref: &BalancerRef) -> LockKey {
    match balancer_ref.annotations.get(SHARE) {
        Some(shared) => LockKey::new(shared.clone()),
        None => LockKey::of_service(balancer_ref),
    }
}

#[async_trait]
impl LoadBalancers for Slow {
    fn profile(&self, _claim: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }

    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        [place_of(balancer_ref)].into()
    }

    async fn plan(&self, _desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        Ok(Plan::default())
    }

    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        let balancer_ref = desired.balancer_ref();
        if balancer_ref.annotations.contains_key(ELSEWHERE) {
            let kind = ErrorKind::ImplementedElsewhere;
            return Err(CloudError::new("apply", kind, "not my job"));
        }
        let place = place_of(balancer_ref).to_string();
        {
            let mut under_way = self.under_way.lock().unwrap();
            let now = under_way.entry(place.clone()).or_default();
            *now += 1;
            let mut most = self.most_at_once.lock().unwrap();
            let most = most.entry(place.clone()).or_default();
            *most = (*most).max(*now);
        }
        let name = balancer_ref.service.name.clone();
        self.order.lock().unwrap().push(name);
        tokio::time::sleep(SECOND * 10).await;
        *self.under_way.lock().unwrap().get_mut(&place).unwrap() -= 1;
        Ok(match desired {
            DesiredState::Absent(_) | DesiredState::Released(_) => Outcome::Gone {
                done: Plan::default(),
                kept: Vec::new(),
                acknowledged: false,
            },
            DesiredState::Present(_) => Outcome::Settled {
                status: status(),
                changes: ServiceChanges::default(),
                done: Plan::default(),
            },
        })
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        let in_order = || {
            let mut seen = Observation::default();
            seen.report.status = status();
            Ok(seen)
        };
        specs.iter().map(|_| in_order()).collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        Ok(Vec::new())
    }
}

fn status() -> LoadBalancerStatus {
    LoadBalancerStatus {
        exists: true,
        id: None,
        ingress: vec![Ingress::Ip {
            ip: "192.0.2.1".parse().unwrap(),
            mode: IpMode::Vip,
        }],
        draining: 0,
        health: Vec::new(),
    }
}

async fn slow_lab(workers: usize) -> (Lab, Arc<Slow>) {
    let settings = ServiceSettings {
        workers,
        ..ServiceSettings::default()
    };
    let mut lab = Lab::idle(0, Settings::default(), settings).await;
    let slow = Arc::new(Slow::default());
    lab.set_sites(vec![Site {
        name: "slow",
        class: None,
        provider: Arc::<Slow>::clone(&slow),
    }]);
    lab.start();
    lab.pass(SECOND).await;
    (lab, slow)
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

#[tokio::test(start_paused = true)]
async fn services_that_share_a_balancer_lock_it_and_hold_no_worker_meanwhile() {
    let (lab, slow) = slow_lab(2).await;
    for index in 0..4 {
        let name = format!("shared-{index}");
        lab.api
            .world()
            .create_service(&name, &annotated(SHARE, "lb-1"));
    }
    for index in 0..3 {
        lab.api
            .world()
            .create_service(&format!("own-{index}"), &json!({}));
    }
    // Two workers and ten seconds each: those that wait for the lock keep no other waiting.
    lab.pass(SECOND * 21).await;
    for index in 0..3 {
        let name = format!("own-{index}");
        assert!(lab.address(&name).is_some(), "{name}");
    }
    lab.pass(SECOND * 30).await;
    for index in 0..4 {
        let name = format!("shared-{index}");
        assert!(lab.address(&name).is_some(), "{name}");
    }
    let most = slow.most_at_once.lock().unwrap().clone();
    assert!(most.values().all(|most| *most == 1), "{most:?}");
}

#[tokio::test(start_paused = true)]
async fn new_services_and_changes_go_ahead_of_refreshes() {
    let (lab, slow) = slow_lab(1).await;
    for index in 0..3 {
        lab.api
            .world()
            .create_service(&format!("old-{index}"), &json!({}));
    }
    lab.pass(MINUTE).await;
    slow.order.lock().unwrap().clear();
    // All of them have other targets now, and one of them is being worked on.
    lab.add_node_of("slow", "node");
    lab.pass(SECOND * 5).await;
    lab.api.world().create_service("new", &json!({}));
    let change = annotated("example.com/changed", "yes");
    lab.api.world().change_service("old-2", &change);
    lab.pass(MINUTE * 2).await;
    let order = slow.order.lock().unwrap().clone();
    assert_eq!(order, ["old-0", "new", "old-2", "old-1"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_elsewhere_is_left_to_it() {
    let (lab, slow) = slow_lab(1).await;
    lab.api
        .world()
        .create_service("web", &annotated(ELSEWHERE, "yes"));
    lab.pass(MINUTE * 10).await;
    assert!(lab.has_finalizer("web"));
    assert_eq!(lab.address("web"), None);
    assert_eq!(lab.patched("web").len(), 1, "the finalizer");
    for reason in ["SyncLoadBalancerFailed", "EnsuredLoadBalancer"] {
        assert_eq!(lab.events("web", reason), [""; 0]);
    }
    lab.api.world().delete_service("web");
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.api.world().service("web"), None);
    assert_eq!(*slow.order.lock().unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_work_that_is_under_way() {
    let (lab, slow) = slow_lab(5).await;
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 5).await;
    lab.api.world().delete_service("web");
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.api.world().service("web"), None);
    let most = slow.most_at_once.lock().unwrap().clone();
    assert!(most.values().all(|most| *most == 1), "{most:?}");
}
