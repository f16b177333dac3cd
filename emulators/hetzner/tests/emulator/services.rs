//! Services of balancers.

use cloudkeel_emulator_hetzner::HetznerCloud;
use serde_json::{Value, json};

use crate::support::{Rest, lab};

/// Has a certificate issued and gives its ID.
async fn certificate(rest: &Rest, name: &str) -> u64 {
    let new = json!({"name": name, "type": "managed", "domain_names": ["example.com"]});
    let made = rest.post("/v1/certificates", new).await;
    made.body["certificate"]["id"].as_u64().unwrap()
}

fn service(rest: &Value, port: u16) -> Value {
    let services = rest["services"].as_array().unwrap().iter();
    let mut found = services.filter(|service| service["listen_port"] == port);
    found.next().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn what_is_not_said_gets_the_default() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let tcp = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
    assert_eq!(rest.act(id, "add_service", tcp).await.status, 201);
    assert_eq!(
        service(&rest.shown(id).await, 80),
        json!({
            "protocol": "tcp", "listen_port": 80, "destination_port": 30080, "proxyprotocol": false,
            "health_check": {"protocol": "tcp", "port": 30080, "interval": 15, "timeout": 10, "retries": 3},
        })
    );
    let certificate = certificate(&rest, "c").await;
    let https = json!({"protocol": "https", "http": {"certificates": [certificate]}});
    assert_eq!(rest.act(id, "add_service", https).await.status, 201);
    assert_eq!(
        service(&rest.shown(id).await, 443),
        json!({
            "protocol": "https", "listen_port": 443, "destination_port": 80, "proxyprotocol": false,
            "http": {
                "cookie_name": "HCLBSTICKY", "cookie_lifetime": 300, "certificates": [certificate],
                "redirect_http": false, "sticky_sessions": false, "timeout_idle": 60,
            },
            "health_check": {
                "protocol": "http", "port": 80, "interval": 15, "timeout": 10, "retries": 3,
                "http": {"domain": "", "path": "/", "response": "", "status_codes": ["2??", "3??"], "tls": false},
            },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_changes_what_it_names() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let http = json!({"protocol": "http", "listen_port": 80, "destination_port": 30080,
        "proxyprotocol": true, "http": {"cookie_name": "C", "sticky_sessions": true}});
    rest.act(id, "add_service", http).await;
    let update = json!({"listen_port": 80, "destination_port": 30081,
        "http": {"cookie_lifetime": 5},
        "health_check": {"protocol": "https", "port": 9, "interval": 3, "timeout": 2, "retries": 1,
            "http": {"domain": "d", "path": "/p", "status_codes": ["200"], "tls": true}}});
    assert_eq!(rest.act(id, "update_service", update).await.status, 201);
    let shown = service(&rest.shown(id).await, 80);
    for (field, expected) in [
        ("/protocol", json!("http")),
        ("/destination_port", json!(30081)),
        ("/proxyprotocol", json!(true)),
        ("/http/cookie_name", json!("C")),
        ("/http/cookie_lifetime", json!(5)),
        ("/health_check/protocol", json!("https")),
        ("/health_check/port", json!(9)),
        ("/health_check/http/path", json!("/p")),
        ("/health_check/http/response", json!("")),
        ("/health_check/http/tls", json!(true)),
    ] {
        assert_eq!(shown.pointer(field), Some(&expected), "{field}");
    }
    let tcp = json!({"listen_port": 80, "protocol": "tcp", "health_check": {"protocol": "tcp"}});
    rest.act(id, "update_service", tcp).await;
    let shown = service(&rest.shown(id).await, 80);
    assert_eq!(
        (shown.get("http"), shown["health_check"].get("http")),
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_makes_no_sense_names_its_field() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let check = |key: &str, value: u32| json!({"health_check": {key: value}});
    for (case, change, field) in [
        ("protocol", json!({"protocol": "udp"}), "protocol"),
        ("no port", json!({"listen_port": null}), "listen_port"),
        ("port 0", json!({"listen_port": 0}), "listen_port"),
        ("big port", json!({"listen_port": 65536}), "listen_port"),
        (
            "target port",
            json!({"destination_port": -1}),
            "destination_port",
        ),
        ("interval", check("interval", 2), "health_check.interval"),
        ("timeout", check("timeout", 61), "health_check.timeout"),
        ("retries", check("retries", 6), "health_check.retries"),
        (
            "no certificate",
            json!({"protocol": "https"}),
            "http.certificates",
        ),
    ] {
        let mut desired = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
        let change = change.as_object().unwrap().clone();
        desired.as_object_mut().unwrap().extend(change);
        let answer = rest.act(id, "add_service", desired).await;
        assert_eq!(
            (answer.said(), answer.field()),
            ((422, "invalid_input"), field),
            "{case}"
        );
    }
    let unknown = json!({"protocol": "https", "http": {"certificates": [1]}});
    let answer = rest.act(id, "add_service", unknown).await;
    assert_eq!(answer.said(), (404, "not_found"));
}

#[tokio::test(start_paused = true)]
async fn ports_are_used_once_and_removed_once() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let tcp = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
    for (action, body, said) in [
        (
            "update_service",
            json!({"listen_port": 80}),
            (404, "not_found"),
        ),
        ("add_service", tcp.clone(), (201, "")),
        ("add_service", tcp, (412, "source_port_already_used")),
        (
            "delete_service",
            json!({"listen_port": 81}),
            (404, "not_found"),
        ),
        ("delete_service", json!({"listen_port": 80}), (201, "")),
        (
            "delete_service",
            json!({"listen_port": 80}),
            (404, "not_found"),
        ),
    ] {
        assert_eq!(
            rest.act(id, action, body.clone()).await.said(),
            said,
            "{action} {body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_limits_services_and_certificates() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    for port in 1..=5 {
        let service = json!({"protocol": "tcp", "listen_port": port, "destination_port": 80});
        assert_eq!(rest.act(id, "add_service", service).await.status, 201);
    }
    let sixth = json!({"protocol": "tcp", "listen_port": 6, "destination_port": 80});
    let answer = rest.act(id, "add_service", sixth).await;
    assert_eq!(answer.said(), (403, "resource_limit_exceeded"));
    let mut certificates = Vec::new();
    for number in 0..11 {
        certificates.push(certificate(&rest, &format!("c{number}")).await);
    }
    let https =
        json!({"listen_port": 1, "protocol": "https", "http": {"certificates": certificates}});
    let answer = rest.act(id, "update_service", https).await;
    assert_eq!(answer.said(), (403, "resource_limit_exceeded"));
    certificates.pop();
    let https =
        json!({"listen_port": 1, "protocol": "https", "http": {"certificates": certificates}});
    assert_eq!(rest.act(id, "update_service", https).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_names_the_balancers_that_use_it() {
    let (cloud, rest): (HetznerCloud, Rest) = lab(0);
    let id = rest.balancer("lb").await;
    let certificate = certificate(&rest, "c").await;
    let https = json!({"protocol": "https", "http": {"certificates": [certificate]}});
    rest.act(id, "add_service", https).await;
    let path = format!("/v1/certificates/{certificate}");
    for used_by in [json!([{"id": id, "type": "load_balancer"}]), json!([])] {
        let shown = rest.get(&path).await;
        assert_eq!(shown.body["certificate"]["used_by"], used_by);
        rest.act(id, "delete_service", json!({"listen_port": 443}))
            .await;
    }
    assert_eq!(cloud.certificates().len(), 1);
}
