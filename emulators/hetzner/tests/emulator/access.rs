//! Who is admitted, and how a wrong request is refused.

use bytes::Bytes;
use cloudkeel_emulator_hetzner::{HetznerCloud, Operation, Permission, ServerSpec, Settings};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Rest, lab};

#[tokio::test(start_paused = true)]
async fn a_token_opens_its_project_as_far_as_it_may() {
    let (cloud, _) = lab(1);
    cloud.add_project("other");
    cloud.grant("reader", "other", Permission::ReadOnly);
    cloud.grant("denied", "other", Permission::Nothing);
    let new = json!({"name": "lb", "load_balancer_type": "lb11", "location": "fsn1"});
    for (case, token, read, write) in [
        ("no token", "", (401, "unauthorized"), (401, "unauthorized")),
        ("unknown", "x", (401, "unauthorized"), (401, "unauthorized")),
        ("nothing", "denied", (403, "forbidden"), (403, "forbidden")),
        ("read only", "reader", (200, ""), (401, "token_readonly")),
        ("all", HetznerCloud::TOKEN, (200, ""), (201, "")),
    ] {
        let rest = Rest::with_token(&cloud, token);
        assert_eq!(rest.get("/v1/servers").await.said(), read, "{case}");
        let written = rest.post("/v1/load_balancers", new.clone()).await;
        assert_eq!(written.said(), write, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_swapped_token_shows_another_project_and_gets_404s() {
    let (cloud, rest) = lab(2);
    let here = cloud.servers()[0].id;
    cloud.add_project("other");
    let there = cloud
        .add_server_in("other", ServerSpec::named("there"))
        .unwrap();
    cloud.grant(HetznerCloud::TOKEN, "other", Permission::ReadWrite);
    assert_eq!(rest.get("/v1/servers").await.ids("servers"), [there.id]);
    let gone = rest.get(&format!("/v1/servers/{here}")).await;
    assert_eq!(gone.said(), (404, "not_found"));
    cloud.revoke(HetznerCloud::TOKEN);
    assert_eq!(rest.get("/v1/servers").await.said(), (401, "unauthorized"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_refused_in_the_same_form() {
    let (_, rest) = lab(0);
    for (method, path, said) in [
        (Method::GET, "/v1/servers/1", (404, "not_found")),
        (Method::GET, "/v1/servers/abc", (404, "not_found")),
        (Method::GET, "/v1/networks/1", (404, "not_found")),
        (Method::GET, "/v1/load_balancers/1", (404, "not_found")),
        (Method::GET, "/v1/certificates/1", (404, "not_found")),
        (Method::GET, "/v1/actions/1", (404, "not_found")),
        (Method::GET, "/v1/locations/99", (404, "not_found")),
        (
            Method::GET,
            "/v1/load_balancer_types/99",
            (404, "not_found"),
        ),
        (Method::DELETE, "/v1/load_balancers/1", (404, "not_found")),
        (
            Method::POST,
            "/v1/networks/1/actions/add_route",
            (404, "not_found"),
        ),
        (Method::GET, "/v1/nothing", (404, "not_found")),
        (Method::PATCH, "/v1/servers", (405, "method_not_allowed")),
        (Method::GET, "/v1/actions", (410, "deprecated_api_endpoint")),
    ] {
        let answer = rest.call(method.clone(), path, json!({})).await;
        assert_eq!(answer.said(), said, "{method} {path}");
        assert!(answer.body["error"]["message"].is_string(), "{path}");
        assert_eq!(answer.header("content-type"), "application/json", "{path}");
        assert_eq!(answer.header("x-correlation-id").len(), 16, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_read_names_what_is_wrong() {
    let (_, rest) = lab(0);
    let broken = Bytes::from_static(b"{\"name\":");
    let answer = rest
        .send(Method::POST, "/v1/load_balancers", broken)
        .await
        .unwrap();
    assert_eq!(answer.said(), (400, "json_error"));
    let order = json!({"name": "n", "load_balancer_type": "lb11", "location": "fsn1"});
    for (field, wrong) in [
        ("name", Value::Null),
        ("load_balancer_type", json!([])),
        ("location", json!("moon")),
        ("network", json!("x")),
        ("labels", json!({"a b": "c"})),
        ("labels", json!({"hetzner.cloud/a": "c"})),
    ] {
        let mut body = order.clone();
        body[field] = wrong;
        let answer = rest.post("/v1/load_balancers", body.clone()).await;
        assert_eq!(answer.said(), (422, "invalid_input"), "{body}");
        assert_eq!(answer.field(), field, "{body}");
    }
    let missing = rest.post("/v1/load_balancers", json!({"name": "n"})).await;
    assert_eq!(missing.field(), "load_balancer_type");
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_and_logged_with_what_they_said() {
    let (cloud, rest) = lab(1);
    let id = rest.balancer("lb").await;
    cloud.reset_calls();
    rest.get("/v1/servers?page=1").await;
    rest.get("/v1/servers/7").await;
    rest.act(id, "change_algorithm", json!({"type": "least_connections"}))
        .await;
    let calls = cloud.calls();
    assert_eq!((calls.reads(), calls.mutations(), calls.total()), (2, 1, 3));
    assert_eq!(calls.of(Operation::ChangeAlgorithm), 1);
    let log = cloud.call_log();
    let operations: Vec<_> = log.iter().map(|call| call.operation).collect();
    let expected = [
        Operation::ListServers,
        Operation::GetServer,
        Operation::ChangeAlgorithm,
    ];
    assert_eq!(operations, expected);
    assert_eq!(log[0].query, "page=1");
    assert_eq!(log[1].resource.as_deref(), Some("7"));
    assert_eq!(log[2].body, json!({"type": "least_connections"}));
    assert_eq!(log[2].token, HetznerCloud::TOKEN);
}

#[tokio::test(start_paused = true)]
async fn the_same_calls_give_the_same_answers() {
    let run = async || {
        let cloud = HetznerCloud::new(Settings::default());
        let rest = Rest::of(&cloud);
        let server = cloud.add_server(ServerSpec::named("n")).unwrap();
        let balancer = rest.balancer("lb").await;
        (server, rest.shown(balancer).await)
    };
    assert_eq!(run().await, run().await);
}
