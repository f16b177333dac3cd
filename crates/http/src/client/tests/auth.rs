use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Secret, SystemClock};
use http::HeaderName;
use serde_json::{Value, json};

use super::support::{Stage, stage_with};
use crate::testing::Reply;
use crate::{CodeTable, HeaderAuth, Refusal, Request, Token, TokenCache, TokenSource};

/// Returns `t1`, `t2`, …, as many as `good` says, then rejects logins.
struct Logins {
    count: AtomicU32,
    good: u32,
    takes: Duration,
}

#[async_trait]
impl TokenSource for Logins {
    async fn fetch(&self) -> Result<Token, CloudError> {
        tokio::time::sleep(self.takes).await;
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if number > self.good {
            return Err(CloudError::new(
                "login",
                ErrorKind::Unauthenticated,
                "wrong password",
            ));
        }
        Ok(Token {
            value: Secret::new(format!("t{number}")),
            expires_at: None,
        })
    }
}

fn with_logins(
    good: u32,
    takes: u64,
    replies: impl IntoIterator<Item = Reply>,
) -> (Stage, Arc<Logins>) {
    let logins = Arc::new(Logins {
        count: AtomicU32::new(0),
        good,
        takes: Duration::from_secs(takes),
    });
    let source: Arc<dyn TokenSource> = Arc::clone(&logins) as _;
    let tokens = Arc::new(TokenCache::new(source, Arc::new(SystemClock)));
    let header = HeaderName::from_static("x-auth-token");
    let stage = stage_with(replies, |builder| {
        builder.authorizer(HeaderAuth::header_from(header, tokens))
    });
    (stage, logins)
}

fn tokens_sent(stage: &Stage) -> Vec<String> {
    let seen = stage.script.seen();
    let tokens = seen.iter().map(|request| {
        let token = request.headers().get("x-auth-token");
        token
            .map_or("none", |token| token.to_str().unwrap())
            .to_owned()
    });
    tokens.collect()
}

fn ok() -> Reply {
    Reply::json(200, &json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_leads_to_one_login_and_one_more_attempt() {
    let (stage, logins) = with_logins(9, 0, [ok(), Reply::status(401), ok(), ok()]);
    for _ in 0..3 {
        stage.client.send(Request::post("/x")).await.unwrap();
    }
    assert_eq!(tokens_sent(&stage), ["t1", "t1", "t2", "t2"]);
    assert_eq!(logins.count.load(Ordering::Relaxed), 2);
    let calls = stage.observer.calls.lock().unwrap();
    assert_eq!(calls[1].error, Some(ErrorKind::Unauthenticated));
    assert_eq!((calls[2].error, calls[2].attempt), (None, 2));
}

/// An expired session has a code of its own in JSON with any status.
fn table() -> CodeTable {
    fn in_success(body: &[u8]) -> Option<Refusal> {
        let fault = serde_json::from_slice::<Value>(body).ok()?;
        let code = fault.get("fault")?.as_str()?.to_owned();
        Some(Refusal {
            code: Some(code),
            ..Refusal::default()
        })
    }
    CodeTable::new("/fault", "/text")
        .in_success(in_success)
        .on("NotAuthenticated", ErrorKind::Unauthenticated)
        .on("ReadOnlyToken", ErrorKind::Denied)
        .on("Partial", ErrorKind::Incomplete)
}

#[tokio::test(start_paused = true)]
async fn the_meaning_of_an_answer_leads_to_a_login_and_not_its_status() {
    for (case, status, fault, logins) in [
        ("a SOAP fault", 500, "NotAuthenticated", 2),
        ("an expired signature", 400, "NotAuthenticated", 2),
        ("a fault in a good answer", 200, "NotAuthenticated", 2),
        ("401 without a code of the table", 401, "odd", 2),
        ("401 that is no matter of login", 401, "ReadOnlyToken", 1),
        ("another fault in a good answer", 200, "Partial", 1),
        ("an unknown fault", 403, "odd", 1),
    ] {
        let refused = Reply::json(status, &json!({"fault": fault}));
        let (stage, count) = with_logins(9, 0, [refused, ok()]);
        let client = stage.client.derive().error_map(table()).build().unwrap();
        let answer = client.send(Request::post("/x")).await;
        assert_eq!(answer.is_ok(), logins == 2, "{case}");
        assert_eq!(count.count.load(Ordering::Relaxed), logins, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_good_answer_is_an_error_of_its_kind() {
    let partial = Reply::json(200, &json!({"fault": "Partial"})).header("X-Request-Id", "req-1");
    let (stage, _) = with_logins(9, 0, [partial]);
    let client = stage.client.derive().error_map(table()).build().unwrap();
    let error = client.send(Request::post("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(error.request_id(), Some("req-1"));
    assert!(!error.had_no_effect(), "a part of it may have happened");
    assert!(error.to_string().contains("HTTP 200 Partial"), "{error}");
    let calls = stage.observer.calls.lock().unwrap();
    assert_eq!(calls[0].error, Some(ErrorKind::Incomplete));
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_final() {
    let (stage, logins) = with_logins(9, 0, [Reply::status(401), Reply::status(401), ok()]);
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(tokens_sent(&stage), ["t1", "t2"]);
    assert_eq!(logins.count.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn refusals_in_a_row_do_not_log_in_again_and_again() {
    let (stage, logins) = with_logins(9, 0, (0..50).map(|_| Reply::status(401)));
    for _ in 0..20 {
        let error = stage.client.send(Request::get("/x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    }
    assert_eq!(logins.count.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_works_ends_the_row_of_refusals() {
    let rounds = 5;
    let (stage, logins) = with_logins(9, 0, (0..rounds).flat_map(|_| [Reply::status(401), ok()]));
    for _ in 0..rounds {
        stage.client.send(Request::get("/x")).await.unwrap();
        tokio::time::advance(Duration::from_secs(31)).await;
    }
    assert_eq!(logins.count.load(Ordering::Relaxed), 1 + rounds);
}

#[tokio::test(start_paused = true)]
async fn callers_that_are_refused_together_share_one_login() {
    let (stage, logins) = with_logins(
        9,
        1,
        (0..10)
            .map(|_| Reply::status(401).after(Duration::from_secs(1)))
            .chain((0..10).map(|_| ok())),
    );
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let client = stage.client.clone();
        callers.spawn(async move { client.send(Request::get("/x")).await.is_ok() });
    }
    assert_eq!(callers.join_all().await, [true; 10]);
    assert_eq!(logins.count.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_login_fails_the_call_without_sending_it() {
    let (stage, logins) = with_logins(0, 0, [ok()]);
    for _ in 0..5 {
        let error = stage.client.send(Request::get("/x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert_eq!(error.operation(), "GET /x");
        assert!(error.to_string().contains("wrong password"), "{error}");
    }
    assert_eq!(stage.sent(), 0);
    assert_eq!(logins.count.load(Ordering::Relaxed), 1, "no login storm");
}

#[tokio::test(start_paused = true)]
async fn a_new_attempt_after_a_login_does_not_use_up_the_retries() {
    let replies = [Reply::status(401)]
        .into_iter()
        .chain((0..3).map(|_| Reply::status(503)))
        .chain([ok()]);
    let (stage, _) = with_logins(9, 0, replies);
    stage.client.send(Request::get("/x")).await.unwrap();
    assert_eq!(stage.sent(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_login_that_hangs_is_bounded_by_the_call() {
    let (stage, _) = with_logins(9, 3600, [ok()]);
    let request = Request::get("/x").within(Duration::from_secs(5));
    let error = stage.client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(stage.sent(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_request_carries_no_credential() {
    let (stage, logins) = with_logins(9, 0, [ok(), Reply::status(401)]);
    stage
        .client
        .send(Request::get("/").anonymous())
        .await
        .unwrap();
    let refused = stage.client.send(Request::get("/").anonymous()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unauthenticated);
    assert_eq!(tokens_sent(&stage), ["none", "none"]);
    assert_eq!(logins.count.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_token_that_is_refused_is_not_tried_again() {
    let stage = stage_with([Reply::status(401), ok()], |builder| {
        builder.authorizer(HeaderAuth::bearer("fixed".into()))
    });
    let error = stage.client.send(Request::get("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(stage.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_derived_client_shares_the_token_and_the_way() {
    let (stage, logins) = with_logins(9, 0, [ok(), ok()]);
    let network = stage
        .client
        .derive()
        .base_url("https://network.example.com:9696/v2.0")
        .build()
        .unwrap();
    stage.client.send(Request::get("/servers")).await.unwrap();
    network.send(Request::get("/ports")).await.unwrap();
    assert_eq!(
        stage.script.seen_lines(),
        [
            "GET https://api.example.com/v1/servers",
            "GET https://network.example.com:9696/v2.0/ports",
        ]
    );
    assert_eq!(logins.count.load(Ordering::Relaxed), 1);
}
