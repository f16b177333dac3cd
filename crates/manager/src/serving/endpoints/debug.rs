//! `/debug`, enabled by `--profiling`.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use axum::routing::{any, get};
use http::{Method, StatusCode};

use crate::serving::responses::plain_text;

/// A number and some space around it.
const MAX_LEVEL_BYTES: usize = 64;

const NO_PROFILES: &str = "There are no profiles: they are made by the Go runtime, and this program is not \
                           written in Go. Use `perf record -p PID` on the node, and /metrics for the memory, \
                           processor time and open files of this process.";

/// Sets the log verbosity while the program runs.
pub trait LogLevel: Send + Sync {
    /// Sets the verbosity, by the numbers of `--v`. An error says what would be right.
    fn set_verbosity(&self, verbosity: u32) -> Result<(), String>;
}

pub(super) fn routes(level: Arc<dyn LogLevel>) -> Router {
    let set = any(move |method, body| std::future::ready(set_verbosity(&*level, &method, &body)))
        .layer(DefaultBodyLimit::max(MAX_LEVEL_BYTES));
    let flags = || get(|| std::future::ready(plain_text(StatusCode::OK, "v")));
    let profile =
        || any(|| std::future::ready(plain_text(StatusCode::NOT_IMPLEMENTED, NO_PROFILES)));
    Router::new()
        .route("/debug/flags", flags())
        .route("/debug/flags/", flags())
        .route("/debug/flags/v", set)
        .route("/debug/pprof", profile())
        .route("/debug/pprof/", profile())
        .route("/debug/pprof/{profile}", profile())
}

fn set_verbosity(level: &dyn LogLevel, method: &Method, body: &Bytes) -> Response {
    if method != Method::PUT {
        return plain_text(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let text = String::from_utf8_lossy(body);
    let verbosity = text
        .trim()
        .parse()
        .map_err(|_| "it must be a whole number".to_owned());
    match verbosity.and_then(|verbosity| level.set_verbosity(verbosity)) {
        Ok(()) => {
            let answer = format!("successfully set klog.logging.verbosity to {}", text.trim());
            plain_text(StatusCode::OK, &answer)
        }
        Err(why) => {
            let answer = format!("failed set klog.logging.verbosity {:?}: {why}", text.trim());
            plain_text(StatusCode::BAD_REQUEST, &answer)
        }
    }
}
