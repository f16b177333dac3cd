//! `/configz`: the configuration in use.

use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Json, Router};
use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;
use serde_json::{Value, json};

/// The name under which upstream shows it.
const NAME: &str = "cloudcontrollermanager.config.k8s.io";

pub(super) fn routes(configz: &Value) -> Router {
    let body = Json(json!({ NAME: configz }));
    let headers = [(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    let answer = move || std::future::ready((headers, body).into_response());
    Router::new().route("/configz", get(answer))
}
