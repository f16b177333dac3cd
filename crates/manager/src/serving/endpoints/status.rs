//! `/status`: the state of this process.

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
use crate::page::page_data;

/// The summary first, then everything.
#[derive(Serialize)]
struct AccessDecision {
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
    let status = health.status_report().read();
    let summary = page_data(health.status_report(), &status, clouds).summary;
    (headers, Json(AccessDecision { summary, status })).into_response()
}
