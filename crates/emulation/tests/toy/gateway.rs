//! What every call meets.

use std::time::Duration;

use cloudkeel_emulation::{
    CallOutcome, CommonFault, Consistency, FaultInjector as _, FaultMatch, FaultTiming, Latency,
    RateLimit,
};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cloud::{Fault, Operation, Settings, Toy, json_of};

#[tokio::test(start_paused = true)]
async fn calls_are_counted_logged_and_numbered_and_the_log_forgets_the_oldest() {
    let toy = Toy::new(Settings::default());
    assert_eq!(toy.create("a").await, 201);
    for _ in 0..3 {
        toy.get("/disks").await;
    }
    let calls = toy.calls();
    assert_eq!((calls.total(), calls.reads(), calls.mutations()), (4, 3, 1));
    assert_eq!(calls.of(Operation::ListDisks), 3);
    let log = toy.call_log();
    assert_eq!(log.len(), 3, "no more than it may keep");
    assert_eq!(log[0].request_id, "call-2");
    assert_eq!(log[0].outcome, CallOutcome::Status(200));
    let answer = toy
        .send(Toy::TOKEN, Method::GET, "/disks/1", "")
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-id"], "call-5");
    assert_eq!(toy.call_log()[2].resource.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_refused_meets_no_fault() {
    let toy = Toy::new(Settings {
        rate_limit: Some(RateLimit {
            burst: 1,
            refill: Duration::from_secs(10),
        }),
        ..Settings::default()
    });
    toy.faults().always(FaultMatch::any(), Fault::status(500));
    for (case, token, method, expected) in [
        ("no token", "", Method::GET, 403),
        ("a reader that writes", "reader", Method::POST, 403),
        ("the first call", Toy::TOKEN, Method::GET, 500),
        ("the next call", Toy::TOKEN, Method::GET, 429),
    ] {
        let answer = toy.send(token, method, "/disks", "").await.unwrap();
        assert_eq!(answer.status(), expected, "{case}");
        assert_eq!(answer.headers()["ratelimit-limit"], "1", "{case}");
    }
    assert_eq!(toy.call_log()[2].fault, None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_what_a_refused_caller_sends() {
    let toy = Toy::new(Settings::default());
    for (token, kept) in [("", Value::Null), (Toy::TOKEN, json!("a"))] {
        let sent = toy.send(token, Method::POST, "/disks", "\"a\"").await;
        sent.unwrap();
        assert_eq!(toy.call_log().last().unwrap().body, kept, "{token:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_common_fault_does_what_it_says() {
    let toy = Toy::new(Settings::default());
    toy.create("a").await;
    tokio::time::advance(Duration::from_mins(1)).await;
    toy.create("b").await;
    let by = Duration::from_secs(5);
    let other = "other".to_owned();
    for (fault, status, body) in [
        (Fault::TruncatedPage, 200, r#"["\"a\""] 2"#),
        (Fault::Stale { by }, 200, r#"["\"a\""] 1"#),
        (Fault::Slow { by }, 200, r#"["\"a\"","\"b\""] 2"#),
        (Fault::OtherProject { project: other }, 200, "[] null"),
        (Fault::MalformedJson, 200, "null null"),
        (Fault::Html, 200, "null null"),
        (Fault::EmptyBody, 200, "null null"),
        (Fault::status(503), 503, "null null"),
    ] {
        toy.faults().once(Operation::ListDisks, fault.clone());
        let began = Instant::now();
        let (answered, list) = toy.get("/disks").await;
        let seen = format!("{} {}", list["disks"], list["total"]);
        assert_eq!((answered, seen.as_str()), (status, body), "{fault:?}");
        let slow = matches!(fault, Fault::Slow { .. });
        assert_eq!(began.elapsed() >= by, slow, "{fault:?}");
        assert_eq!(toy.call_log()[2].fault.as_ref(), Some(&fault));
    }
    assert_eq!(toy.faults().rules(), [], "all of them are used up");
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_before_or_after_it_happened_or_there_is_no_answer() {
    let toy = Toy::new(Settings::default());
    for (fault, outcome, disks) in [
        (Fault::BrokenBefore, CallOutcome::BrokenBefore, 0),
        (Fault::BrokenAfter, CallOutcome::BrokenAfter, 1),
        (Fault::NoAnswer, CallOutcome::Unanswered, 1),
    ] {
        toy.faults().once(Operation::CreateDisk, fault.clone());
        let sent = toy.send(Toy::TOKEN, Method::POST, "/disks", "\"a\"");
        let hour = Duration::from_hours(1);
        let answer = tokio::time::timeout(hour, sent).await;
        assert!(!matches!(answer, Ok(Ok(_))), "{fault:?}");
        assert_eq!(toy.call_log().last().unwrap().outcome, outcome);
        let (_, list) = toy.get("/disks").await;
        assert_eq!(list["total"], disks, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn latency_and_lag_follow_the_settings_and_jitter_the_seed() {
    let fixed = Duration::from_secs(1);
    let jitter = Duration::from_secs(2);
    let settings = Settings {
        latency: Latency { fixed, jitter },
        consistency: Consistency::both(Duration::from_mins(1)),
        ..Settings::default()
    };
    let mut waits = Vec::new();
    for _ in 0..2 {
        let toy = Toy::new(settings);
        let began = Instant::now();
        toy.create("a").await;
        waits.push(began.elapsed());
        let (_, list) = toy.get("/disks").await;
        assert_eq!(list["total"], 0, "not to be seen yet");
    }
    assert_eq!(waits[0], waits[1], "the same seed");
    assert!((fixed..=fixed + jitter).contains(&waits[0]), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_in_the_api_is_refused_in_its_form() {
    let toy = Toy::new(Settings::default());
    for (method, path, status) in [(Method::GET, "/nothing", 404), (Method::PUT, "/disks", 405)] {
        let answer = toy.send(Toy::TOKEN, method, path, "").await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert!(json_of(&answer)["error"].is_string(), "{path}");
        assert!(answer.headers().contains_key("x-id"), "{path}");
    }
    assert_eq!(toy.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn faults_are_injected_by_the_count_of_changes() {
    let toy = Toy::new(Settings::default());
    let refused = CommonFault::status(500);
    for (case, when, expected) in [
        ("the second", FaultTiming::Mutation(2), [201, 500, 201]),
        ("from it on", FaultTiming::MutationsFrom(2), [201, 500, 500]),
        ("always", FaultTiming::Always, [500, 500, 500]),
    ] {
        assert!(toy.inject(when, refused.clone()), "{case}");
        let mut seen = Vec::new();
        for _ in 0..3 {
            if when != FaultTiming::Always {
                assert_eq!(toy.get("/disks").await.0, 200, "{case}: a read meets none");
            }
            seen.push(toy.create("a").await);
        }
        assert_eq!(seen, expected, "{case}");
        toy.clear_faults();
    }
    let totals = toy.call_totals();
    assert_eq!((totals.total, totals.mutating), (15, 9));
}
