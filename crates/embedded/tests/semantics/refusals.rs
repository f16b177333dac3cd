//! What is refused: requests of users without a role, and families of addresses that a server does not have.

use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn refusals_agree() {
    agree(
        "refusals",
        cases![a_user_without_a_role, services_of_two_families,],
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
