use std::time::Duration;

use cloudkeel_api::{BudgetRecord, ErrorKind, Priority, Retry};
use serde_json::json;
use tokio::time::Instant;

use super::support::{START, stage, stage_with};
use crate::testing::Reply;
use crate::{CallFailure, Limiter, LimiterSettings, Request};

fn budget_headers(remaining: u64, reset_in: i64) -> Reply {
    Reply::json(200, &json!({}))
        .header("RateLimit-Limit", 100)
        .header("RateLimit-Remaining", remaining)
        .header("RateLimit-Reset", START + reset_in)
}

fn throttled(seconds: u64) -> Reply {
    Reply::json(
        429,
        &json!({"error": {"code": "rate_limit_exceeded", "message": "slow down"}}),
    )
    .header("Retry-After", seconds)
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_waits_for_the_gate_and_is_sent_again() {
    let stage = stage([throttled(7), budget_headers(99, 60)]);
    let before = Instant::now();
    stage.client.send(Request::post("/x")).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(7));
    let delays = stage.observer.delays.lock().unwrap();
    assert_eq!(*delays, [("POST /x".to_owned(), Duration::from_secs(7))]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_opens_too_late_is_an_error_with_the_wait() {
    let stage = stage([throttled(120), budget_headers(99, 60)]);
    let before = Instant::now();
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    let wait = ErrorKind::Throttled {
        retry_after: Some(Duration::from_mins(2)),
    };
    assert_eq!(error.kind(), wait);
    assert!(error.to_string().contains("slow down"), "{error}");
    assert_eq!(CallFailure::of(&error).unwrap().attempts, 1);

    let error = stage.client.send(Request::get("/y")).await.unwrap_err();
    assert_eq!(error.kind(), wait);
    assert!(error.to_string().contains("request budget"), "{error}");
    assert_eq!(stage.sent(), 1, "the second was not even sent");
    assert_eq!(before.elapsed(), Duration::ZERO, "no worker was blocked");
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_shared_by_all_clients_of_a_credential() {
    let limiter = Limiter::default();
    let one = stage_with([throttled(60)], |builder| builder.limiter(limiter.clone()));
    let two = stage_with([budget_headers(99, 60)], |builder| {
        builder.limiter(limiter.clone())
    });
    one.client.send(Request::get("/x")).await.unwrap_err();
    let error = two.client.send(Request::get("/x")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Throttled { .. }));
    assert_eq!(two.sent(), 0);
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_can_have_gates_of_their_own() {
    let stage = stage_with([throttled(60), budget_headers(99, 60)], |builder| {
        builder.write_limiter(Limiter::default())
    });
    stage.client.send(Request::put("/x")).await.unwrap_err();
    stage.client.send(Request::get("/x")).await.unwrap();
    stage.client.send(Request::put("/x")).await.unwrap_err();
    assert_eq!(stage.sent(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_cloud_s_own_numbers_hold_back_the_less_urgent() {
    let stage = stage([
        budget_headers(15, 40),
        budget_headers(14, 40),
        budget_headers(13, 40),
        budget_headers(100, 3640),
    ]);
    let send = |priority| {
        stage.client.send(
            Request::get("/x")
                .priority(priority)
                .budget_wait(Duration::from_secs(45)),
        )
    };
    send(Priority::Background).await.unwrap();
    let first = BudgetRecord {
        limit: 100,
        remaining: 15,
    };
    assert_eq!(stage.observer.budgets.lock().unwrap()[0], first);
    send(Priority::Normal).await.unwrap();
    send(Priority::Urgent).await.unwrap();
    assert!(stage.observer.delays.lock().unwrap().is_empty());
    send(Priority::Background).await.unwrap();
    let delays = stage.observer.delays.lock().unwrap();
    assert_eq!(*delays, [("GET /x".to_owned(), Duration::from_secs(40))]);
}

#[tokio::test(start_paused = true)]
async fn endless_throttling_ends_after_the_attempts() {
    let stage = stage((0..9).map(|_| throttled(2)));
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Throttled { .. }));
    assert_eq!(stage.sent(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_asks_for_no_wait_is_not_hammered() {
    let past = "Fri, 15 Jan 2027 07:00:00 GMT";
    for (case, name, value) in [
        ("zero", "Retry-After", "0"),
        ("a moment", "retry-after-ms", "3"),
        ("a date that has passed", "Retry-After", past),
    ] {
        let refused = || Reply::status(429).header(name, value);
        let stage = stage([refused(), refused(), refused(), budget_headers(99, 60)]);
        let before = Instant::now();
        stage.client.send(Request::get("/x")).await.unwrap();
        assert_eq!(before.elapsed(), Duration::from_secs(1 + 2 + 4), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_refusals_that_ask_for_no_wait_leave_the_pause_to_the_caller() {
    let stage = stage((0..4).map(|_| throttled(0)));
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.retry(), Retry::Backoff, "{error}");
    assert_eq!(stage.sent(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_bounded_by_the_call_s_own_time() {
    let stage = stage_with([budget_headers(99, 60)], |builder| {
        let limiter = Limiter::new(LimiterSettings::default());
        limiter.refused(Some(Duration::from_secs(10)));
        builder.limiter(limiter)
    });
    let request = Request::get("/x").within(Duration::from_secs(5));
    let error = stage.client.send(request).await.unwrap_err();
    let wait = ErrorKind::Throttled {
        retry_after: Some(Duration::from_secs(10)),
    };
    assert_eq!(error.kind(), wait);
    stage.client.send(Request::get("/x")).await.unwrap();
}
