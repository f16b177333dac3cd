//! The provider as a whole: built by the registry, its scope, its budget, its smaller capabilities.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudkeel_api::{
    BudgetRecord, CallObserver, CallRecord, Capability, CloudProvider, CollectedEvents,
    ConfigSource, DesiredState, ErrorKind, Priority, ProviderContext, ProviderInput, Recognition,
    Registry, VolumeRef,
};
use cloudkeel_provider_local::wire::{Cluster, Volume};
use cloudkeel_provider_local::{Config, LocalFactory, LocalProvider};
use cloudkeel_testkit::simulated_cloud::{
    Fault, InProcess, Operation, Permission, RateLimit, Settings, SimulatedCloud,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Lab, SECOND, balancer_ref, context};

async fn build(cloud: &SimulatedCloud, config: Value) -> Result<Arc<dyn CloudProvider>, String> {
    let factory = LocalFactory::wired(cloud.wiring());
    let registry = Registry::new().with(factory).unwrap();
    let input = ProviderInput {
        config: ConfigSource::Own(config),
        ..ProviderInput::default()
    };
    let context = context(&Arc::new(CollectedEvents::default()));
    let built = registry.build("local", input, context).await;
    built.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn the_registry_builds_it_from_a_configuration() {
    let cloud = SimulatedCloud::new(Settings::default());
    let config = json!({"endpoint": InProcess::URL, "token": SimulatedCloud::TOKEN});
    let provider = build(&cloud, config).await.unwrap();
    assert_eq!(provider.name(), "local");
    assert!(provider.has_cluster_id());
    assert_eq!(
        provider.capabilities(),
        [
            Capability::Instances,
            Capability::LoadBalancers,
            Capability::Routes,
            Capability::Clusters,
            Capability::Volumes,
        ]
    );
    let scope = provider.check().await.unwrap();
    assert_eq!(scope.as_str(), format!("demo at {}", InProcess::URL));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_or_project_is_reported_when_it_is_built() {
    let cloud = SimulatedCloud::new(Settings::default());
    for (case, token, project, why) in [
        (
            "unknown token",
            "x",
            "demo",
            "the token is missing or unknown",
        ),
        (
            "another project",
            SimulatedCloud::TOKEN,
            "prod",
            "belongs to project \"demo\"",
        ),
    ] {
        let config = json!({"endpoint": InProcess::URL, "token": token, "project": project});
        let error = build(&cloud, config).await.err().unwrap();
        assert!(error.contains(why), "{case}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn ids_are_ours_by_project() {
    let lab = Lab::with(0).await;
    for (id, expected) in [
        ("local://demo/7", "ours"),
        ("local://other/7", "other account"),
        ("local://demo/x", "malformed"),
        ("hcloud://7", "foreign"),
    ] {
        let found = match lab.provider.recognize(&id.parse().unwrap()) {
            Recognition::Ours => "ours",
            Recognition::OtherAccount { .. } => "other account",
            Recognition::Malformed { .. } => "malformed",
            Recognition::Foreign => "foreign",
        };
        assert_eq!(found, expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_shows_what_the_credential_sees_now() {
    let lab = Lab::with(0).await;
    let before = lab.provider.check().await.unwrap();
    assert_eq!(lab.provider.check().await.unwrap(), before);
    lab.cloud.add_project("other");
    lab.cloud
        .grant(SimulatedCloud::TOKEN, "other", Permission::ReadWrite);
    assert_ne!(lab.provider.check().await.unwrap(), before);
    lab.cloud.revoke(SimulatedCloud::TOKEN);
    let error = lab.provider.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    lab.cloud
        .grant(SimulatedCloud::TOKEN, "demo", Permission::Nothing);
    let error = lab.provider.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test(start_paused = true)]
async fn the_clouds_wait_is_honoured() {
    let lab = Lab::with(1).await;
    lab.cloud
        .faults()
        .once(Operation::ListMachines, Fault::too_many_calls(Some(7)));
    let before = Instant::now();
    lab.instances().list().await.unwrap();
    let waited = before.elapsed();
    assert!(waited >= SECOND * 7 && waited < SECOND * 8, "{waited:?}");
    let log = lab.cloud.call_log();
    assert_eq!(log.len(), 2);
    assert!(log[1].at >= log[0].at + SECOND * 7);
}

#[tokio::test(start_paused = true)]
async fn a_small_budget_is_kept_without_a_single_refusal() {
    let settings = Settings {
        page_size: 10,
        rate_limit: Some(RateLimit {
            burst: 20,
            refill: SECOND,
        }),
        ..Settings::default()
    };
    let lab = Lab::set_up(300, settings).await;
    let list = lab.instances().list().await.unwrap();
    assert_eq!(list.instances().len(), 300);
    let refused = lab.cloud.call_log().into_iter().filter(|call| {
        call.outcome == cloudkeel_testkit::simulated_cloud::CallOutcome::Status(429)
    });
    assert_eq!(refused.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_says_nothing_is_given_up_after_the_timeout() {
    let cloud = SimulatedCloud::new(Settings::default());
    let config = Config {
        timeout: SECOND * 3,
        ..Config::new(InProcess::URL, SimulatedCloud::TOKEN)
    };
    let context = context(&Arc::new(CollectedEvents::default()));
    let provider = LocalProvider::connect(&config, &context, cloud.wiring())
        .await
        .unwrap();
    cloud.faults().always(Operation::ReadScope, Fault::NoAnswer);
    let before = Instant::now();
    let error = provider.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(
        before.elapsed() <= Duration::from_secs(12),
        "{:?}",
        before.elapsed()
    );
}

/// Notes which call was how urgent.
#[derive(Default)]
struct Urgencies(Mutex<BTreeSet<(String, Priority)>>);

impl CallObserver for Urgencies {
    fn call_finished(&self, call: &CallRecord<'_>) {
        let mut seen = self.0.lock().unwrap();
        seen.insert((call.operation.to_owned(), call.priority));
    }
    fn call_delayed(&self, _operation: &str, _delay: Duration) {}
    fn budget_seen(&self, _budget: BudgetRecord) {}
}

#[tokio::test(start_paused = true)]
async fn lists_can_wait_while_look_ups_and_new_balancers_cannot() {
    let lab = Lab::with(2).await;
    let observer = Arc::new(Urgencies::default());
    let context = ProviderContext {
        observer: Arc::<Urgencies>::clone(&observer),
        ..context(&lab.events)
    };
    let provider = lab.cloud.provider(&context).await.unwrap();
    let instances = provider.instances().unwrap();
    let balancers = provider.load_balancers().unwrap();
    let spec = lab.spec(&[80]);
    let seen = || std::mem::take(&mut *observer.0.lock().unwrap());
    let call = |operation: &str, priority| (operation.to_owned(), priority);
    seen();

    instances.list().await.unwrap();
    assert_eq!(
        seen(),
        BTreeSet::from([call("GET /v1/machines", Priority::Background)])
    );
    instances.find(&lab.node(0), None).await;
    assert_eq!(
        seen(),
        BTreeSet::from([call("GET /v1/machines/{id}", Priority::Urgent)])
    );
    let both = [lab.node(0).into(), lab.node(1).into()];
    instances.find_many(&both, None).await;
    assert_eq!(
        seen(),
        BTreeSet::from([call("GET /v1/machines", Priority::Urgent)])
    );
    balancers.apply(DesiredState::Present(&spec)).await.unwrap();
    assert!(seen().contains(&call("POST /v1/balancers", Priority::Urgent)));
    balancers.observe_all(&[spec]).await;
    assert_eq!(
        seen(),
        BTreeSet::from([call("GET /v1/balancers", Priority::Background)])
    );
}

#[tokio::test(start_paused = true)]
async fn disks_have_a_place() {
    let lab = Lab::with(0).await;
    let zones = vec!["sim-1-a".to_owned(), "sim-1-b".to_owned()];
    let volume = Volume {
        id: "vol-1".into(),
        zones: zones.clone(),
        region: "sim-1".into(),
    };
    lab.cloud.add_volume(volume).unwrap();
    let volumes = lab.provider.volumes().unwrap();
    let source = json!({"driver": "local.cloudkeel.dev", "volumeHandle": "vol-1"});
    let disk = volumes.recognize("pv-1", "csi", &source).unwrap();
    let place = volumes.place(&disk).await.unwrap();
    assert_eq!(
        (place.zones, place.region.as_deref()),
        (zones, Some("sim-1"))
    );
    let missing = VolumeRef {
        disk: "vol-2".into(),
        ..disk
    };
    let error = volumes.place(&missing).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn managed_clusters_are_listed() {
    let lab = Lab::with(0).await;
    lab.cloud
        .add_cluster(Cluster {
            name: "prod".into(),
            control_plane: "https://10.0.0.1:6443".into(),
        })
        .unwrap();
    let clusters = lab.provider.clusters().unwrap();
    assert_eq!(clusters.list().await.unwrap(), ["prod"]);
    let address = clusters.control_plane("prod").await.unwrap();
    assert_eq!(address, "https://10.0.0.1:6443");
    assert!(
        clusters
            .control_plane("dev")
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_balancers_can_do_is_what_the_cloud_says() {
    let mut settings = Settings::default();
    settings.features.drain = false;
    settings.features.udp = false;
    let lab = Lab::set_up(0, settings).await;
    let features = lab.balancers().profile(&balancer_ref("u")).features;
    assert!(!features.drain && !features.udp);
    assert!(features.targets_by_address && features.source_ranges);
}
