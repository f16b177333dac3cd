//! What a server says about a past that it has forgotten.

use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree_on, cases, embedded};

/// How long a busy API server may take to forget the past, which its flag says it does every second.
const DEADLINE: Duration = Duration::from_mins(2);

#[tokio::test]
async fn a_forgotten_past_agrees() {
    let real = ControlPlane::start_with(&["--etcd-compaction-interval=1s"]).await;
    agree_on(
        &real.expect("a control plane"),
        &embedded().history(12).build(),
        "expiry",
        cases![a_page_goes_on_from_a_token_that_has_expired],
    )
    .await;
}

/// Writes something else until the server no longer has what this path asks for; returns its answer.
async fn forgotten(b: &Bench, path: &str) -> Value {
    eventually(&format!("the end of {path}"), DEADLINE, || async {
        let other = json!({"metadata": {"generateName": "other-"}});
        b.unnoted_post(&b.here("configmaps"), other).await;
        let answer = b.unnoted_get(path).await;
        (answer["code"] == 410).then_some(answer)
    })
    .await
}

fn token(answer: &Value) -> &str {
    answer["metadata"]["continue"].as_str().expect("a token")
}

async fn a_page_goes_on_from_a_token_that_has_expired(b: &Bench) {
    for name in ["a", "b", "c", "d", "e"] {
        b.post(&b.here("secrets"), json!({"metadata": {"name": name}}))
            .await;
    }
    let first = b.get(&b.here("secrets?limit=2")).await;
    let next = |answer: &Value| b.here(&format!("secrets?limit=2&continue={}", token(answer)));
    let expired = forgotten(b, &next(&first)).await;
    b.note("an expired token".to_owned(), expired.clone());
    b.delete(&b.here("secrets/c"), json!({})).await;
    b.post(&b.here("secrets"), json!({"metadata": {"name": "ca"}}))
        .await;
    let second = b.unnoted_get(&next(&expired)).await;
    b.note("the page as it is now".to_owned(), second.clone());
    let third = b.unnoted_get(&next(&second)).await;
    b.note("the last page".to_owned(), third);
}
