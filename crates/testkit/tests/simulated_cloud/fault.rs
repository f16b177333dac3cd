//! Each fault as it shows on the wire.

use cloudkeel_provider_local::wire::ErrorCode;
use cloudkeel_testkit::simulated_cloud::{
    CallOutcome, Fault, FaultMatch, Operation, Permission, Settings, SimulatedCloud,
};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, timeout};

use crate::support::{Rest, SECOND, cloud_with};

#[tokio::test(start_paused = true)]
async fn a_scripted_status_comes_with_its_code_and_nothing_happens() {
    let cloud = cloud_with(0);
    let rest = Rest::of(&cloud);
    for (status, code) in [
        (400, "invalid"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (412, "conflict"),
        (422, "invalid"),
        (423, "locked"),
        (429, "rate_limited"),
        (500, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "unavailable"),
    ] {
        cloud
            .faults()
            .once(Operation::CreateMachine, Fault::status(status));
        let answer = rest.post("/v1/machines", json!({"name": "a"})).await;
        assert_eq!((answer.status, answer.code()), (status, code));
    }
    assert_eq!(cloud.machines().len(), 0);
    let limited = Fault::too_many_calls(Some(7));
    let coded = Fault::Status {
        status: 409,
        code: Some(ErrorCode::AlreadyExists),
        retry_after_seconds: None,
    };
    cloud
        .faults()
        .once(Operation::ReadScope, limited)
        .once(Operation::ReadScope, coded);
    assert_eq!(rest.get("/v1/scope").await.header("retry-after"), "7");
    assert_eq!(rest.get("/v1/scope").await.code(), "already_exists");
    assert_eq!(
        rest.get("/v1/scope").await.status,
        200,
        "the script is over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_loses_the_answer_before_or_after_the_effect() {
    let cloud = cloud_with(0);
    let rest = Rest::of(&cloud);
    for (fault, made, outcome) in [
        (Fault::BrokenBefore, 0, CallOutcome::BrokenBefore),
        (Fault::BrokenAfter, 1, CallOutcome::BrokenAfter),
    ] {
        cloud.faults().once(Operation::CreateMachine, fault);
        let body = json!({"name": "a"});
        let answer = rest
            .try_call(Method::POST, "/v1/machines", body, None)
            .await;
        assert!(answer.is_none(), "{outcome:?}");
        assert_eq!(cloud.machines().len(), made, "{outcome:?}");
        assert_eq!(cloud.call_log().last().unwrap().outcome, outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_never_answers_keeps_the_caller_waiting_and_does_nothing() {
    let cloud = cloud_with(0);
    cloud
        .faults()
        .once(Operation::CreateMachine, Fault::NoAnswer);
    let rest = Rest::of(&cloud);
    let call = rest.post("/v1/machines", json!({"name": "a"}));
    assert!(timeout(SECOND * 3600, call).await.is_err());
    assert_eq!(cloud.machines().len(), 0);
    assert_eq!(cloud.call_log()[0].outcome, CallOutcome::Unanswered);
}

#[tokio::test(start_paused = true)]
async fn pages_can_lie_about_what_is_missing() {
    let cloud = cloud_with(60);
    let rest = Rest::of(&cloud);
    for (fault, items, total, has_next) in [
        (Fault::TruncatedPage, 49, 60, true),
        (Fault::LostNextPage, 50, 60, false),
        (Fault::EmptyList, 0, 0, false),
    ] {
        cloud.faults().once(Operation::ListMachines, fault.clone());
        let page = rest.get("/v1/machines").await;
        assert_eq!(page.ids().len(), items, "{fault:?}");
        assert_eq!(page.body["page"]["total"], total, "{fault:?}");
        assert_eq!(page.body["page"]["next"].is_string(), has_next, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_can_be_cut_off_be_html_or_be_empty_whatever_the_answer_was() {
    let cloud = cloud_with(1);
    let id = cloud.machines()[0].id;
    let rest = Rest::of(&cloud);
    for fault in [Fault::MalformedJson, Fault::Html, Fault::EmptyBody] {
        for path in [format!("/v1/machines/{id}"), "/v1/machines/999".into()] {
            cloud.faults().once(Operation::GetMachine, fault.clone());
            let answer = rest.get(&path).await;
            assert_eq!(answer.body, Value::Null, "{fault:?} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_shows_what_was_then() {
    let cloud = cloud_with(1);
    let id = cloud.machines()[0].id;
    advance(SECOND * 60).await;
    cloud.rename(id, "renamed").unwrap();
    advance(SECOND * 60).await;
    let rest = Rest::of(&cloud);
    let path = format!("/v1/machines/{id}");
    for (by, status, name) in [
        (30, 200, json!("renamed")),
        (90, 200, json!("node-0")),
        (150, 404, Value::Null),
    ] {
        let by = SECOND * by;
        cloud
            .faults()
            .once(Operation::GetMachine, Fault::Stale { by });
        let answer = rest.get(&path).await;
        assert_eq!(answer.status, status, "{by:?}");
        assert_eq!(answer.body["name"], name, "{by:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_takes_its_time_on_the_paused_clock() {
    let cloud = cloud_with(1);
    cloud
        .faults()
        .once(Operation::ReadScope, Fault::Slow { by: SECOND * 90 });
    let before = Instant::now();
    assert_eq!(Rest::of(&cloud).get("/v1/scope").await.status, 200);
    assert_eq!(before.elapsed(), SECOND * 90);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_another_project_says_so_unless_the_cloud_is_silent_about_it() {
    let cloud = cloud_with(1);
    let id = cloud.machines()[0].id;
    cloud.add_project("other");
    let rest = Rest::of(&cloud);
    let fault = Fault::OtherProject {
        project: "other".into(),
    };
    cloud.faults().always(Operation::GetMachine, fault);
    let wrong = rest.get(&format!("/v1/machines/{id}")).await;
    assert_eq!((wrong.status, wrong.code()), (404, "not_found"));
    assert_eq!(wrong.header("x-project"), "other");
    cloud.change_settings(|settings| settings.features.tells_project = false);
    let silent = rest.get(&format!("/v1/machines/{id}")).await;
    assert!(!silent.headers.contains_key("x-project"));
}

#[tokio::test(start_paused = true)]
async fn faults_apply_by_operation_token_and_resource_as_often_as_asked() {
    let cloud = cloud_with(2);
    let ids: Vec<u64> = cloud.machines().iter().map(|m| m.id).collect();
    cloud.grant("t2", SimulatedCloud::PROJECT, Permission::ReadWrite);
    let (one, two) = (Rest::of(&cloud), Rest::with_token(&cloud, "t2"));
    let path = |id: u64| format!("/v1/machines/{id}");

    let only_first = FaultMatch::from(Operation::GetMachine).about(ids[0]);
    cloud.faults().times(only_first, 2, Fault::status(503));
    assert_eq!(one.get(&path(ids[1])).await.status, 200);
    for status in [503, 503, 200] {
        assert_eq!(one.get(&path(ids[0])).await.status, status);
    }

    cloud
        .faults()
        .always(FaultMatch::any().with_token("t2"), Fault::status(500));
    for _ in 0..3 {
        assert_eq!(two.get("/v1/routes").await.status, 500);
        assert_eq!(one.get("/v1/routes").await.status, 200);
    }
    assert_eq!(cloud.faults().rules().len(), 1);
    cloud.faults().clear();
    assert_eq!(two.get("/v1/routes").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_get_in_uses_up_no_fault() {
    let cloud = cloud_with(0);
    cloud.faults().once(FaultMatch::any(), Fault::status(500));
    assert_eq!(
        Rest::with_token(&cloud, "x").get("/v1/scope").await.status,
        401
    );
    assert_eq!(Rest::of(&cloud).get("/v1/scope").await.status, 500);
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_kind_and_logged_in_order_up_to_a_bound() {
    let cloud = SimulatedCloud::new(Settings {
        log_capacity: 3,
        ..Settings::default()
    });
    let rest = Rest::of(&cloud);
    rest.get("/v1/scope").await;
    rest.post("/v1/machines", json!({"name": "a"})).await;
    cloud
        .faults()
        .once(Operation::GetMachine, Fault::status(503));
    advance(SECOND * 5).await;
    rest.get("/v1/machines/7").await;
    rest.get("/v1/machines?name=a").await;
    let calls = cloud.calls();
    assert_eq!((calls.total(), calls.reads(), calls.mutations()), (4, 3, 1));
    assert_eq!(calls.of(Operation::GetMachine), 1);
    assert_eq!(calls.iter().count(), 4);

    let log = cloud.call_log();
    assert_eq!(log.len(), 3, "the oldest is forgotten");
    let refused = &log[1];
    assert_eq!(refused.operation, Operation::GetMachine);
    assert_eq!(refused.at, SECOND * 5);
    assert_eq!(refused.token, SimulatedCloud::TOKEN);
    assert_eq!(refused.resource.as_deref(), Some("7"));
    assert_eq!(refused.fault, Some(Fault::status(503)));
    assert_eq!(refused.outcome, CallOutcome::Status(503));
    assert_eq!(refused.request_id, "req-000003");
    assert_eq!(log[2].query, "name=a");

    cloud.reset_calls();
    assert_eq!(cloud.calls().total(), 0);
    assert!(cloud.call_log().is_empty());
}
