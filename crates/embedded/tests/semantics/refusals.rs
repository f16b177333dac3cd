//! What is refused: requests of users without a role, and families of addresses that a server does not have.

use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn refusals_agree() {
    agree(
        "refusals of a user without a role",
        cases![
            a_user_without_a_role,
            watches_of_a_user_without_a_role,
            services_of_a_user_without_a_role,
            services_of_two_families,
        ],
    )
    .await;
}

async fn a_user_without_a_role(b: &Bench) {
    let secret = json!({"metadata": {"name": "a"}});
    let node = format!("/api/v1/nodes/{}", b.own("n"));
    for (method, path, body) in [
        (Method::GET, "/api/v1/nodes".to_owned(), Value::Null),
        (Method::GET, node.clone(), Value::Null),
        (Method::DELETE, node.clone(), Value::Null),
        (Method::PUT, format!("{node}/status"), json!({})),
        (Method::PATCH, node.clone(), json!({})),
        (Method::PATCH, format!("{node}/status"), json!({})),
        (Method::DELETE, "/api/v1/nodes".to_owned(), Value::Null),
        (Method::GET, b.here("secrets"), Value::Null),
        (Method::POST, b.here("secrets"), secret),
        (
            Method::GET,
            b.here_in("coordination.k8s.io", "leases/l"),
            Value::Null,
        ),
    ] {
        b.ask_as_stranger(&method, &path, &body).await;
    }
}

async fn watches_of_a_user_without_a_role(b: &Bench) {
    for path in [
        "/api/v1/nodes?watch=true&timeoutSeconds=1".to_owned(),
        "/api/v1/services?watch=1&timeoutSeconds=1".to_owned(),
        b.here("services?watch=true&timeoutSeconds=1"),
        b.here("services?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da"),
        b.here_in("coordination.k8s.io", "leases?watch=true&timeoutSeconds=1"),
        b.here("services?watch=false"),
    ] {
        b.ask_as_stranger(&Method::GET, &path, &Value::Null).await;
    }
}

/// Whether there is such a Service, is none of the user's business.
async fn services_of_a_user_without_a_role(b: &Bench) {
    let service = json!({"metadata": {"name": "there"}, "spec": {"ports": [{"port": 80}]}});
    b.post(&b.here("services"), service.clone()).await;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    for name in ["there", "missing"] {
        let path = b.here(&format!("services/{name}"));
        for (method, path, body) in [
            (Method::GET, path.clone(), Value::Null),
            (Method::PUT, path.clone(), service.clone()),
            (
                Method::PATCH,
                path.clone(),
                json!({"metadata": {"labels": {"a": "b"}}}),
            ),
            (Method::PATCH, format!("{path}/status"), status.clone()),
            (Method::DELETE, path.clone(), Value::Null),
        ] {
            b.ask_as_stranger(&method, &path, &body).await;
        }
    }
    let all = b.here("services");
    b.ask_as_stranger(&Method::GET, &all, &Value::Null).await;
    b.ask_as_stranger(&Method::POST, &all, &service).await;
    b.ask_as_stranger(&Method::DELETE, &all, &Value::Null).await;
}

async fn services_of_two_families(b: &Bench) {
    for (name, spec) in [
        ("prefer", json!({"ipFamilyPolicy": "PreferDualStack"})),
        ("require", json!({"ipFamilyPolicy": "RequireDualStack"})),
        ("second", json!({"ipFamilies": ["IPv6"]})),
        (
            "both",
            json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]}),
        ),
        (
            "single",
            json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}),
        ),
        ("unknown", json!({"ipFamilyPolicy": "Both"})),
    ] {
        let mut spec = spec;
        spec["ports"] = json!([{"port": 80}]);
        let service = json!({"metadata": {"name": name}, "spec": spec});
        b.post(&b.here("services"), service).await;
    }
}
