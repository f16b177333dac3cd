//! `/status`: what this process does right now.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;

use crate::health::Health;

pub(super) fn routes(health: &Arc<Health>) -> Router {
    let health = Arc::clone(health);
    Router::new().route("/status", get(move || std::future::ready(answer(&health))))
}

fn answer(health: &Health) -> Response {
    let headers = [(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    (headers, Json(health.board().read())).into_response()
}
