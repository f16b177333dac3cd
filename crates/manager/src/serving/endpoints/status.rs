//! `/status`: what this process does right now.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use cloudkeel_page::Summary;
use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;
use serde::Serialize;

use crate::health::{Health, Status};
use crate::metrics::CloudsMetrics;
use crate::page::picture_of;

/// What is wrong first, then everything.
#[derive(Serialize)]
struct Answer {
    summary: Summary,
    #[serde(flatten)]
    status: Status,
}

pub(super) fn routes(health: &Arc<Health>, clouds: &CloudsMetrics) -> Router {
    let (health, clouds) = (Arc::clone(health), clouds.clone());
    Router::new().route(
        "/status",
        get(move || std::future::ready(answer(&health, &clouds))),
    )
}

fn answer(health: &Health, clouds: &CloudsMetrics) -> Response {
    let headers = [(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    let status = health.board().read();
    let summary = picture_of(health.board(), &status, clouds).summary;
    (headers, Json(Answer { summary, status })).into_response()
}
