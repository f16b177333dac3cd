//! Our candidates and Go's for one lease.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::candidate::{Contest, LEASE};
use crate::go::GoCandidate;

#[tokio::test]
async fn go_leads_and_releases_and_we_follow() {
    let contest = Contest::open().await;
    let mut go = GoCandidate::start(&contest.config("go")).await;
    go.leads("go").await;
    let ours = contest.candidate("rust");
    ours.waits_for("go").await;
    go.stop().await;
    ours.leads().await;
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("rust"));
    assert_eq!(spec.lease_transitions, Some(1));
}

#[tokio::test]
async fn we_lead_and_release_and_go_follows() {
    let contest = Contest::open().await;
    let ours = contest.candidate("rust");
    ours.leads().await;
    let mut go = GoCandidate::start(&contest.config("go")).await;
    go.waits_for("rust").await;
    ours.stop().await;
    go.leads("go").await;
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("go"));
    assert_eq!(spec.lease_transitions, Some(1));
    go.stop().await;
}

#[tokio::test]
async fn go_crashes_and_we_follow() {
    let contest = Contest::open().await;
    let mut go = GoCandidate::start(&contest.config("go")).await;
    go.leads("go").await;
    let ours = contest.candidate("rust");
    ours.waits_for("go").await;
    go.crash().await;
    ours.leads().await;
    assert_eq!(ours.election.fence().epoch(), Some(1));
}

#[tokio::test]
async fn we_crash_and_go_follows() {
    let contest = Contest::open().await;
    let ours = contest.candidate("rust");
    ours.leads().await;
    let mut go = GoCandidate::start(&contest.config("go")).await;
    go.waits_for("rust").await;
    ours.crash().await;
    go.leads("go").await;
    go.stop().await;
}

/// The spec of the lease as it is on the wire, with every digit of a time replaced and the identity left out.
async fn shape(contest: &Contest) -> BTreeMap<String, String> {
    let lease: Value = contest
        .client
        .request(
            http::Request::get(format!(
                "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{LEASE}",
                contest.namespace.name()
            ))
            .body(Vec::new())
            .unwrap(),
        )
        .await
        .unwrap();
    let spec = lease["spec"].as_object().unwrap();
    let field = |(name, value): (&String, &Value)| {
        let text = value.to_string();
        let text = match name.as_str() {
            "acquireTime" | "renewTime" => text.replace(|c: char| c.is_ascii_digit(), "0"),
            "holderIdentity" => text.replace("go", "ID").replace("rust", "ID"),
            _ => text,
        };
        (name.clone(), text)
    };
    spec.iter().map(field).collect()
}

#[tokio::test]
async fn both_write_the_same_fields_in_the_same_form() {
    let (by_go, by_us) = (Contest::open().await, Contest::open().await);
    let mut go = GoCandidate::start(&by_go.config("go")).await;
    go.leads("go").await;
    let ours = by_us.candidate("rust");
    ours.leads().await;
    let held = shape(&by_us).await;
    assert_eq!(held, shape(&by_go).await, "while it is held");
    assert_eq!(held.len(), 5);
    assert_eq!(held["renewTime"], "\"0000-00-00T00:00:00.000000Z\"");

    go.stop().await;
    ours.stop().await;
    let released = shape(&by_us).await;
    assert_eq!(released, shape(&by_go).await, "after its release");
    assert_eq!(released["holderIdentity"], "\"\"");
    assert_eq!(released["leaseDurationSeconds"], "1");

    let mut go = GoCandidate::start(&by_go.config("go")).await;
    go.leads("go").await;
    let ours = by_us.candidate("rust");
    ours.leads().await;
    let taken = shape(&by_us).await;
    assert_eq!(taken, shape(&by_go).await, "after another took it");
    assert_eq!(taken["leaseTransitions"], "1");
    go.stop().await;
}

#[tokio::test]
async fn candidates_of_both_kinds_take_turns() {
    let contest = Contest::open().await;
    let mut transitions = 0;
    for round in 0..2 {
        let (rust, go_name) = (format!("rust-{round}"), format!("go-{round}"));
        let ours = contest.candidate(&rust);
        ours.leads().await;
        assert_eq!(ours.election.fence().epoch(), Some(transitions));
        let mut go = GoCandidate::start(&contest.config(&go_name)).await;
        go.waits_for(&rust).await;
        ours.stop().await;
        go.leads(&go_name).await;
        contest.wait_for_holder(&go_name).await;
        go.stop().await;
        transitions += 2;
    }
}
