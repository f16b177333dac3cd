use std::collections::BTreeSet;

use cloudkeel_api::{
    BuildError, Capability, CloudError, ConfigSource, Descriptor, Doubt, ErrorKind, Existence,
    NodeFacts, Problem, Problems, ProvidedController, ProviderFactory, Recognition, SystemClock,
};
use jiff::Timestamp;
use tokio::time::Instant;

use super::*;
use crate::config::{BalancerScope, NodeScope, TargetScope};
use crate::flags::{FlagTable, parse};
use crate::metrics::BuildInfo;
use crate::testing::{ApiServer, failure};

const KUBE_SYSTEM: &str = r#"{"kind": "Namespace", "apiVersion": "v1",
    "metadata": {"name": "kube-system", "uid": "u-1"}}"#;

#[tokio::test(start_paused = true)]
async fn a_busy_api_server_does_not_cost_the_clusters_mark() {
    let (busy, forbidden, missing) = (failure(503), failure(403), failure(404));
    let unknown = failure(401);
    for (case, answers, uid, seconds) in [
        ("at once", vec![Some((200, KUBE_SYSTEM))], Some("u-1"), 0),
        (
            "busy at first",
            vec![Some((503, &*busy)), Some((200, KUBE_SYSTEM))],
            Some("u-1"),
            1,
        ),
        (
            "mute at first",
            vec![None, Some((200, KUBE_SYSTEM))],
            Some("u-1"),
            11,
        ),
        (
            "unknown at first",
            vec![Some((401, &*unknown)), Some((200, KUBE_SYSTEM))],
            Some("u-1"),
            1,
        ),
        ("forbidden", vec![Some((403, &*forbidden))], None, 0),
        ("not there", vec![Some((404, &*missing))], None, 0),
    ] {
        let client = ApiServer::answering(&answers).client();
        let began = Instant::now();
        assert_eq!(cluster_uid(&client).await.ok().as_deref(), uid, "{case}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_was_refused_at_the_start_is_learnt_later() {
    let forbidden = failure(403);
    let answers = [
        Some((403, &*forbidden)),
        Some((403, &*forbidden)),
        Some((200, KUBE_SYSTEM)),
    ];
    let registry = Registry::new();
    let line = parse(&FlagTable::new(&[]), Vec::<String>::new()).unwrap();
    let options = Options::read(&line, &[]).unwrap();
    let metrics = Metrics::new(&BuildInfo::default(), Timestamp::UNIX_EPOCH);
    let (events, _reports) = EventRecorder::channel();
    let parts = CloudParts {
        options: &options,
        client: ApiServer::answering(&answers).client(),
        metrics: &metrics,
        events: &events,
        clock: Arc::new(SystemClock),
        recorder: None,
        env: BTreeMap::new(),
    };
    let builder = CloudBuilder::new(&registry, parts).await;
    assert_eq!(builder.cluster().uid, None);
    assert_eq!(builder.cluster_uid(), None);
    builder.retry_cluster_uid().await;
    assert_eq!(builder.cluster().uid.as_deref(), Some("u-1"));
    assert_eq!(
        builder.cluster_uid(),
        Some("u-1"),
        "clouds are built anew for it"
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_waited_for() {
    let busy = failure(503);
    for answer in [None, Some((503, &*busy))] {
        let client = ApiServer::answering(&[answer]).client();
        let waiting = tokio::time::timeout(Duration::from_hours(1), cluster_uid(&client));
        assert!(waiting.await.is_err(), "{answer:?}");
    }
}

/// A kind of cloud that does what its settings say.
struct Moody;

#[async_trait::async_trait]
impl ProviderFactory for Moody {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: "moody",
            summary: "A cloud that does what its settings say.",
            replaces: &[],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Routes,
            ],
            keys: vec![],
        }
    }

    fn controllers(&self) -> &'static [ProvidedController] {
        &[ProvidedController {
            name: "moody-controller",
            on_by_default: true,
            watches_services: true,
        }]
    }

    async fn build(
        &self,
        input: ProviderInput,
        _: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let ConfigSource::Own(mood) = &input.config else {
            let missing: Problems = Problem::new("config", "is missing").into();
            return Err(missing.into());
        };
        let failed = |kind| BuildError::from(CloudError::new("login", kind, "no"));
        match mood.as_str() {
            Some("down") => Err(failed(ErrorKind::Unavailable)),
            Some("rejects") => Err(failed(ErrorKind::Unauthenticated)),
            Some("not found") => Err(failed(ErrorKind::NotFound)),
            Some("mute") => std::future::pending().await,
            Some("panics") => panic!("a bug"),
            _ => Ok(Arc::new(Works)),
        }
    }
}

struct Works;

impl CloudProvider for Works {
    fn name(&self) -> &'static str {
        "moody"
    }
}

fn entry(mood: &str) -> CloudEntry {
    CloudEntry {
        name: mood.to_owned(),
        provider: "moody".to_owned(),
        nodes: NodeScope::default(),
        load_balancers: BalancerScope {
            default: false,
            classes: BTreeSet::new(),
            targets: TargetScope::default(),
        },
        config: ConfigSource::Own(serde_json::json!(mood)),
    }
}

async fn build(entries: Vec<CloudEntry>) -> Result<Vec<Reloadable>, RunError> {
    let registry = Registry::new().with(Moody).unwrap();
    let line = parse(&FlagTable::new(&[]), Vec::<String>::new()).unwrap();
    let options = Options::read(&line, &[]).unwrap();
    let metrics = Metrics::new(&BuildInfo::default(), Timestamp::UNIX_EPOCH);
    let (events, _reports) = EventRecorder::channel();
    let parts = CloudParts {
        options: &options,
        client: ApiServer::answering(&[Some((200, KUBE_SYSTEM))]).client(),
        metrics: &metrics,
        events: &events,
        clock: Arc::new(SystemClock),
        env: BTreeMap::new(),
        recorder: None,
    };
    let builder = CloudBuilder::new(&registry, parts).await;
    let setup = Setup {
        clouds: entries,
        file: None,
    };
    builder.build_all(&setup).await
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_cannot_be_built_stops_none_of_the_others() {
    let moods = ["works", "down", "rejects", "not found", "mute", "panics"];
    let began = Instant::now();
    let clouds = build(moods.map(entry).into()).await.unwrap();
    assert_eq!(
        began.elapsed(),
        FIRST_BUILD_TIMEOUT,
        "clouds are built side by side"
    );
    let mut kinds = Vec::new();
    for it in &clouds {
        let unavailable = it.cloud.availability.unavailable();
        kinds.push(unavailable.map(|it| it.error().kind()));
        if it.cloud.name == "works" {
            continue;
        }
        let provider = it.cloud.provider();
        let node = NodeFacts {
            provider_id: Some("moody://1".parse().unwrap()),
            ..NodeFacts::default()
        };
        assert_eq!(provider.recognize_node(&node), Some(Recognition::Ours));
        let found = provider.instances().unwrap().find(&node, None).await;
        assert!(
            matches!(found, Existence::Unknown(Doubt::NoAnswer(_))),
            "nothing is ever gone: {found:?}"
        );
        let owned = provider.load_balancers().unwrap().owned().await;
        assert!(!owned.unwrap_err().is_not_found(), "{}", it.cloud.name);
        assert!(provider.routes().unwrap().list(&[]).await.is_err());
        assert_eq!(provider.background_controllers().len(), 1);
    }
    let expected = [
        None,
        Some(ErrorKind::Unavailable),
        Some(ErrorKind::Unauthenticated),
        // What was not found while it was built says nothing about Nodes and balancers.
        Some(ErrorKind::Unavailable),
        Some(ErrorKind::Unavailable),
        Some(ErrorKind::Unavailable),
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test(start_paused = true)]
async fn settings_that_are_wrong_end_the_start_and_name_every_cloud() {
    let without = |name: &str| CloudEntry {
        config: ConfigSource::None,
        ..entry(name)
    };
    let built = build(vec![
        entry("works"),
        without("a"),
        entry("down"),
        without("b"),
    ])
    .await;
    let error = built.err().unwrap().to_string();
    for cloud in ["cloud a: ", "cloud b: ", "config"] {
        assert!(error.contains(cloud), "{error}");
    }
    assert!(!error.contains("down"), "{error}");
}
