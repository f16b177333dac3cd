//! Serves the admission webhooks of providers.
//!
//! They have a port of their own, on which clients are not authenticated.

use crate::log_messages::ADMISSION_REQUEST_FAILED;

mod admission_review;
mod provider_webhook;
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

use self::admission_review::{answer, parse_review};
pub(crate) use self::provider_webhook::webhooks_of;
use super::ServingError;
use super::responses::{not_found, plain_text};
use super::warning_limiter::WarningLimiter;
use crate::metrics::WebhookMetrics;

/// Two objects of the largest size that the API server accepts, and some.
const MAX_BODY_BYTES: usize = 8 << 20;

/// The size of all request bodies together. Clients are not authenticated, and a parsed body takes many times its
/// size.
const MAX_BYTES_IN_FLIGHT: usize = 16 << 20;

/// The length of an error message, which may contain text of the client.
const MAX_MESSAGE_CHARS: usize = 300;

/// Why a request fails: the status, and the message.
type Refusal = (StatusCode, String);

/// The routes of these webhooks. Two at the same path are an error.
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
        memory: Semaphore::new(MAX_BYTES_IN_FLIGHT),
        warnings: WarningLimiter::new(),
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
    warnings: WarningLimiter,
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
                let why: String = why.chars().take(MAX_MESSAGE_CHARS).collect();
                self.log_failure(name, status, &why);
                plain_text(status, &why)
            }
        };
        let code = response.status().as_u16();
        self.metrics.answered(name, code, began.elapsed());
        response
    }

    async fn review(&self, webhook: &dyn Webhook, request: Request) -> Result<Response, Refusal> {
        check_content_type(&request)?;
        let (body, _memory) = self.read_body(request.into_body()).await?;
        let access = parse_review(&body).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        match webhook.review(&access).await {
            Ok(admission) => {
                let answer = answer(access.uid, admission);
                Ok(axum::Json(answer).into_response())
            }
            Err(error) => {
                let why = format!("error generating admission response: {error}");
                Err((StatusCode::INTERNAL_SERVER_ERROR, why))
            }
        }
    }

    /// The body, and the permits for it.
    async fn read_body(&self, body: Body) -> Result<(BytesMut, SemaphorePermit<'_>), Refusal> {
        let mut body = Limited::new(body, MAX_BODY_BYTES);
        let (mut read_body, mut permits) = (BytesMut::new(), self.reserve(0)?);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(error.as_ref()))?;
            if let Ok(data) = frame.into_data() {
                permits.merge(self.reserve(data.len())?);
                read_body.extend_from_slice(&data);
            }
        }
        Ok((read_body, permits))
    }

    fn reserve(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.memory.try_acquire_many(bytes).map_err(|_| {
            let why = "too many admission requests at once: try again".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Unauthenticated clients can send invalid requests at any rate, and must not fill the log.
    fn log_failure(&self, webhook: &str, status: StatusCode, err: &str) {
        let status = status.as_u16();
        if self.warnings.should_log(&format!("{webhook} {status}")) {
            tracing::warn!(webhook, status, err, "{ADMISSION_REQUEST_FAILED}");
        } else {
            tracing::debug!(webhook, status, err, "{ADMISSION_REQUEST_FAILED}");
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
        let why = format!("the admission request is larger than {MAX_BODY_BYTES} bytes");
        return (StatusCode::PAYLOAD_TOO_LARGE, why);
    }
    let why = format!("the admission request could not be read: {error}");
    (StatusCode::BAD_REQUEST, why)
}
