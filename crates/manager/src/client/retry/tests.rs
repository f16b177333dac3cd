use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use jiff::Timestamp;
use tower::{Service, ServiceExt as _};

use super::*;
use crate::client::{BearerToken, FenceWrites, Layers, LimitRequests};
use crate::election::Fence;
use crate::metrics::{BuildInfo, Format, Metrics};

/// A status, and a `Retry-After`.
type Answer = (u16, Option<&'static str>);

/// Returns these responses one after the other, then 200.
#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Instant>>>,
    /// Closed by the first request, as if the lease were lost then.
    closes: Option<Fence>,
}

impl Server {
    fn new(answers: &[Answer]) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
            seen: Arc::default(),
            closes: None,
        }
    }

    fn attempts(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        self.seen.lock().unwrap().push(Instant::now());
        if let Some(fence) = &self.closes {
            fence.close();
        }
        let (code, after) = self
            .answers
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or((200, None));
        let mut answer = Response::new(Full::new(Bytes::new()));
        *answer.status_mut() = StatusCode::from_u16(code).unwrap();
        if let Some(after) = after {
            let value = after.parse().unwrap();
            answer.headers_mut().insert("retry-after", value);
        }
        ready(Ok(answer))
    }
}

fn metrics() -> Metrics {
    Metrics::new(&BuildInfo::of_version("0"), Timestamp::UNIX_EPOCH)
}

/// Sends one request through the layers of a real client, and returns the outcome.
async fn send(
    server: &Server,
    method: Method,
    fence: Fence,
    metrics: &Metrics,
) -> Result<u16, BoxError> {
    let measure = metrics
        .rest_client
        .of(&"https://api.test:6443".parse().unwrap());
    let layers = Layers {
        limit: LimitRequests::new(None),
        fence: FenceWrites::new(fence),
        token: BearerToken::new(None),
        measure,
    };
    let client = layers.around(server.clone());
    let mut request = Request::new(Body::from(b"{}".to_vec()));
    *request.method_mut() = method;
    *request.uri_mut() = "/api/v1/nodes/a".parse().unwrap();
    let answer = client.oneshot(request).await?;
    Ok(answer.status().as_u16())
}

#[tokio::test(start_paused = true)]
async fn what_was_throttled_is_sent_again_and_every_attempt_is_counted() {
    let server = Server::new(&[(429, Some("1")), (429, None)]);
    let metrics = metrics();
    let began = Instant::now();
    let answer = send(&server, Method::PATCH, Fence::always_open(), &metrics).await;
    assert_eq!(answer.unwrap(), 200);
    assert_eq!(server.attempts(), 3);
    let waited = server.seen.lock().unwrap()[1] - began;
    assert!(
        waited >= Duration::from_secs(1),
        "as it was asked to: {waited:?}"
    );
    let text = metrics.expose(Format::Plain).unwrap();
    let host = "host=\"api.test:6443\"";
    for expected in [
        format!("rest_client_requests_total{{code=\"429\",method=\"PATCH\",{host}}} 2"),
        format!("rest_client_requests_total{{code=\"200\",method=\"PATCH\",{host}}} 1"),
        format!("rest_client_request_retries_total{{code=\"429\",verb=\"PATCH\",{host}}} 2"),
    ] {
        assert!(text.contains(&expected), "{expected} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_is_not_waited_for() {
    for (case, answers) in [
        ("at once", vec![(429, Some("3600"))]),
        ("a second at a time", vec![(503, Some("1")); 3600]),
        ("without a word", vec![(429, None); 3600]),
    ] {
        let server = Server::new(&answers);
        let began = Instant::now();
        let answer = send(&server, Method::GET, Fence::always_open(), &metrics()).await;
        assert_eq!(answer.unwrap(), answers[0].0, "{case}: the caller gets it");
        assert!(began.elapsed() <= RETRY_WINDOW, "{case}");
        assert!(server.attempts() < 20, "{case}: {}", server.attempts());
    }
}

#[tokio::test(start_paused = true)]
async fn the_fence_is_asked_before_every_attempt() {
    let (fence, metrics) = (Fence::always_open(), metrics());
    let server = Server {
        closes: Some(fence.clone()),
        ..Server::new(&[(429, Some("1"))])
    };
    let refused = send(&server, Method::PATCH, fence, &metrics).await;
    let error = refused.unwrap_err();
    assert!(error.is::<crate::client::FenceClosed>(), "{error}");
    assert_eq!(server.attempts(), 1, "the second was not sent");
}

#[test]
fn a_write_that_may_have_been_done_is_repeated_only_on_request() {
    for (status, write, read) in [
        (429, true, true),
        (503, false, true),
        (504, false, true),
        (500, false, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(may_repeat(&Method::POST, status, false), write, "{status}");
        assert_eq!(may_repeat(&Method::GET, status, false), read, "{status}");
    }
    assert!(may_repeat(
        &Method::POST,
        StatusCode::SERVICE_UNAVAILABLE,
        true
    ));
}
