//! Hosting the admission webhooks that providers bring along.
//!
//! They have a port of their own, where the API server is not asked who it is.

mod current;
mod review;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::BytesMut;
use cloudkeel_api::Webhook;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

pub(crate) use self::current::webhooks_of;
use self::review::{answer, understand};
use super::ServingError;
use super::complaint::Complaints;
use super::status::{not_found, plain_text};
use crate::metrics::WebhookMetrics;

/// Two objects of the largest size that the API server takes, and some.
const MOST_BODY_BYTES: usize = 8 << 20;

/// All bodies together. Anybody may send some, and what is made of them takes many times as much.
const MOST_BYTES_AT_ONCE: usize = 16 << 20;

/// What is told of a failure, in which anybody's words may stand.
const MOST_TOLD: usize = 300;

/// Why a request is not answered: with which status, and in which words.
type Refusal = (StatusCode, String);

/// The routes of these webhooks. Two at the same path are refused.
pub fn webhook_router(
    webhooks: Vec<Arc<dyn Webhook>>,
    metrics: WebhookMetrics,
) -> Result<Router, ServingError> {
    let mut by_path = BTreeMap::new();
    for webhook in webhooks {
        let (path, second) = (webhook.path(), webhook.name());
        if let Some(first) = by_path.insert(path, webhook) {
            return Err(ServingError::WebhookPath {
                path,
                first: first.name(),
                second,
            });
        }
    }
    let webhooks = Arc::new(Webhooks {
        by_path,
        metrics,
        memory: Semaphore::new(MOST_BYTES_AT_ONCE),
        complaints: Complaints::new(),
    });
    Ok(Router::new().fallback(move |request: Request| {
        let webhooks = Arc::clone(&webhooks);
        async move { webhooks.answer(request).await }
    }))
}

/// The webhooks of one port.
struct Webhooks {
    by_path: BTreeMap<&'static str, Arc<dyn Webhook>>,
    metrics: WebhookMetrics,
    /// A permit for every byte of a body that is being read or answered.
    memory: Semaphore,
    complaints: Complaints,
}

impl Webhooks {
    async fn answer(&self, request: Request) -> Response {
        let Some(webhook) = self.by_path.get(request.uri().path()) else {
            return not_found();
        };
        let began = Instant::now();
        let name = webhook.name();
        let response = match self.review(webhook.as_ref(), request).await {
            Ok(response) => response,
            Err((status, why)) => {
                let why: String = why.chars().take(MOST_TOLD).collect();
                self.complain(name, status, &why);
                plain_text(status, &why)
            }
        };
        let code = response.status().as_u16();
        self.metrics.answered(name, code, began.elapsed());
        response
    }

    async fn review(&self, webhook: &dyn Webhook, request: Request) -> Result<Response, Refusal> {
        check_content_type(&request)?;
        let (body, _memory) = self.whole(request.into_body()).await?;
        let question = understand(&body).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        match webhook.review(&question).await {
            Ok(admission) => {
                let answer = answer(question.uid, admission);
                Ok(axum::Json(answer).into_response())
            }
            Err(error) => {
                let why = format!("error generating admission response: {error}");
                Err((StatusCode::INTERNAL_SERVER_ERROR, why))
            }
        }
    }

    /// The body, and the permits for it.
    async fn whole(&self, body: Body) -> Result<(BytesMut, SemaphorePermit<'_>), Refusal> {
        let mut body = Limited::new(body, MOST_BODY_BYTES);
        let (mut whole, mut permits) = (BytesMut::new(), self.room_for(0)?);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(error.as_ref()))?;
            if let Ok(data) = frame.into_data() {
                permits.merge(self.room_for(data.len())?);
                whole.extend_from_slice(&data);
            }
        }
        Ok((whole, permits))
    }

    fn room_for(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.memory.try_acquire_many(bytes).map_err(|_| {
            let why = "too many admission requests at once: try again".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Anybody may send nonsense, as often as they like; the log is not for them.
    fn complain(&self, webhook: &str, status: StatusCode, why: &str) {
        let status = status.as_u16();
        if self.complaints.is_new(&format!("{webhook} {status}")) {
            tracing::warn!(webhook, status, why, "no answer to a webhook request");
        } else {
            tracing::debug!(webhook, status, why, "no answer to a webhook request");
        }
    }
}

fn check_content_type(request: &Request) -> Result<(), Refusal> {
    let given = request.headers().get(CONTENT_TYPE);
    let given = given.map_or(&b""[..], |value| value.as_bytes());
    if given == b"application/json" {
        return Ok(());
    }
    let given = String::from_utf8_lossy(given);
    let why = format!("Content-Type: {given:?} should be \"application/json\"");
    Err((StatusCode::BAD_REQUEST, why))
}

fn unreadable(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Refusal {
    if error.is::<LengthLimitError>() {
        let why = format!("the admission request is larger than {MOST_BODY_BYTES} bytes");
        return (StatusCode::PAYLOAD_TOO_LARGE, why);
    }
    let why = format!("the admission request could not be read: {error}");
    (StatusCode::BAD_REQUEST, why)
}
