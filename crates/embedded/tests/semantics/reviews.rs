//! Who is this, and may they? And what there is at all.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn reviews_agree() {
    agree(
        "reviews, discovery, health",
        cases![
            an_administrator_may,
            a_token_of_an_account_is_known,
            an_unknown_token_is_not,
            discovery_knows_our_resources,
            health_is_reported,
        ],
    )
    .await;
}

async fn an_administrator_may(b: &Bench) {
    let attributes = json!({"verb": "delete", "resource": "nodes"});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let body = json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    });
    let answer = b.unnoted_post(path, body).await;
    b.note("may I".to_owned(), answer["status"]["allowed"].clone());
}

async fn review(b: &Bench, token: &str) -> Value {
    let body = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token},
    });
    let answer = b
        .unnoted_post("/apis/authentication.k8s.io/v1/tokenreviews", body)
        .await;
    answer["status"].clone()
}

async fn a_token_of_an_account_is_known(b: &Bench) {
    b.post(
        &b.here("serviceaccounts"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    let answer = b
        .unnoted_post(&b.here("serviceaccounts/a/token"), json!({"spec": {}}))
        .await;
    let token = answer["status"]["token"].as_str().expect("a token");
    let status = review(b, token).await;
    let mut groups: Vec<_> = status["user"]["groups"].as_array().expect("groups").clone();
    groups.sort_by_key(Value::to_string);
    b.note(
        "who".to_owned(),
        json!([status["authenticated"], status["user"]["username"], groups]),
    );
}

async fn an_unknown_token_is_not(b: &Bench) {
    let status = review(b, "nonsense").await;
    let known = status["authenticated"].as_bool().unwrap_or(false);
    b.note(
        "who".to_owned(),
        json!([known, status["error"].is_string()]),
    );
}

async fn discovery_knows_our_resources(b: &Bench) {
    for (path, names) in [
        (
            "/api/v1",
            &[
                "nodes",
                "nodes/status",
                "services",
                "services/status",
                "events",
                "namespaces",
            ][..],
        ),
        ("/apis/coordination.k8s.io/v1", &["leases"][..]),
        ("/apis/events.k8s.io/v1", &["events"][..]),
    ] {
        let list = b.unnoted_get(path).await;
        for name in names {
            let resources = list["resources"].as_array().expect("resources");
            let found = resources
                .iter()
                .find(|resource| resource["name"] == *name)
                .cloned()
                .unwrap_or_default();
            let mut verbs = found["verbs"].as_array().expect("verbs").clone();
            verbs.sort_by_key(Value::to_string);
            let reported = json!([
                found["kind"],
                found["namespaced"],
                found["shortNames"],
                found["singularName"],
                verbs
            ]);
            b.note(format!("{path} {name}"), reported);
        }
    }
}

async fn health_is_reported(b: &Bench) {
    for path in ["/healthz", "/readyz", "/livez"] {
        b.get(path).await;
    }
    let version = b.unnoted_get("/version").await;
    b.note(
        "version".to_owned(),
        json!([version["major"], version["minor"]]),
    );
}
