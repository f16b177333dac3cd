//! What a cloud refuses of a balancer that is there, or does without effect, or keeps on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, CloudProvider, DesiredState, ErrorKind, Failures,
    Features, Ingress, IpMode, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, Observation,
    Outcome, OwnedResource, Plan, PlannedStep, ServiceChanges, StepAction,
};
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, Site};

#[tokio::test(start_paused = true)]
async fn a_balancer_follows_its_nodes_while_something_else_of_it_is_refused() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let refusal = Fault::status(422);
    lab.cloud
        .faults()
        .always(Operation::ChangeBalancer, refusal);
    let named = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-name": "taken"}}});
    lab.api.world().change_service("svc-0", &named);
    lab.pass(SECOND * 5).await;
    let events = lab.events("svc-0", "SyncLoadBalancerFailed");
    assert!(events[0].contains("HTTP 422"), "{events:?}");

    lab.add_node("late");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0"), ["late", "node-000"]);
    lab.api.world().remove("node-000");
    lab.pass(MINUTE).await;
    assert_eq!(lab.targets("svc-0"), ["late"], "also one that leaves");

    lab.cloud.faults().clear();
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.balancer("svc-0").unwrap().name, "taken");
}

#[tokio::test(start_paused = true)]
async fn ports_of_a_service_are_followed_too() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let refusal = Fault::status(422);
    lab.cloud
        .faults()
        .always(Operation::ChangeBalancer, refusal);
    let both = json!({
        "metadata": {"annotations": {"cloudkeel.dev/lb-type": "no-such"}},
        "spec": {"ports": [{"name": "other", "port": 81, "nodePort": 30_081, "protocol": "TCP"}]},
    });
    lab.api.world().change_service("svc-0", &both);
    lab.pass(SECOND * 5).await;
    let ports: Vec<_> = lab.balancer("svc-0").unwrap().listeners;
    assert_eq!(ports.iter().map(|l| l.port).collect::<Vec<_>>(), [81]);
}

/// A cloud whose balancers are there, but for what it says.
struct Stubborn {
    present: fn() -> Outcome,
    absent: fn() -> Outcome,
    applied: AtomicUsize,
}

fn status() -> LoadBalancerStatus {
    let ingress = vec![Ingress::Ip {
        ip: [192, 0, 2, 1].into(),
        mode: IpMode::Vip,
    }];
    LoadBalancerStatus::of("7", ingress)
}

fn settled() -> Outcome {
    Outcome::Settled {
        status: status(),
        changes: ServiceChanges::default(),
        done: Plan::default(),
    }
}

fn without_effect() -> Outcome {
    let step = PlannedStep {
        text: "update service on port 80".to_owned(),
        action: StepAction::Change,
        destructive: false,
        ineffective: true,
    };
    Outcome::Settled {
        status: status(),
        changes: ServiceChanges::default(),
        done: Plan { steps: vec![step] },
    }
}

fn incomplete() -> Outcome {
    Outcome::Incomplete {
        status: status(),
        changes: ServiceChanges::default(),
        done: Plan::default(),
        failures: Failures {
            kind: ErrorKind::Invalid,
            message: "the project has no certificate \"x\"".to_owned(),
            details: None,
        },
    }
}

fn without_a_machine() -> Outcome {
    Outcome::Incomplete {
        status: status(),
        changes: ServiceChanges::default(),
        done: Plan::default(),
        failures: Failures {
            kind: ErrorKind::NotFound,
            message: "add target: there is no server 10".to_owned(),
            details: Some("1 attempt".to_owned()),
        },
    }
}

fn gone() -> Outcome {
    Outcome::Gone {
        done: Plan::default(),
        kept: Vec::new(),
        acknowledged: false,
    }
}

fn kept() -> Outcome {
    Outcome::Gone {
        done: Plan::default(),
        kept: vec!["load balancer 7 is protected from deletion".to_owned()],
        acknowledged: false,
    }
}

impl CloudProvider for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }
}

#[async_trait]
impl LoadBalancers for Stubborn {
    fn profile(&self, _claim: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
    async fn plan(&self, _desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        Ok(Plan::default())
    }
    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        self.applied.fetch_add(1, Ordering::Relaxed);
        Ok(match desired {
            DesiredState::Present(_) => (self.present)(),
            DesiredState::Absent(_) | DesiredState::Released(_) => (self.absent)(),
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

async fn with(present: fn() -> Outcome, absent: fn() -> Outcome) -> Lab {
    let mut lab = Lab::idle(0, Settings::default(), ServiceSettings::default()).await;
    let provider = Arc::new(Stubborn {
        present,
        absent,
        applied: AtomicUsize::new(0),
    });
    lab.set_sites(vec![Site {
        name: "stubborn",
        class: None,
        provider,
    }]);
    lab.start();
    lab.api.world().create_service("web", &json!({}));
    lab.pass(SECOND * 5).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn a_new_balancer_of_which_something_is_refused_is_published() {
    let lab = with(incomplete, gone).await;
    assert_eq!(lab.address("web").as_deref(), Some("192.0.2.1"));
    let events = lab.events("web", "SyncLoadBalancerFailed");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("no certificate \"x\""), "{events:?}");
    assert_eq!(lab.events("web", "EnsuredLoadBalancer"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_target_without_a_machine_is_reported_only_if_that_lasts() {
    let lab = with(without_a_machine, gone).await;
    assert_eq!(lab.address("web").as_deref(), Some("192.0.2.1"));
    lab.pass(MINUTE * 2).await;
    let warnings = |lab: &Lab| lab.events("web", "SyncLoadBalancerFailed");
    assert_eq!(warnings(&lab), [""; 0], "as when a machine is replaced");
    lab.pass(MINUTE * 10).await;
    let events = warnings(&lab);
    assert!(!events.is_empty());
    assert!(events[0].ends_with("there is no server 10"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_destroyed_raises_no_warning_before_it_is_gone() {
    for (case, stays, warns) in [
        ("it is replaced", MINUTE * 2, false),
        ("its Node stays", MINUTE * 20, true),
    ] {
        let lab = Lab::with_nodes(3).await;
        lab.cloud.destroy(lab.machines[0].id).unwrap();
        let of = |algorithm: &str| json!({"metadata": {"annotations": {"cloudkeel.dev/lb-algorithm": algorithm}}});
        lab.api.world().create_service("web", &of("source-ip"));
        lab.pass(stays).await;
        lab.api.world().change_service("web", &of("round-robin"));
        lab.pass(SECOND * 10).await;
        lab.api.world().remove("node-000");
        lab.pass(MINUTE).await;
        assert_eq!(lab.targets("web"), ["node-001", "node-002"], "{case}");
        let events = lab.provider_events.take();
        assert_eq!(!events.is_empty(), warns, "{case}: {events:?}");
        let failed = lab.events("web", "SyncLoadBalancerFailed");
        assert_eq!(failed, [""; 0], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_option_without_effect_is_settled_and_reported() {
    let lab = with(without_effect, gone).await;
    assert_eq!(lab.events("web", "EnsuredLoadBalancer").len(), 1);
    let events = lab.events("web", "IneffectiveLoadBalancerOption");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].ends_with("update service on port 80"),
        "{events:?}"
    );
    assert_eq!(lab.events("web", "SyncLoadBalancerFailed"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_balancer_stays_on_purpose_goes_at_once() {
    let lab = with(settled, kept).await;
    lab.api.world().delete_service("web");
    lab.pass(SECOND * 5).await;
    assert!(lab.api.world().services().is_empty(), "it does not wait");
    for reason in ["PendingLoadBalancer", "DeletedLoadBalancer"] {
        assert_eq!(
            lab.events("web", reason),
            [""; 0],
            "{reason}: it is not gone"
        );
    }
    assert_eq!(lab.remembered(), 0);
}
