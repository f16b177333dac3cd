//! Leases: what elections and heartbeats stand on.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn leases_agree() {
    agree(
        "leases",
        cases![
            a_lease_is_taken_and_renewed,
            a_put_needs_a_version,
            a_put_creates_a_lease,
            numbers_of_a_lease_are_checked,
            moments_are_kept_to_the_microsecond,
        ],
    )
    .await;
}

fn lease(spec: &Value) -> Value {
    json!({"metadata": {"name": "l"}, "spec": spec})
}

async fn a_lease_is_taken_and_renewed(b: &Bench) {
    let path = b.here_in("coordination.k8s.io", "leases");
    let spec = json!({
        "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z",
    });
    let mut held = b.post(&path, lease(&spec)).await;
    held["spec"]["renewTime"] = json!("2020-01-01T00:00:02.500000Z");
    let path = format!("{path}/l");
    b.put(&path, held.clone()).await;
    b.put(&path, held).await;
    b.merge(&path, json!({"spec": {"holderIdentity": ""}}))
        .await;
    b.merge(&path, json!({"spec": {"holderIdentity": null}}))
        .await;
}

async fn a_put_needs_a_version(b: &Bench) {
    let path = b.here_in("coordination.k8s.io", "leases");
    b.post(&path, lease(&json!({}))).await;
    b.put(&format!("{path}/l"), lease(&json!({"holderIdentity": "a"})))
        .await;
}

async fn a_put_creates_a_lease(b: &Bench) {
    let path = b.here_in("coordination.k8s.io", "leases/l");
    b.put(&path, lease(&json!({"holderIdentity": "a"}))).await;
}

async fn numbers_of_a_lease_are_checked(b: &Bench) {
    let path = b.here_in("coordination.k8s.io", "leases");
    b.post(&path, lease(&json!({"leaseDurationSeconds": 0})))
        .await;
    b.post(&path, lease(&json!({"leaseTransitions": -1}))).await;
}

async fn moments_are_kept_to_the_microsecond(b: &Bench) {
    let path = b.here_in("coordination.k8s.io", "leases");
    b.post(
        &path,
        lease(&json!({"renewTime": "2020-01-01T00:00:00.123456Z"})),
    )
    .await;
    b.merge(
        &format!("{path}/l"),
        json!({"spec": {"renewTime": "2020-01-01T00:00:01Z"}}),
    )
    .await;
}
