use std::sync::atomic::{AtomicUsize, Ordering};

use cloudkeel_api::{
    ClusterIdentity, Driven, Executed, Ingress, LoadBalancerDriver, LoadBalancerStatus, Report,
    RouteTarget, ServiceRef, Step, StepAction,
};

use super::*;

/// A cloud that counts what it is asked to change. Its balancer has these parts; it is asked for one with `wanted`.
#[derive(Debug, Default)]
struct Toy {
    exists: bool,
    steps: Vec<&'static str>,
    changes: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, PartialEq)]
struct ToyStep(&'static str);

impl std::fmt::Display for ToyStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Step for ToyStep {
    fn action(&self) -> StepAction {
        StepAction::Create
    }
}

#[async_trait]
impl LoadBalancerDriver for Toy {
    type Observed = Vec<&'static str>;
    type Step = ToyStep;

    async fn observe(&self, _desired: DesiredState<'_>) -> Result<Self::Observed, CloudError> {
        Ok(self.steps.clone())
    }

    fn plan(
        &self,
        _desired: DesiredState<'_>,
        have: &Self::Observed,
    ) -> Result<Vec<ToyStep>, CloudError> {
        Ok(have.iter().map(|step| ToyStep(step)).collect())
    }

    async fn execute(
        &self,
        _desired: DesiredState<'_>,
        _have: &Self::Observed,
        _step: &ToyStep,
    ) -> Executed<Self::Observed> {
        self.changes.fetch_add(1, Ordering::Relaxed);
        Err(CloudError::unsupported(
            "execute",
            "a dry run executes nothing",
        ))
    }

    fn report(&self, _desired: DesiredState<'_>, _have: &Self::Observed) -> Report {
        let ip = "192.0.2.1".parse().unwrap();
        let mode = cloudkeel_api::IpMode::Vip;
        let status = LoadBalancerStatus::of("1", vec![Ingress::Ip { ip, mode }]);
        Report {
            status: if self.exists {
                status
            } else {
                LoadBalancerStatus::default()
            },
            ..Report::default()
        }
    }

    fn profile(&self, _balancer_ref: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
}

struct ToyCloud {
    balancers: Driven<Toy>,
    changes: Arc<AtomicUsize>,
}

impl CloudProvider for ToyCloud {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

#[async_trait]
impl Routes for ToyCloud {
    async fn list(&self, _nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        Ok(Vec::new())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        self.changes.fetch_add(changes.len(), Ordering::Relaxed);
        changes.iter().map(|_| Ok(())).collect()
    }
}

struct Setting {
    provider: DryRunProvider,
    recorder: Arc<Recorder>,
    changes: Arc<AtomicUsize>,
}

fn setting(exists: bool, steps: &[&'static str]) -> Setting {
    let changes = Arc::<AtomicUsize>::default();
    let toy = Toy {
        exists,
        steps: steps.to_vec(),
        changes: Arc::clone(&changes),
    };
    let cloud = ToyCloud {
        balancers: Driven::new(toy),
        changes: Arc::clone(&changes),
    };
    let recorder = Arc::<Recorder>::default();
    let provider = DryRunProvider::new("c".to_owned(), Arc::new(cloud), Arc::clone(&recorder));
    Setting {
        provider,
        recorder,
        changes,
    }
}

fn spec() -> LoadBalancerSpec {
    let service = ServiceRef {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u".into(),
    };
    let cluster = ClusterIdentity {
        name: "kubernetes".into(),
        uid: None,
        pod_cidrs: Vec::new(),
    };
    LoadBalancerSpec::plain(BalancerRef::of(cluster, service))
}

impl Setting {
    fn texts(&self) -> Vec<String> {
        let steps = self.recorder.report().steps.into_iter();
        steps.map(|step| step.text).collect()
    }
}

#[tokio::test]
async fn a_balancer_that_differs_is_planned_and_one_that_does_not_is_settled() {
    let spec = spec();
    let desired = DesiredState::Present(&spec);
    let differs = setting(true, &["add a target"]);
    let outcome = LoadBalancers::apply(&differs.provider, desired)
        .await
        .unwrap();
    let Outcome::Pending {
        why, status, done, ..
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (why.as_str(), status.is_some(), done.is_empty()),
        (PLANNED, true, true)
    );
    assert_eq!(differs.texts(), ["add a target"]);

    let settled = setting(true, &[]);
    let outcome = settled.provider.apply_to_existing(&spec).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(settled.texts(), [] as [&str; 0]);
    for setting in [differs, settled] {
        assert_eq!(setting.changes.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn a_balancer_that_is_missing_is_an_error_where_it_has_to_exist() {
    let spec = spec();
    let missing = setting(false, &["create it"]);
    let error = missing.provider.apply_to_existing(&spec).await.unwrap_err();
    assert!(error.is_not_found() && error.had_no_effect(), "{error}");
    assert_eq!(
        missing.texts(),
        [] as [&str; 0],
        "whether one is made is decided later"
    );
}

#[tokio::test]
async fn a_removal_is_recorded_as_if_it_had_been_done() {
    let spec = spec();
    let setting = setting(true, &["delete it"]);
    let desired = DesiredState::Absent(&spec.balancer_ref);
    let outcome = LoadBalancers::apply(&setting.provider, desired)
        .await
        .unwrap();
    assert!(
        matches!(&outcome, Outcome::Gone { acknowledged: true, done, .. } if done.len() == 1),
        "{outcome:?}"
    );
    assert_eq!(setting.texts(), ["delete it"]);
    assert_eq!(setting.changes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn changes_of_routes_are_recorded_until_the_next_list() {
    let setting = setting(true, &[]);
    let route = Route {
        name: String::new(),
        destination: "10.0.1.0/24".parse().unwrap(),
        target: RouteTarget::Elsewhere { hop: "h".into() },
        blackhole: false,
        follows_addresses: false,
    };
    let results = Routes::apply(&setting.provider, &[RouteChange::Create(route)]).await;
    let kinds: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().map_err(CloudError::kind))
        .collect();
    assert_eq!(
        kinds,
        [Err(ErrorKind::ImplementedElsewhere)],
        "it was not made, and that is no failure"
    );
    assert_eq!(setting.texts(), ["create route 10.0.1.0/24 to h"]);
    Routes::list(&setting.provider, &[]).await.unwrap();
    assert_eq!(setting.texts(), [] as [&str; 0]);
    assert_eq!(setting.changes.load(Ordering::Relaxed), 0);
}
