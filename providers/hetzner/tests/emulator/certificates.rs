//! HTTPS with uploaded and managed certificates.

use std::time::Duration;

use cloudkeel_api::{DesiredState, ErrorKind, LoadBalancerSpec, Outcome, ResourceKind};
use cloudkeel_emulator_hetzner::{Fault, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, annotate, attempt, balancers, drift, planned, refused, settle, spec};

fn managed(lab_nodes: &[cloudkeel_api::NodeFacts]) -> LoadBalancerSpec {
    let mut desired = spec(&[443], lab_nodes);
    annotate(
        &mut desired,
        &[
            ("protocol", "https"),
            ("certificate-type", "managed"),
            ("http-managed-certificate-domains", "a.example,*.b.example"),
            ("http-managed-certificate-acme-staging", "true"),
        ],
    );
    desired
}

#[tokio::test(start_paused = true)]
async fn a_managed_certificate_is_issued_once_and_the_rest_does_not_wait_for_it() {
    let settings = Settings {
        certificate_duration: Duration::from_mins(3),
        ..Settings::default()
    };
    let lab = Lab::with(1, settings);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let desired = managed(&nodes);
    let outcome = balancers(&provider)
        .apply(DesiredState::Present(&desired))
        .await;
    let Ok(Outcome::Pending { why, status, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("is being issued"), "{why}");
    assert!(status.is_some(), "its address is known already");
    assert_eq!(lab.balancer().targets.len(), 1);
    assert_eq!(lab.balancer().services, []);

    settle(&provider, &desired).await;
    let certificates = lab.cloud.certificates();
    assert_eq!(certificates.len(), 1);
    let certificate = &certificates[0];
    assert_eq!(certificate.name, "ccm-managed-certificate-u-1");
    assert_eq!(certificate.domain_names, ["a.example", "*.b.example"]);
    assert_eq!(certificate.labels["hcloud-ccm/service-uid"], "u-1");
    assert_eq!(certificate.labels["HC-Use-Staging-CA"], "true");
    let service = lab.balancer().services.remove(0);
    assert_eq!(service.http.unwrap().certificates, [certificate.id]);
    assert_eq!(service.health_check.protocol, "tcp", "even of HTTPS");
    lab.cloud.reset_calls();
    settle(&provider, &desired).await;
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_cannot_be_issued_is_an_error_with_its_cause() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let failure = Fault::action_fails("dns_zone_not_found");
    lab.cloud
        .faults()
        .once(Operation::CreateCertificate, failure);
    let outcome = attempt(&provider, &managed(&[])).await;
    let failures = refused(&outcome);
    assert_eq!(failures.kind, ErrorKind::Invalid);
    let why = &failures.message;
    assert!(why.contains("dns_zone_not_found"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_followed_whatever_is_wrong_with_the_certificate() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut uploaded = spec(&[443], &nodes);
    annotate(
        &mut uploaded,
        &[("protocol", "https"), ("http-certificates", "no-such")],
    );
    for (case, mut desired) in [("managed", managed(&nodes)), ("uploaded", uploaded)] {
        // The balancer was made before the certificate was asked for.
        desired.balancer_ref.service.uid = case.to_owned();
        let mut before = desired.clone();
        before.balancer_ref.annotations.clear();
        before.targets.pop_first();
        settle(&provider, &before).await;
        let refusal = Fault::code("invalid_input");
        lab.cloud
            .faults()
            .always(Operation::CreateCertificate, refusal);
        let outcome = attempt(&provider, &desired).await;
        assert_eq!(refused(&outcome).kind, ErrorKind::Invalid, "{case}");
        let mut all = lab.cloud.load_balancers().into_iter();
        let have = all.find(|have| have.labels["hcloud-ccm/service-uid"] == case);
        assert_eq!(have.unwrap().targets.len(), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_certificate_and_a_foreign_one_stays() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    lab.cloud
        .faults()
        .once(Operation::CreateCertificate, Fault::BrokenAfter);
    let desired = managed(&[]);
    let first = attempt(&provider, &desired).await;
    refused(&first);
    settle(&provider, &desired).await;
    assert_eq!(lab.cloud.certificates().len(), 1);

    let foreign = json!({"name": "taken", "type": "managed", "domain_names": ["x.example"]});
    lab.post("/certificates", foreign).await;
    let mut other = managed(&[]);
    other.balancer_ref.service.uid = "u-2".to_owned();
    annotate(&mut other, &[("http-managed-certificate-name", "taken")]);
    let outcome = attempt(&provider, &other).await;
    assert_eq!(refused(&outcome).kind, ErrorKind::NotOurs);
}

#[tokio::test(start_paused = true)]
async fn uploaded_certificates_are_found_by_name_or_id() {
    let lab = Lab::new(0);
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let body = json!({"name": name, "type": "managed", "domain_names": ["x.example"]});
        let made = lab.post("/certificates", body).await;
        ids.push(made["certificate"]["id"].as_u64().unwrap());
    }
    let provider = lab.provider().await;
    let mut desired = spec(&[443], &[]);
    let list = format!("one,{}", ids[1]);
    annotate(
        &mut desired,
        &[("protocol", "https"), ("http-certificates", &list)],
    );
    settle(&provider, &desired).await;
    let service = lab.balancer().services.remove(0);
    assert_eq!(service.http.unwrap().certificates, ids);
    lab.cloud.reset_calls();
    assert_eq!(planned(&provider, &desired).await, "nothing to do");
    assert_eq!(drift(&provider, &[desired.clone()]).await, [0]);

    annotate(&mut desired, &[("http-certificates", "three")]);
    let error = balancers(&provider)
        .plan(DesiredState::Present(&desired))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("\"three\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_was_issued_for_a_service_goes_with_it_and_is_found_when_it_is_left() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let desired = managed(&[]);
    settle(&provider, &desired).await;
    // The Go CCM writes no label of the cluster, and one that is in use is no left-over.
    let body = json!({
        "name": "go", "type": "managed", "domain_names": ["x.example"],
        "labels": {"hcloud-ccm/service-uid": "u-9"},
    });
    lab.post("/certificates", body).await;
    let owned = || async {
        let owned = balancers(&provider).owned().await.unwrap();
        let owned = owned.into_iter();
        owned
            .map(|it| (it.kind, it.service.map(|it| it.uid)))
            .collect::<Vec<_>>()
    };
    let uid = || Some("u-1".to_owned());
    assert_eq!(owned().await, [(ResourceKind::LoadBalancer, uid())]);
    let absent = DesiredState::Absent(&desired.balancer_ref);
    let outcome = balancers(&provider).apply(absent).await;
    assert!(matches!(outcome, Ok(Outcome::Gone { .. })), "{outcome:?}");
    let left: Vec<_> = lab
        .cloud
        .certificates()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(left, ["go"]);

    // A balancer that was deleted by hand leaves its certificate. Its labels are all that is known of its Service.
    settle(&provider, &desired).await;
    let id = lab.balancer().id;
    lab.delete(&format!("/load_balancers/{id}")).await;
    assert_eq!(owned().await, [(ResourceKind::Certificate, uid())]);
    let mut known = desired.balancer_ref.clone();
    known.annotations.clear();
    let absent = DesiredState::Absent(&known);
    let plan = balancers(&provider).plan(absent).await.unwrap();
    assert_eq!(plan.steps.len(), 1, "{plan:?}");
    assert!(
        plan.steps[0].text.starts_with("delete certificate"),
        "{plan:?}"
    );
    balancers(&provider).apply(absent).await.unwrap();
    assert_eq!(lab.cloud.certificates().len(), 1);
    assert!(owned().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_anything_else_uses_or_that_was_not_issued_here_stays() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let desired = managed(&[]);
    settle(&provider, &desired).await;
    let id = lab.cloud.certificates()[0].id;
    let other = json!({
        "name": "other", "load_balancer_type": "lb11", "location": "fsn1",
        "services": [{"protocol": "https", "http": {"certificates": [id]}}],
    });
    lab.post("/load_balancers", other).await;
    let absent = DesiredState::Absent(&desired.balancer_ref);
    balancers(&provider).apply(absent).await.unwrap();
    assert_eq!(lab.cloud.certificates().len(), 1, "the other one uses it");

    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let body = json!({
        "name": "mine", "type": "managed", "domain_names": ["a.example"],
        "labels": {"hcloud-ccm/service-uid": "u-1"},
    });
    lab.post("/certificates", body).await;
    settle(&provider, &desired).await;
    balancers(&provider).apply(absent).await.unwrap();
    assert_eq!(lab.cloud.certificates().len(), 1, "it was labelled by hand");
}
