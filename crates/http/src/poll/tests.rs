use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::testing::{Reply, Script};

const SECOND: Duration = Duration::from_secs(1);

fn state(state: &str) -> Reply {
    Reply::json(200, &json!({"status": state}))
}

fn check(response: &Response) -> Result<Progress<u32>, CloudError> {
    let body: Value = response.json()?;
    match body["status"].as_str() {
        Some("Succeeded") => Ok(Progress::Done(42)),
        Some("Failed") => Err(response.error(ErrorKind::Invalid, "the work failed")),
        Some(state) => Ok(Progress::Pending(state.to_owned())),
        None => Err(response.malformed("no status")),
    }
}

async fn poll(
    schedule: PollSchedule,
    replies: impl IntoIterator<Item = Reply>,
) -> (Arc<Script>, Duration, Result<u32, CloudError>) {
    let script = Script::new(replies);
    let client = Client::builder("https://api.example.com")
        .transport(Arc::clone(&script) as _)
        .build()
        .unwrap();
    let started = Instant::now();
    // Spawned, as providers' futures have to be `Send`.
    let result = tokio::spawn(async move {
        let request = Request::get("/operations/1");
        client.poll_until(request, schedule, check).await
    });
    let result = result.await.unwrap();
    (script, started.elapsed(), result)
}

#[tokio::test(start_paused = true)]
async fn it_polls_until_the_work_is_done() {
    for (case, schedule, expected) in [
        ("steady", PollSchedule::every(5 * SECOND), 15_000),
        (
            "after a start",
            PollSchedule::every(5 * SECOND).starting_after(2 * SECOND),
            17_000,
        ),
        (
            "growing",
            PollSchedule::every(2 * SECOND).growing_to(4 * SECOND),
            2_000 + 3_000 + 4_000,
        ),
    ] {
        let replies = [
            state("Running"),
            state("Running"),
            state("Running"),
            state("Succeeded"),
        ];
        let (script, took, result) = poll(schedule, replies).await;
        assert_eq!(result.unwrap(), 42, "{case}");
        assert_eq!(took.as_millis(), expected, "{case}");
        assert_eq!(script.seen().len(), 4, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_clouds_own_pause_wins() {
    let replies = [
        state("Running").header("Retry-After", 17),
        state("Running").header("Retry-After", 0),
        state("Succeeded"),
    ];
    let (_, took, result) = poll(PollSchedule::every(5 * SECOND), replies).await;
    assert_eq!(result.unwrap(), 42);
    assert_eq!(took.as_millis(), 17_100);
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_in_time_and_says_what_it_saw() {
    let schedule = PollSchedule::every(5 * SECOND).within(12 * SECOND);
    let replies = (0..9).map(|_| state("PENDING_CREATE"));
    let (script, took, result) = poll(schedule, replies).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.operation(), "GET /operations/1");
    assert!(
        error
            .to_string()
            .contains("still PENDING_CREATE after 3 looks"),
        "{error}"
    );
    assert!(took <= 12 * SECOND);
    assert_eq!(script.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_state_of_absurd_length_is_quoted_short() {
    let schedule = PollSchedule::every(5 * SECOND).within(2 * SECOND);
    let (_, _, result) = poll(schedule, [state(&"x".repeat(100_000))]).await;
    let text = result.unwrap_err().to_string();
    assert!(text.contains("still xxx"), "{text}");
    assert!(text.len() < 1_000, "{} bytes", text.len());
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_hangs_is_cut_off() {
    let schedule = PollSchedule::every(SECOND).within(4 * SECOND);
    let (_, took, result) = poll(schedule, [state("Running").after(600 * SECOND)]).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(took <= 5 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_poll_is_delayed() {
    let replies = [
        Reply::status(429).header("Retry-After", 60),
        state("Succeeded"),
    ];
    let (_, took, result) = poll(PollSchedule::every(SECOND), replies).await;
    assert_eq!(result.unwrap(), 42);
    assert_eq!(took, 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_waiting() {
    for (case, reply, kind) in [
        ("the work failed", state("Failed"), ErrorKind::Invalid),
        (
            "the operation is gone",
            Reply::status(404),
            ErrorKind::NotFound,
        ),
        ("nonsense", Reply::text(200, "<html>"), ErrorKind::Malformed),
    ] {
        let replies = [state("Running"), reply, state("Succeeded")];
        let (script, _, result) = poll(PollSchedule::every(SECOND), replies).await;
        assert_eq!(result.unwrap_err().kind(), kind, "{case}");
        assert_eq!(script.left(), 1, "{case}");
    }
}
