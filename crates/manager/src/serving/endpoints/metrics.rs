//! `/metrics` and `/metrics/slis`.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::health::Health;
use crate::metrics::{Format, Metrics};
use crate::serving::responses::plain_text;

pub(super) fn routes(metrics: Metrics, health: Arc<Health>) -> Router {
    let forgetful = Arc::clone(&health);
    let slis = get(move |headers: HeaderMap| {
        std::future::ready(answer(&headers, |format| health.expose_slis(format)))
    })
    .delete(move || {
        forgetful.reset_slis();
        std::future::ready(plain_text(StatusCode::OK, "metrics reset"))
    });
    let all = get(move |headers: HeaderMap| {
        std::future::ready(answer(&headers, |format| metrics.expose(format)))
    });
    Router::new()
        .route("/metrics", all)
        .route("/metrics/slis", slis)
}

fn answer(
    headers: &HeaderMap,
    expose: impl FnOnce(Format) -> Result<String, std::fmt::Error>,
) -> Response {
    let accept = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect::<Vec<_>>()
        .join(",");
    let format = Format::accepted(&accept);
    match expose(format) {
        Ok(text) => {
            let content_type = HeaderValue::from_static(format.content_type());
            ([(CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(_) => plain_text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics could not be written",
        ),
    }
}
