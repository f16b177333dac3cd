//! Certificates.

use cloudkeel_emulator_hetzner::{Fault, Operation, Settings};
use serde_json::{Value, json};

use crate::support::{SECOND, lab, lab_with};

fn managed(name: &str) -> Value {
    json!({
        "name": name, "type": "managed", "domain_names": ["example.com", "www.example.com"],
        "labels": {"hcloud-ccm/service-uid": "u-1"},
    })
}

#[tokio::test(start_paused = true)]
async fn a_managed_certificate_is_issued_after_a_while() {
    let settings = Settings {
        certificate_duration: SECOND * 90,
        ..Settings::default()
    };
    let (_, rest) = lab_with(0, settings);
    let made = rest.post("/v1/certificates", managed("c")).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["action"]["command"], "create_certificate");
    let pending = &made.body["certificate"];
    assert_eq!(
        (&pending["certificate"], &pending["status"]["issuance"]),
        (&Value::Null, &json!("pending"))
    );
    assert_eq!(
        rest.post("/v1/certificates", managed("c")).await.said(),
        (409, "uniqueness_error")
    );
    tokio::time::advance(SECOND * 90).await;
    let selector = "label_selector=hcloud-ccm/service-uid%3Du-1";
    let found = rest.get(&format!("/v1/certificates?{selector}")).await;
    let issued = &found.body["certificates"][0];
    assert_eq!(issued["status"]["issuance"], "completed");
    assert!(
        issued["certificate"]
            .as_str()
            .unwrap()
            .contains("BEGIN CERTIFICATE")
    );
    assert_eq!(
        issued["domain_names"],
        json!(["example.com", "www.example.com"])
    );
    assert_eq!(issued["not_valid_before"], "2026-01-01T00:00:00+00:00");
    assert_eq!(issued["not_valid_after"], "2026-04-01T00:00:00+00:00");
    assert_eq!(issued["fingerprint"].as_str().unwrap().len(), 95);
}

#[tokio::test(start_paused = true)]
async fn an_issuance_that_fails_says_why() {
    let (cloud, rest) = lab(0);
    let fault = Fault::action_fails("ca_dns_validation_failed");
    cloud.faults().once(Operation::CreateCertificate, fault);
    let made = rest.post("/v1/certificates", managed("c")).await;
    assert_eq!(
        made.body["action"]["error"]["code"],
        "ca_dns_validation_failed"
    );
    let status = &made.body["certificate"]["status"];
    assert_eq!(
        (&status["issuance"], &status["error"]["code"]),
        (&json!("failed"), &json!("ca_dns_validation_failed"))
    );
    let path = format!("/v1/certificates/{}", made.body["certificate"]["id"]);
    let shown = rest.get(&path).await;
    assert_eq!(shown.body["certificate"]["status"]["issuance"], "failed");
    assert_eq!(shown.body["certificate"]["certificate"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_uploaded_certificate_is_read() {
    let (cloud, rest) = lab(0);
    rest.post("/v1/certificates", managed("source")).await;
    let pem = cloud.certificates()[0].issued.clone().unwrap().certificate;
    let key = "-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n";
    let upload = json!({"name": "up", "certificate": pem, "private_key": key});
    let made = rest.post("/v1/certificates", upload).await;
    assert_eq!((made.status, &made.body["action"]), (201, &Value::Null));
    let shown = &made.body["certificate"];
    assert_eq!(
        (&shown["type"], &shown["status"]),
        (&json!("uploaded"), &Value::Null)
    );
    assert_eq!(
        shown["domain_names"],
        json!(["example.com", "www.example.com"])
    );
    assert_eq!(shown["certificate"], pem);
    let uploaded = rest.get("/v1/certificates?type=uploaded").await;
    assert_eq!(
        uploaded.ids("certificates"),
        [shown["id"].as_u64().unwrap()]
    );
    for (case, change, field) in [
        ("no PEM", json!({"certificate": "x"}), "certificate"),
        ("no key", json!({"private_key": "x"}), "private_key"),
        ("no type", json!({"type": "x"}), "type"),
        ("no name", json!({"name": ""}), "name"),
        ("no domains", json!({"type": "managed"}), "domain_names"),
    ] {
        let mut body = json!({"name": "n", "certificate": pem, "private_key": key});
        body.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let answer = rest.post("/v1/certificates", body).await;
        assert_eq!(
            (answer.said(), answer.field()),
            ((422, "invalid_input"), field),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_deleted_only_if_no_balancer_uses_it() {
    let (_, rest) = lab(0);
    let made = rest.post("/v1/certificates", managed("c")).await;
    let id = made.body["certificate"]["id"].as_u64().unwrap();
    tokio::time::advance(SECOND * 90).await;
    let balancer = json!({
        "name": "b", "load_balancer_type": "lb11", "location": "fsn1",
        "services": [{"protocol": "https", "http": {"certificates": [id]}}],
    });
    let balancer = rest.post("/v1/load_balancers", balancer).await;
    let balancer = balancer.body["load_balancer"]["id"].as_u64().unwrap();
    let path = format!("/v1/certificates/{id}");
    assert_eq!(rest.delete(&path).await.said(), (409, "conflict"));
    tokio::time::advance(SECOND * 90).await;
    let gone = rest.delete(&format!("/v1/load_balancers/{balancer}")).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    assert_eq!(rest.delete(&path).await.status, 204);
    assert_eq!(rest.delete(&path).await.said(), (404, "not_found"));
}
