//! Namespaces, secrets, accounts, roles: objects with few rules.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn plain_objects_agree() {
    agree(
        "plain objects",
        cases![
            a_namespace_has_a_phase,
            the_first_namespaces_are_there,
            secrets_take_text_as_data,
            a_secret_keeps_its_type,
            immutable_means_immutable,
            service_accounts,
            roles_are_kept,
            endpoint_slices,
        ],
    )
    .await;
}

async fn a_namespace_has_a_phase(b: &Bench) {
    b.post(
        "/api/v1/namespaces",
        json!({"metadata": {"name": b.own("n"), "labels": {"a": "b"}}}),
    )
    .await;
    b.merge(
        &format!("/api/v1/namespaces/{}", b.own("n")),
        json!({"metadata": {"labels": null}}),
    )
    .await;
    b.merge(
        &format!("/api/v1/namespaces/{}", b.own("n")),
        json!({"spec": {"finalizers": null}}),
    )
    .await;
}

async fn the_first_namespaces_are_there(b: &Bench) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        b.get(&format!("/api/v1/namespaces/{name}")).await;
    }
    let service = b
        .unnoted_get("/api/v1/namespaces/default/services/kubernetes")
        .await;
    b.note(
        "the Service of the API".to_owned(),
        json!([service["spec"]["type"], service["spec"]["clusterIP"]]),
    );
}

async fn secrets_take_text_as_data(b: &Bench) {
    b.post(
        &b.here("secrets"),
        json!({"metadata": {"name": "s"}, "stringData": {"a": "text"}, "data": {"b": "eA=="}}),
    )
    .await;
    b.merge(&b.here("secrets/s"), json!({"stringData": {"a": "other"}}))
        .await;
}

async fn a_secret_keeps_its_type(b: &Bench) {
    b.post(
        &b.here("secrets"),
        json!({"metadata": {"name": "s"}, "type": "x.io/t"}),
    )
    .await;
    b.merge(&b.here("secrets/s"), json!({"type": "Opaque"}))
        .await;
}

async fn immutable_means_immutable(b: &Bench) {
    b.post(
        &b.here("configmaps"),
        json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": true}),
    )
    .await;
    b.merge(&b.here("configmaps/c"), json!({"data": {"a": "2"}}))
        .await;
    b.merge(&b.here("configmaps/c"), json!({"immutable": false}))
        .await;
    b.merge(
        &b.here("configmaps/c"),
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
}

async fn service_accounts(b: &Bench) {
    b.post(
        &b.here("serviceaccounts"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    let answer = b
        .unnoted_post(
            &b.here("serviceaccounts/a/token"),
            json!({"spec": {"expirationSeconds": 600}}),
        )
        .await;
    let has_token = answer["status"]["token"]
        .as_str()
        .is_some_and(|token| !token.is_empty());
    let reported = json!([
        answer["kind"],
        answer["spec"]["expirationSeconds"],
        has_token
    ]);
    b.note("a token".to_owned(), reported);
    for seconds in [599, -1, 4_294_967_297_i64] {
        let request = json!({"spec": {"expirationSeconds": seconds}});
        let path = b.here("serviceaccounts/a/token");
        let answer = b.unnoted_post(&path, request).await;
        let reported = json!([answer["code"], answer["reason"], answer["message"]]);
        b.note(format!("a token for {seconds} seconds"), reported);
    }
    b.post(&b.here("serviceaccounts/absent/token"), json!({"spec": {}}))
        .await;
}

async fn roles_are_kept(b: &Bench) {
    let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    b.post(
        path,
        json!({"metadata": {"name": b.own("r:x")}, "rules": rules}),
    )
    .await;
    b.get(&format!("{path}/{}", b.own("r:x"))).await;
}

async fn endpoint_slices(b: &Bench) {
    let slice = json!({
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    });
    b.post(&b.here_in("discovery.k8s.io", "endpointslices"), slice)
        .await;
    b.get(&b.here_in(
        "discovery.k8s.io",
        "endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb",
    ))
    .await;
}
