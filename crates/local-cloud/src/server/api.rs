//! What the local cloud answers beyond the API of every cloud: statistics, and a way to end it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use cloudkeel_provider_local::wire::ErrorCode;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::committer::{CloudStats, CommitterHandle};
use crate::simulated_cloud::{Operation, Refusal, SimulatedCloud};

/// Where everything that the cloud does is shown.
pub const STATS_PATH: &str = "/v1/stats";

/// Where the cloud is asked to end.
pub const STOP_PATH: &str = "/v1/stop";

/// The whole API. Control by `/control/*` has no token, so it is there only on request.
pub(crate) fn router(
    cloud: &SimulatedCloud,
    committer: &CommitterHandle,
    stop: &CancellationToken,
    control: bool,
) -> Router {
    let router = if control {
        cloud.router_with_control()
    } else {
        cloud.router()
    };
    let shared = Arc::new(Shared {
        cloud: cloud.clone(),
        committer: committer.clone(),
        stop: stop.clone(),
    });
    let (all, one, end) = (Arc::clone(&shared), Arc::clone(&shared), shared);
    let all = get(async move |headers: HeaderMap| {
        let allowed = all.cloud.admit(&headers, Operation::ListBalancers);
        all.cloud.beside(all.stats(allowed).await)
    });
    let one = get(async move |headers: HeaderMap, Path(id): Path<u64>| {
        let allowed = one.cloud.admit(&headers, Operation::GetBalancer);
        let found = one.stats(allowed).await.and_then(|stats| {
            let mut balancers = stats.balancers.into_iter();
            let balancer = balancers.find(|balancer| balancer.id == id);
            balancer.ok_or_else(|| Refusal::not_found(format_args!("balancer {id}")))
        });
        one.cloud.beside(found)
    });
    let end = post(async move |headers: HeaderMap| {
        // A client that may delete every balancer may also stop the cloud.
        let allowed = end.cloud.admit(&headers, Operation::DeleteBalancer);
        if allowed.is_ok() {
            end.stop.cancel();
        }
        end.cloud.beside(allowed.map(|()| json!({"ending": true})))
    });
    router
        .route(STATS_PATH, all)
        .route("/v1/balancers/{id}/stats", one)
        .route(STOP_PATH, end)
}

struct Shared {
    cloud: SimulatedCloud,
    committer: CommitterHandle,
    stop: CancellationToken,
}

impl Shared {
    async fn stats(&self, allowed: Result<(), Refusal>) -> Result<CloudStats, Refusal> {
        allowed?;
        self.committer.stats().await.ok_or_else(|| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Refusal::new(status, ErrorCode::Unavailable, "the cloud is ending")
        })
    }
}
