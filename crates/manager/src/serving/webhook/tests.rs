//! Webhook requests, without a socket.

use async_trait::async_trait;
use axum::body::to_bytes;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cloudkeel_api::{Admission, AdmissionRequest, CloudError, ErrorKind, PatchOperation};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower_service::Service as _;

use super::*;
use crate::metrics::{BuildInfo, Format, Metrics};

/// Decides by the name of the object.
struct Labels;

#[async_trait]
impl Webhook for Labels {
    fn name(&self) -> &'static str {
        "labels"
    }

    fn path(&self) -> &'static str {
        "/label"
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        match request.name.as_str() {
            "patched" => Ok(Admission::Allow {
                patch: vec![PatchOperation::Add {
                    path: "/metadata/labels/zone".to_owned(),
                    value: request.object["zone"].clone(),
                }],
                warnings: vec!["mind the gap".to_owned()],
            }),
            "denied" => Ok(Admission::Deny {
                why: "not here".to_owned(),
            }),
            "broken" => Err(CloudError::new("get disk", ErrorKind::Timeout, "no answer")),
            _ => Ok(Admission::Allow {
                patch: Vec::new(),
                warnings: Vec::new(),
            }),
        }
    }
}

fn metrics() -> Metrics {
    Metrics::new(&BuildInfo::of_version("1.2.3"), Timestamp::UNIX_EPOCH)
}

fn router(metrics: &Metrics) -> Router {
    webhook_router(vec![Arc::new(Labels)], metrics.webhooks.clone()).unwrap()
}

async fn post(router: &Router, content_type: &str, body: Vec<u8>) -> (u16, String) {
    let request = Request::post("/label")
        .header(CONTENT_TYPE, content_type)
        .body(Body::from(body))
        .unwrap();
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn review(name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "operation": "CREATE",
            "name": name,
            "kind": {"group": "", "version": "v1", "kind": "PersistentVolume"},
            "object": {"zone": "a"},
            "oldObject": null,
        },
    })
}

#[tokio::test]
async fn an_admission_becomes_a_review_with_nothing_but_the_response() {
    let router = router(&metrics());
    let patch = r#"[{"op":"add","path":"/metadata/labels/zone","value":"a"}]"#;
    for (name, response) in [
        ("plain", json!({"uid": "u-1", "allowed": true})),
        (
            "patched",
            json!({
                "uid": "u-1",
                "allowed": true,
                "patchType": "JSONPatch",
                "patch": BASE64_STANDARD.encode(patch),
                "warnings": ["mind the gap"],
            }),
        ),
        (
            "denied",
            json!({
                "uid": "u-1",
                "allowed": false,
                "status": {"status": "Failure", "message": "not here", "reason": "Forbidden", "code": 403},
            }),
        ),
    ] {
        let body = review(name).to_string().into_bytes();
        let (status, text) = post(&router, "application/json", body).await;
        assert_eq!(status, 200, "{name}: {text}");
        let seen: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": response,
        });
        assert_eq!(seen, expected, "{name}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table, one row per case")]
async fn what_cannot_be_answered_says_why_and_everything_is_counted() {
    let metrics = metrics();
    let router = router(&metrics);
    let json = "application/json";
    let mut other_kind = review("plain");
    other_kind["kind"] = json!("Pod");
    let mut no_request = review("plain");
    no_request["request"] = Value::Null;
    let bytes = |value: &Value| value.to_string().into_bytes();
    for (case, content_type, body, status, part) in [
        (
            "other content",
            "text/plain",
            bytes(&review("plain")),
            400,
            "Content-Type: \"text/plain\" should be \"application/json\"\n",
        ),
        (
            "a parameter",
            "application/json; charset=utf-8",
            bytes(&review("plain")),
            400,
            "should be \"application/json\"\n",
        ),
        (
            "no body",
            json,
            Vec::new(),
            400,
            "admission request HTTP body is empty\n",
        ),
        (
            "not JSON",
            json,
            b"{".to_vec(),
            400,
            "could not deserialize incoming admission review: ",
        ),
        (
            "another kind",
            json,
            bytes(&other_kind),
            400,
            "could not deserialize incoming admission review: it is a Pod",
        ),
        (
            "no request",
            json,
            bytes(&no_request),
            400,
            "admission review can't be used: Request field is nil\n",
        ),
        (
            "too large",
            json,
            vec![b' '; MAX_BODY_BYTES + 1],
            413,
            "larger than 8388608 bytes",
        ),
        (
            "the webhook fails",
            json,
            bytes(&review("broken")),
            500,
            "error generating admission response: ",
        ),
        (
            "all is well",
            json,
            bytes(&review("plain")),
            200,
            "\"allowed\":true",
        ),
    ] {
        let (seen, text) = post(&router, content_type, body).await;
        assert_eq!(seen, status, "{case}: {text}");
        assert!(text.contains(part), "{case}: {text}");
    }
    let text = metrics.expose(Format::Plain).unwrap();
    for (code, count) in [("200", 1), ("400", 6), ("413", 1), ("500", 1)] {
        let labels = format!(r#"{{code="{code}",webhook="labels"}} {count}"#);
        for name in ["request_total", "request_duration_seconds_count"] {
            let line = format!("cloud_provider_webhook_{name}{labels}");
            assert!(
                text.lines().any(|seen| seen == line),
                "{line} not in\n{text}"
            );
        }
    }
}

#[tokio::test]
async fn text_of_unauthenticated_clients_is_truncated() {
    let (status, text) = post(&router(&metrics()), &"x".repeat(100_000), Vec::new()).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("Content-Type: \"xxx"), "{text}");
    assert!(text.len() <= MAX_MESSAGE_CHARS + 1, "{} bytes", text.len());
}

/// A request whose body has begun with so many bytes and does not end.
fn stalled(bytes: usize) -> Request {
    let begun = futures::stream::iter([Ok::<_, std::convert::Infallible>(vec![b' '; bytes])]);
    let body = futures::StreamExt::chain(begun, futures::stream::pending());
    let post = Request::post("/label").header(CONTENT_TYPE, "application/json");
    post.body(Body::from_stream(body)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_end_take_so_much_memory_and_no_more() {
    let router = router(&metrics());
    let call = |request: Request| {
        let mut router = router.clone();
        tokio::spawn(async move { router.call(request).await.unwrap().status() })
    };
    let stalling = [(); 2].map(|()| call(stalled(MAX_BODY_BYTES)));
    tokio::task::yield_now().await;
    assert_eq!(
        call(stalled(1)).await.unwrap(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert!(stalling.iter().all(|task| !task.is_finished()));
    for task in stalling {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    let body = review("plain").to_string().into_bytes();
    let (status, text) = post(&router, "application/json", body).await;
    assert_eq!(status, 200, "their memory is free again: {text}");
}

#[tokio::test]
async fn another_path_is_not_found() {
    let request = Request::post("/other").body(Body::empty()).unwrap();
    let response = router(&metrics()).call(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[test]
fn two_webhooks_at_one_path_are_refused_by_name() {
    let webhooks: Vec<Arc<dyn Webhook>> = vec![Arc::new(Labels), Arc::new(Labels)];
    let error = webhook_router(webhooks, metrics().webhooks)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"labels\"") && error.contains("\"/label\""),
        "{error}"
    );
}
