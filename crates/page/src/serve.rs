//! Serves the page over HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::assets::ASSETS;
use crate::{PageData, View};

/// Everything comes from this origin, nothing may be framed, and only our own scripts run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Sent with every press. A page of another origin cannot send it without a preflight request.
const PRESSED: HeaderName = HeaderName::from_static("x-cloudkeel-pressed");

/// Provides the page's data.
#[async_trait]
pub trait Source: Send + Sync {
    /// The current data.
    async fn data(&self) -> PageData;
}

/// A button that was pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Press {
    /// Its action.
    pub id: String,
    /// Its object.
    #[serde(default)]
    pub on: String,
}

/// Executes the buttons.
#[async_trait]
pub trait Buttons: Send + Sync {
    /// Executes one, and returns what was done, or why not.
    async fn press(&self, press: Press) -> Result<String, String>;
}

/// The outcome of a press.
#[derive(Debug, Serialize)]
struct Pressed {
    message: String,
}

/// The routes of the page. Without buttons it is read-only.
pub fn router(source: Arc<dyn Source>, buttons: Option<Arc<dyn Buttons>>) -> Router {
    let mut router = Router::new();
    for asset in &ASSETS {
        let answer = move || async move { (secure_headers(asset.kind), asset.body) };
        router = router.route(asset.path, get(answer));
    }
    let router = router.route("/picture", get(data).with_state(source));
    match buttons {
        Some(buttons) => router.route("/press", post(press).with_state(buttons)),
        None => router,
    }
}

/// A query that makes no sense shows the first page of everything.
async fn data(
    State(source): State<Arc<dyn Source>>,
    view: Result<Query<View>, QueryRejection>,
) -> Response {
    let view = view.map(|Query(view)| view).unwrap_or_default();
    let headers = secure_headers("application/json");
    (headers, Json(source.data().await.seen_by(&view))).into_response()
}

async fn press(
    State(buttons): State<Arc<dyn Buttons>>,
    headers: HeaderMap,
    Json(wanted): Json<Press>,
) -> Response {
    let (status, message) = match cross_origin_reason(&headers) {
        Some(why) => (StatusCode::FORBIDDEN, why),
        None => match buttons.press(wanted).await {
            Ok(done) => (StatusCode::OK, done),
            Err(why) => (StatusCode::CONFLICT, why),
        },
    };
    let headers = secure_headers("application/json");
    (status, headers, Json(Pressed { message })).into_response()
}

/// Why a press may come from another site's page.
fn cross_origin_reason(headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key(PRESSED) {
        return Some(format!("the header {PRESSED} is missing"));
    }
    let host = headers.get(HOST)?;
    // Any site can make its host name resolve to this machine; its page would then have our origin.
    let ours = host.to_str().is_ok_and(names_this_machine);
    (!ours).then(|| format!("{host:?} is not where this page is: open it by its address"))
}

fn names_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

fn secure_headers(kind: &'static str) -> HeaderMap {
    [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)))
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests;
