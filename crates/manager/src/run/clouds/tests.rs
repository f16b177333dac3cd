use cloudkeel_api::SystemClock;
use jiff::Timestamp;
use tokio::time::Instant;

use super::*;
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
