use tokio::time::Instant;

use super::*;
use crate::testing::{ApiServer, failure};

const KUBE_SYSTEM: &str = r#"{"kind": "Namespace", "apiVersion": "v1",
    "metadata": {"name": "kube-system", "uid": "u-1"}}"#;

#[tokio::test(start_paused = true)]
async fn a_busy_api_server_does_not_cost_the_clusters_mark() {
    let (busy, forbidden, missing) = (failure(503), failure(403), failure(404));
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
        ("forbidden", vec![Some((403, &*forbidden))], None, 0),
        ("not there", vec![Some((404, &*missing))], None, 0),
    ] {
        let client = ApiServer::answering(&answers).client();
        let began = Instant::now();
        assert_eq!(cluster_uid(&client).await.as_deref(), uid, "{case}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{case}");
    }
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
