//! Hosting the admission webhooks that providers bring along.
//!
//! They have a port of their own, where the API server is not asked who it is.

mod review;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use cloudkeel_api::Webhook;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;

use self::review::{answer, understand};
use super::ServingError;
use super::status::{not_found, plain_text};
use crate::metrics::WebhookMetrics;

/// Two objects of the largest size that the API server takes, and some.
const MOST_BODY_BYTES: usize = 8 << 20;

type Webhooks = BTreeMap<&'static str, Arc<dyn Webhook>>;

/// The routes of these webhooks. Two at the same path are refused.
pub fn webhook_router(
    webhooks: Vec<Arc<dyn Webhook>>,
    metrics: WebhookMetrics,
) -> Result<Router, ServingError> {
    let mut by_path = Webhooks::new();
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
    let by_path = Arc::new(by_path);
    Ok(Router::new().fallback(move |request: Request| {
        let webhook = by_path.get(request.uri().path()).cloned();
        let metrics = metrics.clone();
        async move {
            match webhook {
                Some(webhook) => serve(&*webhook, request, &metrics).await,
                None => not_found(),
            }
        }
    }))
}

async fn serve(webhook: &dyn Webhook, request: Request, metrics: &WebhookMetrics) -> Response {
    let began = Instant::now();
    let response = match review(webhook, request).await {
        Ok(response) => response,
        Err((status, why)) => {
            tracing::warn!(
                webhook = webhook.name(),
                status = status.as_u16(),
                why,
                "no answer to a webhook request"
            );
            plain_text(status, &why)
        }
    };
    metrics.answered(webhook.name(), response.status().as_u16(), began.elapsed());
    response
}

async fn review(webhook: &dyn Webhook, request: Request) -> Result<Response, (StatusCode, String)> {
    let content_type = request
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default();
    if content_type != "application/json" {
        let why = format!("Content-Type: {content_type:?} should be \"application/json\"");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let body = whole(request.into_body()).await?;
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

async fn whole(body: Body) -> Result<bytes::Bytes, (StatusCode, String)> {
    match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("the admission request is larger than {MOST_BODY_BYTES} bytes");
            Err((StatusCode::PAYLOAD_TOO_LARGE, why))
        }
        Err(error) => {
            let why = format!("the admission request could not be read: {error}");
            Err((StatusCode::BAD_REQUEST, why))
        }
    }
}
