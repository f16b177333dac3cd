//! `/healthz`, `/livez`, `/readyz`, and each check by name below them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use crate::health::{Endpoint, Health};
use crate::serving::responses::{not_found, plain_text};

type Parameters = Query<Vec<(String, String)>>;

pub(super) fn routes(health: &Arc<Health>) -> Router {
    let mut router = Router::new();
    for endpoint in Endpoint::ALL {
        let name = endpoint.as_str();
        let all = Arc::clone(health);
        let one = Arc::clone(health);
        router = router
            .route(
                &format!("/{name}"),
                get(move |parameters| std::future::ready(examine(&all, endpoint, &parameters))),
            )
            .route(
                &format!("/{name}/{{check}}"),
                get(move |path| std::future::ready(examine_one(&one, endpoint, &path))),
            );
    }
    router
}

fn examine(health: &Health, endpoint: Endpoint, parameters: &Parameters) -> Response {
    let verbose = parameters.iter().any(|(name, _)| name == "verbose");
    let excluded: Vec<_> = parameters
        .iter()
        .filter(|(name, _)| name == "exclude")
        .map(|(_, value)| value.clone())
        .collect();
    let report = health.examine(endpoint, &excluded);
    let status = if report.passed() {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    text(status, report.body(verbose))
}

/// A client that may request a single check may also see why it fails.
fn examine_one(health: &Health, endpoint: Endpoint, Path(check): &Path<String>) -> Response {
    match health.examine_named(endpoint, check) {
        Some(Ok(())) => text(StatusCode::OK, "ok".to_owned()),
        Some(Err(why)) => plain_text(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("internal server error: {why}"),
        ),
        None => not_found(),
    }
}

fn text(status: StatusCode, body: String) -> Response {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, body).into_response()
}
