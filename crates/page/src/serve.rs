//! The page over HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::State;
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

use crate::Picture;
use crate::assets::ASSETS;

/// Everything comes from here, nothing may be framed, and nothing runs that is not one of our files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Sent with every press. A page of another origin cannot send it without asking first.
const PRESSED: HeaderName = HeaderName::from_static("x-cloudkeel-pressed");

/// Takes the picture.
#[async_trait]
pub trait Source: Send + Sync {
    /// What is to be seen now.
    async fn picture(&self) -> Picture;
}

/// A button that was pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Press {
    /// What is to be done.
    pub id: String,
    /// To what.
    #[serde(default)]
    pub on: String,
}

/// Does what people ask for by a button.
#[async_trait]
pub trait Buttons: Send + Sync {
    /// Does it, and says in a sentence what was done, or why not.
    async fn press(&self, press: Press) -> Result<String, String>;
}

/// What a press came to.
#[derive(Debug, Serialize)]
struct Pressed {
    message: String,
}

/// The page, below wherever it is nested. Without buttons it only shows.
pub fn router(source: Arc<dyn Source>, buttons: Option<Arc<dyn Buttons>>) -> Router {
    let mut router = Router::new();
    for asset in &ASSETS {
        let answer = move || async move { (guarded(asset.kind), asset.body) };
        router = router.route(asset.path, get(answer));
    }
    let router = router.route("/picture", get(picture).with_state(source));
    match buttons {
        Some(buttons) => router.route("/press", post(press).with_state(buttons)),
        None => router,
    }
}

async fn picture(State(source): State<Arc<dyn Source>>) -> Response {
    let headers = guarded("application/json");
    (headers, Json(source.picture().await)).into_response()
}

async fn press(
    State(buttons): State<Arc<dyn Buttons>>,
    headers: HeaderMap,
    Json(wanted): Json<Press>,
) -> Response {
    let (status, message) = match foreign(&headers) {
        Some(why) => (StatusCode::FORBIDDEN, why),
        None => match buttons.press(wanted).await {
            Ok(done) => (StatusCode::OK, done),
            Err(why) => (StatusCode::CONFLICT, why),
        },
    };
    let headers = guarded("application/json");
    (status, headers, Json(Pressed { message })).into_response()
}

/// Why a press may come from a page of somebody else.
fn foreign(headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key(PRESSED) {
        return Some(format!("the header {PRESSED} is missing"));
    }
    let host = headers.get(HOST)?;
    // Anybody can let a name of theirs lead to this machine; their page would then be of our origin.
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

fn guarded(kind: &'static str) -> HeaderMap {
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
