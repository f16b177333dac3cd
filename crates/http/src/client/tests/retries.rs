use std::time::Duration;

use cloudkeel_api::{ErrorKind, Priority};
use serde_json::json;
use tokio::time::Instant;

use super::support::{Call, stage, stage_with};
use crate::testing::Reply;
use crate::{
    CallFailure, CodeTable, HeaderAuth, Request, RetryHint, RetryPolicy, StatusMap,
    TransportErrorKind,
};

fn ok() -> Reply {
    Reply::json(200, &json!({"ok": true}))
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_depends_on_the_failure_and_the_method() {
    let get = || Request::get("/x");
    let post = || Request::post("/x");
    let unsent = Reply::broken(TransportErrorKind::Unsent);
    let broken = Reply::broken(TransportErrorKind::Broken);
    let slow = ok().after(Duration::from_secs(16));
    for (case, request, first, attempts) in [
        ("503, GET", get(), Reply::status(503), 2),
        ("503, POST", post(), Reply::status(503), 1),
        (
            "503, idempotent POST",
            post().idempotent(true),
            Reply::status(503),
            2,
        ),
        (
            "503, fragile PUT",
            Request::put("/x").idempotent(false),
            Reply::status(503),
            1,
        ),
        ("503, DELETE", Request::delete("/x"), Reply::status(503), 2),
        ("504, GET", get(), Reply::status(504), 2),
        ("429, GET", get(), Reply::status(429), 2),
        ("429, POST", post(), Reply::status(429), 2),
        ("no connection, POST", post(), unsent.clone(), 2),
        ("broken connection, GET", get(), broken.clone(), 2),
        ("broken connection, POST", post(), broken.clone(), 1),
        ("timeout, GET", get(), slow.clone(), 2),
        ("timeout, POST", post(), slow.clone(), 1),
        ("404", get(), Reply::status(404), 1),
        ("409", get(), Reply::status(409), 1),
        ("501", get(), Reply::status(501), 1),
        (
            "untrusted",
            get(),
            Reply::broken(TransportErrorKind::Untrusted),
            1,
        ),
        (
            "too large",
            get(),
            Reply::broken(TransportErrorKind::TooLarge),
            1,
        ),
    ] {
        let stage = stage([first, ok()]);
        let result = stage.client.send(request).await;
        assert_eq!(stage.sent(), attempts, "{case}");
        assert_eq!(result.is_ok(), attempts == 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_the_cloud_certainly_did_nothing() {
    let unsent = Reply::broken(TransportErrorKind::Unsent);
    let broken = Reply::broken(TransportErrorKind::Broken);
    let refused = Reply::status(403);
    for (case, replies, had_no_effect) in [
        ("refused", vec![refused.clone()], true),
        ("too many requests", vec![Reply::status(429); 4], true),
        ("too slow for the cloud", vec![Reply::status(408); 4], false),
        ("an overloaded cloud", vec![Reply::status(503); 4], false),
        ("never sent", vec![unsent.clone(); 4], true),
        ("a broken connection", vec![broken.clone(); 4], false),
        (
            "refused after a broken connection",
            vec![broken, refused.clone()],
            false,
        ),
        ("refused after none", vec![unsent, refused], true),
        (
            "refused by a code, with a status that says nothing",
            vec![Reply::json(500, &json!({"error": {"code": "locked"}}))],
            true,
        ),
        (
            "a code that is not known",
            vec![Reply::json(501, &json!({"error": {"code": "odd"}}))],
            false,
        ),
    ] {
        let request = Request::put("/x");
        let stage = stage(replies);
        let error = stage.client.send(request).await.unwrap_err();
        assert_eq!(error.had_no_effect(), had_no_effect, "{case}: {error}");
        assert_eq!(stage.script.left(), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_error_keeps_everything_about_the_call() {
    let refusal = || {
        Reply::json(
            503,
            &json!({"error": {"code": "maintenance", "message": "back soon"}}),
        )
        .header("X-Request-Id", "req-42")
        .after(Duration::from_secs(1))
    };
    let stage = stage((0..4).map(|_| refusal()));
    let request = Request::get("/servers/{id}").param("id", 7).query("a", "b");
    let error = stage.client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.operation(), "GET /servers/{id}");
    assert_eq!(error.request_id(), Some("req-42"));
    let failure = CallFailure::of(&error).unwrap();
    assert_eq!(failure.method, "GET");
    assert_eq!(failure.url, "https://api.example.com/v1/servers/7?a=b");
    assert_eq!(failure.attempts, 4);
    assert_eq!(failure.code.as_deref(), Some("maintenance"));
    assert_eq!(failure.status.unwrap(), 503);
    assert_eq!(failure.headers["x-request-id"], "req-42");
    assert!(failure.elapsed >= Duration::from_secs(4));
    let text = error.to_string();
    for part in [
        "back soon",
        "HTTP 503 maintenance",
        "4 attempts in",
        "req-42",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_reported() {
    let stage = stage([
        Reply::status(503).after(Duration::from_millis(20)),
        Reply::broken(TransportErrorKind::Broken),
        Reply::json(422, &json!({"error": {"code": "locked"}})),
    ]);
    let request = Request::put("/servers/{id}")
        .param("id", 7)
        .priority(Priority::Urgent);
    stage.client.send(request).await.unwrap_err();
    let call = |status, error, millis, attempt| Call {
        operation: "PUT /servers/{id}".to_owned(),
        mutating: true,
        priority: Priority::Urgent,
        status,
        error: Some(error),
        duration: Duration::from_millis(millis),
        attempt,
    };
    assert_eq!(
        *stage.observer.calls.lock().unwrap(),
        [
            call(Some(503), ErrorKind::Unavailable, 20, 1),
            call(None, ErrorKind::Unavailable, 0, 2),
            call(Some(422), ErrorKind::Busy, 0, 3),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_named_pause_is_kept() {
    for (case, header, seconds) in [
        ("seconds", "11", 11),
        ("date", "Fri, 15 Jan 2027 08:00:09 GMT", 9),
    ] {
        let stage = stage([Reply::status(503).header("Retry-After", header), ok()]);
        let before = Instant::now();
        stage.client.send(Request::get("/x")).await.unwrap();
        let waited = before.elapsed();
        assert_eq!(waited.as_secs(), seconds, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_nothing_is_no_pause_that_the_cloud_named() {
    let stage = stage([Reply::status(503).header("Retry-After", "0"), ok()]);
    let before = Instant::now();
    stage.client.send(Request::get("/x")).await.unwrap();
    assert!(before.elapsed() > Duration::ZERO, "it has a pause of ours");
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_time_allowed_ends_the_call_at_once() {
    let stage = stage([Reply::status(503).header("Retry-After", "61"), ok()]);
    let before = Instant::now();
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(stage.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_whole_call_is_bounded() {
    let stage = stage((0..10).map(|_| ok().after(Duration::from_hours(1))));
    let before = Instant::now();
    let request = Request::get("/x").within(Duration::from_secs(40));
    let error = stage.client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(
        before.elapsed() <= Duration::from_secs(41),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(stage.sent(), 3, "15 s, 15 s and what was left");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_has_its_own_bound() {
    let stage = stage([ok().after(Duration::from_secs(3)), ok()]);
    let request = Request::get("/x").attempt_timeout(Duration::from_secs(2));
    stage.client.send(request).await.unwrap();
    let calls = stage.observer.calls.lock().unwrap();
    assert_eq!(calls[0].error, Some(ErrorKind::Timeout));
    assert_eq!(calls[0].duration, Duration::from_secs(2));
    assert_eq!(calls[1].error, None);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_sends_nothing_more() {
    let stage = stage([Reply::status(503).header("Retry-After", "30"), ok()]);
    let client = stage.client.clone();
    let call = tokio::spawn(async move { client.send(Request::get("/x")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(stage.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_dropped_under_way_is_reported_too() {
    let stage = stage([ok().after(Duration::from_secs(10))]);
    let client = stage.client.clone();
    let call = tokio::spawn(async move { client.send(Request::post("/x")).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let calls = stage.observer.calls.lock().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].error, Some(ErrorKind::Cancelled));
    assert_eq!(calls[0].duration, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn accepted_statuses_are_answers() {
    let stage = stage([
        Reply::status(404),
        Reply::json(300, &json!({"versions": []})),
    ]);
    let not_found = http::StatusCode::NOT_FOUND;
    let answer = stage
        .client
        .send(Request::delete("/x").accept(not_found))
        .await
        .unwrap();
    assert_eq!(answer.status(), not_found);
    let choices = http::StatusCode::MULTIPLE_CHOICES;
    let answer = stage.client.send(Request::get("/").accept(choices)).await;
    assert_eq!(answer.unwrap().status(), choices);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed_but_named() {
    let moved = Reply::status(301).header("Location", "https://joe:hunter2@new.example.com/v3");
    let stage = stage([moved]);
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("@new.example.com/v3"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert_eq!(stage.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_place_that_a_redirect_names_is_quoted_short_and_without_the_credential() {
    let place = format!("https://new.example.com/s3cr3t-token/{}", "x".repeat(5_000));
    let stage = stage_with([Reply::status(302).header("Location", place)], |builder| {
        builder.authorizer(HeaderAuth::bearer("s3cr3t-token".into()))
    });
    let text = stage
        .client
        .send(Request::get("/x"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("https://new.example.com/[redacted]/xxx"),
        "{text}"
    );
    assert!(text.len() < 1_000, "{} bytes", text.len());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_absurd_length_is_neither_read_nor_kept() {
    let pad = "x".repeat(300 * 1024);
    let refusal = json!({"error": {"code": "not_found", "message": "no such server"}, "pad": pad});
    let stage = stage([Reply::json(404, &refusal)]);
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed, "the code was not read");
    assert!(CallFailure::of(&error).unwrap().body.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_table_can_say_that_trying_again_is_safe() {
    let conflict = || Reply::json(409, &json!({"error": {"code": "conflict"}}));
    let stage = stage_with([conflict(), ok()], |builder| {
        let table = CodeTable::new("/error/code", "/error/message");
        builder.error_map(table.row("conflict", ErrorKind::Conflict, RetryHint::Safe))
    });
    stage.client.send(Request::post("/x")).await.unwrap();
    assert_eq!(stage.sent(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_can_be_limited_to_one_attempt() {
    let stage = stage_with([Reply::status(503), ok()], |builder| {
        builder.retry(RetryPolicy::never()).error_map(StatusMap)
    });
    stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(stage.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn common_headers_are_sent_and_a_requests_own_win() {
    let stage = stage_with([ok(), ok()], |builder| {
        builder
            .user_agent("hcloud/1")
            .header("Accept-Language", "en")
    });
    stage.client.send(Request::get("/x")).await.unwrap();
    let own = Request::get("/x").header("accept", "text/plain");
    stage.client.send(own).await.unwrap();
    let seen = stage.script.seen();
    assert_eq!(seen[0].headers()["user-agent"], "hcloud/1");
    assert_eq!(seen[0].headers()["accept"], "application/json");
    assert_eq!(seen[0].headers()["accept-language"], "en");
    let accepted: Vec<_> = seen[1].headers().get_all("accept").iter().collect();
    assert_eq!(accepted, ["text/plain"]);
}
