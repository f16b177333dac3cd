//! Watches: which events, and how.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn watches_agree() {
    agree(
        "watches",
        cases![
            everything_from_the_start,
            changes_since_a_version,
            selected_objects_come_and_go,
            one_object_by_its_name,
            finalizers_are_seen,
            the_initial_events_end,
            bookmarks_come_before_the_end,
        ],
    )
    .await;
}

async fn add(b: &Bench, name: &str, labels: Value) -> String {
    let object = b
        .post(
            &b.here("secrets"),
            json!({"metadata": {"name": name, "labels": labels}}),
        )
        .await;
    object["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned()
}

/// A watch whose address has a version in it, which no two servers share.
async fn watch_since(b: &Bench, version: &str, more: &str) {
    let path = b.here(&format!(
        "secrets?watch=true&timeoutSeconds=1&resourceVersion={version}{more}"
    ));
    b.watch(&path).await;
}

async fn everything_from_the_start(b: &Bench) {
    add(b, "b", json!({})).await;
    add(b, "a", json!({})).await;
    b.watch(&b.here("secrets?watch=true&timeoutSeconds=1"))
        .await;
    b.watch(&b.here("secrets?watch=1&timeoutSeconds=1&resourceVersion=0"))
        .await;
}

async fn changes_since_a_version(b: &Bench) {
    let version = add(b, "a", json!({})).await;
    add(b, "b", json!({})).await;
    b.merge(
        &b.here("secrets/a"),
        json!({"metadata": {"labels": {"x": "1"}}}),
    )
    .await;
    b.delete(&b.here("secrets/b"), json!({})).await;
    watch_since(b, &version, "").await;
}

async fn selected_objects_come_and_go(b: &Bench) {
    let version = add(b, "a", json!({"x": "1"})).await;
    for x in ["2", "1", "1"] {
        b.merge(
            &b.here("secrets/a"),
            json!({"metadata": {"labels": {"x": x}}}),
        )
        .await;
    }
    b.merge(
        &b.here("secrets/a"),
        json!({"metadata": {"labels": {"more": "y"}}}),
    )
    .await;
    b.delete(&b.here("secrets/a"), json!({})).await;
    watch_since(b, &version, "&labelSelector=x%3D1").await;
}

async fn one_object_by_its_name(b: &Bench) {
    let version = add(b, "a", json!({})).await;
    add(b, "b", json!({})).await;
    b.merge(
        &b.here("secrets/a"),
        json!({"metadata": {"labels": {"x": "1"}}}),
    )
    .await;
    watch_since(b, &version, "&fieldSelector=metadata.name%3Da").await;
}

async fn finalizers_are_seen(b: &Bench) {
    let version = add(b, "first", json!({})).await;
    b.post(
        &b.here("secrets"),
        json!({"metadata": {"name": "a", "finalizers": ["x.io/f"]}}),
    )
    .await;
    b.delete(&b.here("secrets/a"), json!({})).await;
    b.merge(
        &b.here("secrets/a"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    watch_since(b, &version, "").await;
}

async fn the_initial_events_end(b: &Bench) {
    add(b, "a", json!({})).await;
    let query = "watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let lines = b.watch(&b.here(&format!("secrets?{query}"))).await;
    let end = lines
        .iter()
        .find(|line| line["type"] == "BOOKMARK")
        .cloned()
        .unwrap_or_default();
    let annotations = end["object"]["metadata"]["annotations"].clone();
    b.note(
        "the end of the beginning".to_owned(),
        json!({"kind": end["object"]["kind"], "annotations": annotations}),
    );
}

/// A watch that has seen something says where it stands before it ends, if it was asked to.
async fn bookmarks_come_before_the_end(b: &Bench) {
    let version = |text: &Value| {
        let text = text.as_str().expect("a version");
        text.parse::<u64>().expect("a number")
    };
    for (name, more) in [("asked", "&allowWatchBookmarks=true"), ("not-asked", "")] {
        let first = add(b, name, json!({})).await;
        let query = format!("watch=true&timeoutSeconds=8&resourceVersion={first}{more}");
        let path = b.here(&format!("secrets?{query}"));
        let change = async {
            // By now the watch has begun.
            tokio::time::sleep(Duration::from_secs(2)).await;
            let later = json!({"metadata": {"name": format!("{name}-later")}});
            b.unnoted_post(&b.here("secrets"), later).await
        };
        let (lines, later) = tokio::join!(b.unnoted_watch(&path), change);
        let mut types: Vec<_> = lines.iter().map(|line| line["type"].clone()).collect();
        // How often it says so is its own affair.
        types.dedup();
        let mark = lines.iter().find(|line| line["type"] == "BOOKMARK");
        let mut mark = mark.map(|line| line["object"].clone()).unwrap_or_default();
        let is_current = !mark.is_null() && {
            let seen = mark["metadata"]["resourceVersion"].take();
            version(&seen) >= version(&later["metadata"]["resourceVersion"])
        };
        let answer = json!({"types": types, "bookmark": mark, "is current": is_current});
        b.note(format!("bookmarks, {name}"), answer);
    }
}
