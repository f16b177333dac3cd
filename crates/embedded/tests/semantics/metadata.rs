//! Names, UIDs, versions, labels: what every object has.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn metadata_agrees() {
    agree(
        "metadata",
        cases![
            creation_gives_identity,
            creation_refuses_what_exists,
            creation_refuses_a_version,
            names_are_checked,
            a_name_may_be_generated,
            the_namespace_must_be_there,
            the_namespace_must_match,
            the_name_must_match_the_path,
            labels_are_checked,
            a_stale_version_is_a_conflict,
            a_put_without_a_version_overwrites,
            a_foreign_uid_is_refused,
            nothing_changed_is_no_new_version,
            system_fields_cannot_be_written,
            wrong_types_are_refused,
            unknown_fields_are_dropped,
            strict_validation_refuses_unknown_fields,
            a_dry_run_changes_nothing,
            unknown_paths_and_methods,
            finalizers_have_qualified_names,
        ],
    )
    .await;
}

fn config_map(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

async fn creation_gives_identity(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    b.get(&b.here("configmaps/a")).await;
    b.get(&b.here("configmaps/absent")).await;
}

async fn creation_refuses_what_exists(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    b.post(&b.here("configmaps"), config_map("a")).await;
    let lease = json!({"metadata": {"name": "l"}});
    b.post(&b.here_in("coordination.k8s.io", "leases"), lease.clone())
        .await;
    b.post(&b.here_in("coordination.k8s.io", "leases"), lease)
        .await;
}

async fn creation_refuses_a_version(b: &Bench) {
    let body = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
    b.post(&b.here("configmaps"), body).await;
}

async fn names_are_checked(b: &Bench) {
    for name in ["Upper", "under_score", "-dash", "a/b", ""] {
        b.post(&b.here("configmaps"), config_map(name)).await;
    }
    let node = json!({"metadata": {"name": "No_Node"}});
    b.post("/api/v1/nodes", node).await;
    let service = json!({"metadata": {"name": "1web"}, "spec": {"ports": [{"port": 80}]}});
    b.post(&b.here("services"), service).await;
    b.post("/api/v1/namespaces", json!({"metadata": {"name": "a.b"}}))
        .await;
}

async fn a_name_may_be_generated(b: &Bench) {
    let body = json!({"metadata": {"generateName": "made-"}});
    b.post(&b.here("configmaps"), body.clone()).await;
    b.post(&b.here("configmaps"), body).await;
    let both = json!({"metadata": {"generateName": "made-", "name": "given"}});
    b.post(&b.here("configmaps"), both).await;
}

async fn the_namespace_must_be_there(b: &Bench) {
    b.post("/api/v1/namespaces/nowhere/configmaps", config_map("a"))
        .await;
    b.get("/api/v1/namespaces/nowhere/configmaps").await;
    b.get("/api/v1/namespaces/nowhere/configmaps/a").await;
}

async fn the_namespace_must_match(b: &Bench) {
    let body = json!({"metadata": {"name": "a", "namespace": "default"}});
    b.post(&b.here("configmaps"), body).await;
}

async fn the_name_must_match_the_path(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    b.put(&b.here("configmaps/a"), config_map("b")).await;
    b.merge(&b.here("configmaps/a"), json!({"metadata": {"name": "b"}}))
        .await;
}

async fn labels_are_checked(b: &Bench) {
    for labels in [
        json!({"a b": "c"}),
        json!({"a": "c d"}),
        json!({"x/y": "z"}),
        json!({"": "z"}),
    ] {
        let body = json!({"metadata": {"name": "a", "labels": labels}});
        let answer = b.post(&b.here("configmaps"), body).await;
        assert!(answer.is_object());
    }
}

async fn a_stale_version_is_a_conflict(b: &Bench) {
    let first = b.post(&b.here("configmaps"), config_map("a")).await;
    b.merge(&b.here("configmaps/a"), json!({"data": {"a": "2"}}))
        .await;
    b.put(&b.here("configmaps/a"), first.clone()).await;
    let version = &first["metadata"]["resourceVersion"];
    let stale = json!({"metadata": {"resourceVersion": version}, "data": {"a": "3"}});
    b.merge(&b.here("configmaps/a"), stale.clone()).await;
    b.strategic(&b.here("configmaps/a"), stale).await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let path = b.here_in("coordination.k8s.io", "leases");
    let first = b.post(&path, lease).await;
    let path = format!("{path}/l");
    b.merge(&path, json!({"spec": {"holderIdentity": "b"}}))
        .await;
    b.put(&path, first).await;
}

async fn a_put_without_a_version_overwrites(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    b.put(
        &b.here("configmaps/a"),
        json!({"metadata": {"name": "a"}, "data": {"b": "2"}}),
    )
    .await;
    b.put(&b.here("configmaps/absent"), config_map("absent"))
        .await;
}

async fn a_foreign_uid_is_refused(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    let mut body = config_map("a");
    body["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    b.put(&b.here("configmaps/a"), body.clone()).await;
    b.merge(&b.here("configmaps/a"), body.clone()).await;
    b.strategic(&b.here("configmaps/a"), body).await;
}

async fn nothing_changed_is_no_new_version(b: &Bench) {
    let first = b.post(&b.here("configmaps"), config_map("a")).await;
    b.put(&b.here("configmaps/a"), first).await;
    b.merge(&b.here("configmaps/a"), json!({"data": {"a": "1"}}))
        .await;
    b.merge(
        &b.here("configmaps/a"),
        json!({"metadata": {"labels": {"absent": null}}}),
    )
    .await;
    b.merge(&b.here("configmaps/a"), json!({"metadata": {"labels": {}}}))
        .await;
}

async fn system_fields_cannot_be_written(b: &Bench) {
    b.post(&b.here("configmaps"), config_map("a")).await;
    for metadata in [
        json!({"creationTimestamp": "2020-01-01T00:00:00Z"}),
        json!({"deletionTimestamp": "2020-01-01T00:00:00Z"}),
        json!({"generation": 7}),
        json!({"uid": null}),
        json!({"selfLink": "/x"}),
    ] {
        b.merge(&b.here("configmaps/a"), json!({"metadata": metadata}))
            .await;
    }
}

async fn wrong_types_are_refused(b: &Bench) {
    b.post(
        &b.here("configmaps"),
        json!({"metadata": {"name": "a"}, "data": {"a": 1}}),
    )
    .await;
    b.post(&b.here("configmaps"), json!({"metadata": "a"}))
        .await;
    b.post(
        &b.here("configmaps"),
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}),
    )
    .await;
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "a"}, "spec": {"ports": {}}}),
    )
    .await;
}

async fn unknown_fields_are_dropped(b: &Bench) {
    b.post(
        &b.here("configmaps"),
        json!({"metadata": {"name": "a", "extra": 1}, "more": {"x": "y"}}),
    )
    .await;
}

async fn strict_validation_refuses_unknown_fields(b: &Bench) {
    let body =
        json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80, "what": 1}], "x": 1}});
    b.post(&b.here("services?fieldValidation=Strict"), body.clone())
        .await;
    b.post(&b.here("services?fieldValidation=Ignore"), body)
        .await;
}

async fn a_dry_run_changes_nothing(b: &Bench) {
    b.post(
        &b.here("configmaps?dryRun=All"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    b.get(&b.here("configmaps/a")).await;
}

async fn unknown_paths_and_methods(b: &Bench) {
    b.get("/api/v1/nothings").await;
    b.get("/apis/no.group/v1/things").await;
    b.post(&b.here("configmaps/a"), config_map("a")).await;
    b.put(&b.here("configmaps"), config_map("a")).await;
    b.post(
        &b.here("serviceaccounts"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    b.get(&b.here("serviceaccounts/a/token")).await;
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let status = format!("/api/v1/nodes/{}/status", b.own("n"));
    b.post(&status, json!({})).await;
    b.delete(&status, json!(null)).await;
}

async fn finalizers_have_qualified_names(b: &Bench) {
    for finalizer in ["plain", "example.com/good", "Bad Name/x"] {
        let body = json!({"metadata": {"name": "a", "finalizers": [finalizer]}});
        b.post(&b.here("configmaps"), body).await;
    }
}
