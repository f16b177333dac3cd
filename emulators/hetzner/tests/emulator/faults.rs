//! Faults by script.

use std::time::Duration;

use bytes::Bytes;
use cloudkeel_emulator_hetzner::{
    CallOutcome, Fault, FaultMatch, HetznerCloud, Operation, ServerSpec, ServerStatus,
};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{SECOND, lab};

#[tokio::test(start_paused = true)]
async fn a_refusal_comes_with_its_code_and_status_and_as_often_as_scripted() {
    let (cloud, rest) = lab(1);
    for (fault, said) in [
        (Fault::code("conflict"), (409, "conflict")),
        (Fault::code("locked"), (423, "locked")),
        (Fault::code("maintenance"), (403, "maintenance")),
        (Fault::code("service_error"), (422, "service_error")),
        (
            Fault::code("resource_unavailable"),
            (412, "resource_unavailable"),
        ),
        (
            Fault::code("no_space_left_in_location"),
            (422, "no_space_left_in_location"),
        ),
        (Fault::code("robot_unavailable"), (503, "robot_unavailable")),
        (Fault::status(500), (500, "server_error")),
        (Fault::status(502), (502, "bad_gateway")),
        (Fault::status(503), (503, "unavailable")),
        (Fault::status(504), (504, "timeout")),
        (Fault::status(429), (429, "rate_limit_exceeded")),
        (Fault::status(401), (401, "unauthorized")),
        (Fault::status(404), (404, "not_found")),
    ] {
        cloud
            .faults()
            .times(Operation::ListServers, 2, fault.clone());
        for _ in 0..2 {
            assert_eq!(rest.get("/v1/servers").await.said(), said, "{fault:?}");
        }
        assert_eq!(rest.get("/v1/servers").await.status, 200, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_does_not_happen() {
    let (cloud, rest) = lab(0);
    cloud
        .faults()
        .once(Operation::CreateLoadBalancer, Fault::status(503));
    let order = json!({"name": "lb", "load_balancer_type": "lb11", "location": "fsn1"});
    assert_eq!(rest.post("/v1/load_balancers", order).await.status, 503);
    assert!(cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proxy_in_front_of_the_cloud_answers_without_json() {
    let (cloud, rest) = lab(0);
    cloud
        .faults()
        .once(Operation::ListServers, Fault::Bare { status: 502 });
    let answer = rest.get("/v1/servers").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (502, "text/html")
    );
    assert_eq!(answer.body, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_before_or_after_it_happens() {
    let (cloud, rest) = lab(0);
    let order = json!({"name": "lb", "load_balancer_type": "lb11", "location": "fsn1"});
    for (fault, outcome, made) in [
        (Fault::BrokenBefore, CallOutcome::BrokenBefore, 0),
        (Fault::BrokenAfter, CallOutcome::BrokenAfter, 1),
    ] {
        cloud
            .faults()
            .once(Operation::CreateLoadBalancer, fault.clone());
        let body = Bytes::from(order.to_string());
        let answer = rest.send(Method::POST, "/v1/load_balancers", body).await;
        assert!(answer.is_none(), "{fault:?}: {answer:?}");
        assert_eq!(cloud.load_balancers().len(), made, "{fault:?}");
        assert_eq!(cloud.call_log().last().unwrap().outcome, outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_answer() {
    let (cloud, rest) = lab(0);
    cloud.faults().once(Operation::ListServers, Fault::NoAnswer);
    let patience = Duration::from_hours(1);
    let answer = tokio::time::timeout(patience, rest.get("/v1/servers")).await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(cloud.call_log()[0].outcome, CallOutcome::Unanswered);
    assert_eq!(cloud.call_log()[0].fault, Some(Fault::NoAnswer));
}

#[tokio::test(start_paused = true)]
async fn pages_lie_in_every_way() {
    let (cloud, rest) = lab(60);
    for (fault, shown, next, total) in [
        (Fault::TruncatedPage, 49, json!(2), 60),
        (Fault::LostNextPage, 50, Value::Null, 60),
        (Fault::EmptyList, 0, Value::Null, 0),
    ] {
        cloud.faults().once(
            FaultMatch::from(Operation::ListServers).for_page(1),
            fault.clone(),
        );
        let second = rest.get("/v1/servers?page=2&per_page=50").await;
        assert_eq!(second.ids("servers").len(), 10, "{fault:?}");
        let first = rest.get("/v1/servers?page=1&per_page=50").await;
        assert_eq!(first.ids("servers").len(), shown, "{fault:?}");
        let pages = &first.body["meta"]["pagination"];
        assert_eq!(
            (&pages["next_page"], &pages["total_entries"]),
            (&next, &json!(total)),
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_cut_or_empty() {
    let (cloud, rest) = lab(1);
    for fault in [Fault::MalformedJson, Fault::EmptyBody] {
        cloud.faults().once(Operation::ListServers, fault.clone());
        let answer = rest.get("/v1/servers").await;
        assert_eq!(
            (answer.status, &answer.body),
            (200, &Value::Null),
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_stale_slow_or_that_of_another_project() {
    let (cloud, rest) = lab(1);
    let id = cloud.servers()[0].id;
    let path = format!("/v1/servers/{id}");
    tokio::time::advance(SECOND * 60).await;
    cloud.set_status(id, ServerStatus::Off).unwrap();
    cloud
        .faults()
        .once(Operation::GetServer, Fault::Stale { by: SECOND * 30 });
    assert_eq!(rest.get(&path).await.body["server"]["status"], "running");
    assert_eq!(rest.get(&path).await.body["server"]["status"], "off");

    let start = Instant::now();
    cloud
        .faults()
        .once(Operation::GetServer, Fault::Slow { by: SECOND * 7 });
    rest.get(&path).await;
    assert_eq!(start.elapsed(), SECOND * 7, "on the paused clock");

    cloud.add_project("other");
    let there = cloud
        .add_server_in("other", ServerSpec::named("there"))
        .unwrap()
        .id;
    let fault = Fault::OtherProject {
        project: "other".to_owned(),
    };
    cloud.faults().once(Operation::ListServers, fault);
    assert_eq!(rest.get("/v1/servers").await.ids("servers"), [there]);
    assert_eq!(rest.get("/v1/servers").await.ids("servers"), [id]);
}

#[tokio::test(start_paused = true)]
async fn a_script_matches_a_resource_or_a_token_and_can_be_cleared() {
    let (cloud, rest) = lab(2);
    let ids: Vec<u64> = cloud.servers().iter().map(|server| server.id).collect();
    let one = FaultMatch::from(Operation::GetServer).about(ids[0]);
    cloud.faults().always(one, Fault::status(500));
    assert_eq!(
        rest.get(&format!("/v1/servers/{}", ids[0])).await.status,
        500
    );
    assert_eq!(
        rest.get(&format!("/v1/servers/{}", ids[1])).await.status,
        200
    );
    cloud.faults().clear();
    assert_eq!(
        rest.get(&format!("/v1/servers/{}", ids[0])).await.status,
        200
    );
    let mine = FaultMatch::any().with_token(HetznerCloud::TOKEN);
    cloud.faults().always(mine, Fault::code("forbidden"));
    assert_eq!(rest.get("/v1/locations").await.said(), (403, "forbidden"));
    assert_eq!(cloud.faults().rules().len(), 1);
}
