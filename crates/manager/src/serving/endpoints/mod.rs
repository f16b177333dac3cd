//! The endpoints of the secure port.

mod configz;
mod debug;
mod health;
mod metrics;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use axum::{Json, Router};
use cloudkeel_page::Source;
use serde_json::Value;

pub use self::debug::LogLevel;
use super::responses::not_found;
use crate::health::Health;
use crate::metrics::{BuildInfo, Metrics};

/// What the endpoints serve.
pub struct Endpoints {
    /// `/healthz`, `/livez`, `/readyz`, `/status` and `/metrics/slis`.
    pub health: Arc<Health>,
    /// `/metrics`
    pub metrics: Metrics,
    /// The configuration in use, for `/configz`.
    pub configz: Value,
    /// `/version`
    pub build: BuildInfo,
    /// `/debug`, if `--profiling` is on.
    pub debug: Option<Arc<dyn LogLevel>>,
    /// `/page/`, if `--page` is on.
    pub page: Option<Arc<dyn Source>>,
}

impl Endpoints {
    /// The routes. Put an [`AccessControl`](super::AccessControl) in front of them.
    pub fn router(self) -> Router {
        let build = Json(self.build);
        let version = get(|| std::future::ready(build.into_response()));
        let mut router = Router::new()
            .merge(health::routes(&self.health))
            .merge(status::routes(&self.health, &self.metrics.clouds))
            .merge(metrics::routes(self.metrics, self.health))
            .merge(configz::routes(&self.configz))
            .route("/version", version);
        if let Some(level) = self.debug {
            router = router.merge(debug::routes(level));
        }
        if let Some(source) = self.page {
            // The page loads its files by relative paths, so its own path ends with a slash.
            router = router
                .nest("/page/", cloudkeel_page::router(source, None))
                .route(
                    "/page",
                    get(|| std::future::ready(Redirect::permanent("page/"))),
                );
        }
        router.fallback(|| std::future::ready(not_found()))
    }
}
