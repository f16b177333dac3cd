//! What a server says about a past that it has forgotten.

use std::time::Duration;

use cloudkeel_embedded::Identity;
use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{
    Comparison, STRANGER, agree_on, cases, embedded, normalised, wait_for_first_objects,
};

/// How long a busy API server may take to forget the past, which its flag says it does every second.
const DEADLINE: Duration = Duration::from_mins(2);

#[tokio::test]
async fn a_forgotten_past_agrees() {
    let real = ControlPlane::start_with(&["--etcd-compaction-interval=1s"]).await;
    agree_on(
        &real.expect("a control plane"),
        &embedded().history(12).build(),
        "a past that is forgotten",
        cases![
            a_page_goes_on_from_a_token_that_has_expired,
            a_selected_page_goes_on_from_a_token_that_has_expired,
            a_list_of_a_version_that_is_forgotten,
        ],
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

/// A token that is part of a selection stays so, whether it is expired or not.
async fn a_selected_page_goes_on_from_a_token_that_has_expired(b: &Bench) {
    for (name, x) in [("a", "1"), ("b", "2"), ("c", "1"), ("d", "1"), ("e", "1")] {
        let labels = json!({"x": x});
        let secret = json!({"metadata": {"name": name, "labels": labels}});
        b.post(&b.here("secrets"), secret).await;
    }
    let selected = "secrets?limit=2&labelSelector=x%3D1";
    let first = b.get(&b.here(selected)).await;
    let next = |answer: &Value| b.here(&format!("{selected}&continue={}", token(answer)));
    let expired = forgotten(b, &next(&first)).await;
    b.note("an expired token".to_owned(), expired.clone());
    let last = b.unnoted_get(&next(&expired)).await;
    b.note("the rest as it is now".to_owned(), last);
    let first_again = b.unnoted_get(&next(&first)).await;
    b.note("the first token again".to_owned(), first_again);
}

async fn a_list_of_a_version_that_is_forgotten(b: &Bench) {
    b.post(&b.here("secrets"), json!({"metadata": {"name": "a"}}))
        .await;
    let list = b.unnoted_get(&b.here("secrets")).await;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.expect("a version");
    let at = |how: &str| {
        b.here(&format!(
            "secrets?resourceVersion={version}&resourceVersionMatch={how}"
        ))
    };
    let expired = forgotten(b, &at("Exact")).await;
    b.note("as it was".to_owned(), expired);
    let page = b.unnoted_get(&format!("{}&limit=1", at("Exact"))).await;
    b.note("a page of it".to_owned(), page);
    let current = b.unnoted_get(&at("NotOlderThan")).await;
    b.note("as it is".to_owned(), current);
}

/// An API server that was restarted has only what happened since: a watch from before gets a 410, and goes on from a new
/// list. etcd still has the past, so pages go on.
#[tokio::test]
async fn a_watch_from_before_a_restart_agrees() {
    const CASE: &str = "a-watch-from-before-a-restart";
    let mut real = ControlPlane::start().await.expect("a control plane");
    let embedded = embedded().build();
    wait_for_first_objects(&real.client()).await;
    let stranger = embedded.client_as(Identity::new(STRANGER, &[]), None);
    let ours = Bench::new(embedded.client("semantics"), stranger, CASE).await;
    let theirs = Bench::new(real.client(), real.client_for(STRANGER, &[]), CASE).await;
    let before = [some_versions(&ours).await, some_versions(&theirs).await];
    embedded.compact();
    real.stop_api_server();
    let started = real.start_api_server().await;
    started.expect("an API server with the same data");
    for (bench, version) in [&ours, &theirs].into_iter().zip(before) {
        watch_since_a_forgotten_version(bench, &version).await;
    }
    let mut comparison = Comparison::new("watches from a version that is forgotten");
    comparison.add(CASE, &normalised(ours), &normalised(theirs));
    comparison.finish();
}

/// A version that others follow.
async fn some_versions(b: &Bench) -> String {
    let mut versions = Vec::new();
    for name in ["a", "b", "c"] {
        let made = b
            .post(&b.here("secrets"), json!({"metadata": {"name": name}}))
            .await;
        versions.push(made["metadata"]["resourceVersion"].clone());
    }
    versions[0].as_str().expect("a version").to_owned()
}

async fn watch_since_a_forgotten_version(b: &Bench, version: &str) {
    for more in ["", "&allowWatchBookmarks=true", "&labelSelector=x%3D1"] {
        let path = b.here(&format!(
            "secrets?watch=true&timeoutSeconds=5&resourceVersion={version}{more}"
        ));
        let mut lines = b.unnoted_watch(&path).await;
        for line in &mut lines {
            // Which versions a server has is its own affair.
            let message = line["object"]["message"].as_str().unwrap_or_default();
            line["object"]["message"] = json!(without_numbers(message));
        }
        b.note(format!("a watch from before{more}"), lines.into());
    }
    let list = b.unnoted_get(&b.here("secrets")).await;
    b.note("a new list".to_owned(), list.clone());
    let version = list["metadata"]["resourceVersion"].as_str();
    b.post(&b.here("secrets"), json!({"metadata": {"name": "d"}}))
        .await;
    let path = format!(
        "secrets?watch=true&timeoutSeconds=2&resourceVersion={}",
        version.expect("a version")
    );
    b.watch(&b.here(&path)).await;
}

fn without_numbers(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars() {
        match letter {
            digit if !digit.is_ascii_digit() => words.push(digit),
            _ if words.ends_with('#') => {}
            _ => words.push('#'),
        }
    }
    words
}
