//! Deletion: preconditions, finalizers, and what comes back.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn deletion_agrees() {
    agree(
        "deletion",
        cases![
            what_a_deletion_answers,
            preconditions,
            finalizers_hold_an_object,
            no_new_finalizers_for_what_is_to_go,
            changes_while_it_is_to_go,
            the_last_finalizer_through_the_status,
            a_finalizer_in_the_way_of_preconditions,
            many_at_once,
            many_at_once_may_be_tried,
            what_cannot_go_at_once,
            a_deletion_may_be_tried,
        ],
    )
    .await;
}

async fn what_a_deletion_answers(b: &Bench) {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    b.delete(&format!("/api/v1/nodes/{}", b.own("n")), json!({}))
        .await;
    b.delete(&format!("/api/v1/nodes/{}", b.own("n")), json!({}))
        .await;
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    b.delete(
        &b.here("services/s"),
        json!({"propagationPolicy": "Background"}),
    )
    .await;
    b.post(&b.here("configmaps"), json!({"metadata": {"name": "c"}}))
        .await;
    b.delete(&b.here("configmaps/c"), json!(null)).await;
    let leases = b.here_in("coordination.k8s.io", "leases");
    b.post(&leases, json!({"metadata": {"name": "l"}})).await;
    b.delete(&format!("{leases}/l"), json!({"gracePeriodSeconds": 0}))
        .await;
    b.post(
        &b.here("serviceaccounts"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    b.delete(&b.here("serviceaccounts/a"), json!({})).await;
}

async fn preconditions(b: &Bench) {
    let node = b
        .post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    let (uid, version) = (
        &node["metadata"]["uid"],
        &node["metadata"]["resourceVersion"],
    );
    b.delete(
        &path,
        json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}),
    )
    .await;
    b.delete(
        &path,
        json!({"preconditions": {"uid": uid, "resourceVersion": "999999999"}}),
    )
    .await;
    b.merge(&path, json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    b.delete(
        &path,
        json!({"preconditions": {"uid": uid, "resourceVersion": version}}),
    )
    .await;
    b.delete(&path, json!({"preconditions": {"uid": uid}}))
        .await;
}

async fn finalizers_hold_an_object(b: &Bench) {
    let metadata = json!({"name": "s", "finalizers": ["x.io/a", "x.io/b"]});
    b.post(
        &b.here("services"),
        json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    let path = b.here("services/s");
    b.delete(&path, json!({})).await;
    b.delete(&path, json!({})).await;
    b.merge(&path, json!({"metadata": {"finalizers": ["x.io/b"]}}))
        .await;
    b.merge(&path, json!({"metadata": {"finalizers": []}}))
        .await;
    b.get(&path).await;
}

async fn no_new_finalizers_for_what_is_to_go(b: &Bench) {
    let metadata = json!({"name": "c", "finalizers": ["x.io/a"]});
    b.post(&b.here("configmaps"), json!({"metadata": metadata}))
        .await;
    let path = b.here("configmaps/c");
    b.delete(&path, json!({})).await;
    b.merge(
        &path,
        json!({"metadata": {"finalizers": ["x.io/a", "x.io/c", "x.io/b"]}}),
    )
    .await;
}

async fn changes_while_it_is_to_go(b: &Bench) {
    let metadata = json!({"name": "c", "finalizers": ["x.io/a"]});
    b.post(&b.here("configmaps"), json!({"metadata": metadata}))
        .await;
    let path = b.here("configmaps/c");
    b.delete(&path, json!({})).await;
    b.merge(&path, json!({"data": {"a": "1"}})).await;
    b.merge(&path, json!({"metadata": {"deletionTimestamp": null}}))
        .await;
    b.put(
        &path,
        json!({"metadata": {"name": "c", "finalizers": ["x.io/a"]}, "data": {"b": "2"}}),
    )
    .await;
    b.post(&b.here("configmaps"), json!({"metadata": {"name": "c"}}))
        .await;
}

async fn the_last_finalizer_through_the_status(b: &Bench) {
    let metadata = json!({"name": "s", "finalizers": ["x.io/a"]});
    b.post(
        &b.here("services"),
        json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    b.delete(&b.here("services/s"), json!({})).await;
    b.merge(
        &b.here("services/s/status"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    b.get(&b.here("services/s")).await;
}

async fn a_finalizer_in_the_way_of_preconditions(b: &Bench) {
    let metadata = json!({"name": "c", "finalizers": ["x.io/a"]});
    let object = b
        .post(&b.here("configmaps"), json!({"metadata": metadata}))
        .await;
    let path = b.here("configmaps/c");
    let version = object["metadata"]["resourceVersion"].clone();
    b.delete(
        &path,
        json!({"preconditions": {"resourceVersion": version}}),
    )
    .await;
    b.delete(
        &path,
        json!({"preconditions": {"resourceVersion": version}}),
    )
    .await;
}

async fn many_at_once(b: &Bench) {
    for (name, labels) in [
        ("a", json!({"x": "1"})),
        ("b", json!({"x": "2"})),
        ("c", json!({"x": "1"})),
    ] {
        b.post(
            &b.here("secrets"),
            json!({"metadata": {"name": name, "labels": labels}}),
        )
        .await;
    }
    b.unnoted_delete(&b.here("secrets?labelSelector=x%3D1"))
        .await;
    b.get(&b.here("secrets")).await;
}

async fn many_at_once_may_be_tried(b: &Bench) {
    b.post(&b.here("secrets"), json!({"metadata": {"name": "a"}}))
        .await;
    b.delete(&b.here("secrets"), json!({"dryRun": ["All"]}))
        .await;
    b.get(&b.here("secrets/a")).await;
}

async fn what_cannot_go_at_once(b: &Bench) {
    b.delete("/api/v1/secrets", json!(null)).await;
    b.delete("/api/v1/namespaces", json!(null)).await;
    b.delete("/apis/coordination.k8s.io/v1/leases", json!(null))
        .await;
}

async fn a_deletion_may_be_tried(b: &Bench) {
    b.post(&b.here("secrets"), json!({"metadata": {"name": "a"}}))
        .await;
    b.delete(&b.here("secrets/a"), json!({"dryRun": ["All"]}))
        .await;
    b.get(&b.here("secrets/a")).await;
}
