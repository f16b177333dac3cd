//! Serves always-allowed paths during startup, and everything else once access control works.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use tokio::sync::watch;
use tower::{ServiceExt as _, service_fn};

use super::ServingError;
use super::authorization::AllowedPaths;
use super::responses::unavailable;

/// How long a request waits for startup: longer than a startup takes when the API server answers.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// The router of a port before the API server has answered.
struct StartupRouter {
    always_allowed: AllowedPaths,
    open: Router,
    guarded: watch::Receiver<Option<Router>>,
}

/// Serves these paths from `open` until there is a protected router, then everything from the protected one.
pub(crate) fn startup_router(
    paths: &[String],
    open: Router,
    guarded: watch::Receiver<Option<Router>>,
) -> Result<Router, ServingError> {
    let early = Arc::new(StartupRouter {
        always_allowed: AllowedPaths::parse(paths)?,
        open,
        guarded,
    });
    let serve = move |request: Request| Arc::clone(&early).answer(request);
    Ok(Router::new().fallback_service(service_fn(serve)))
}

impl StartupRouter {
    async fn answer(self: Arc<Self>, request: Request) -> Result<Response, Infallible> {
        match self.router_for(request.uri().path()).await {
            Some(router) => router.oneshot(request).await,
            None => Ok(unavailable("waiting for the API server")),
        }
    }

    async fn router_for(&self, path: &str) -> Option<Router> {
        let mut guarded = self.guarded.clone();
        let now = guarded.borrow().clone();
        if now.is_some() {
            return now;
        }
        if self.always_allowed.contain(path) {
            return Some(self.open.clone());
        }
        let started = tokio::time::timeout(MAX_WAIT, guarded.wait_for(Option::is_some));
        started.await.ok()?.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;

    use super::*;

    fn says(word: &'static str) -> Router {
        Router::new().fallback(get(move || std::future::ready(word)))
    }

    async fn ask(router: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), 1_000).await;
        (code, String::from_utf8(body.unwrap().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn open_paths_are_answered_at_once_and_the_others_when_callers_are_known() {
        let (sender, guarded) = watch::channel(None);
        let router = startup_router(&["/livez".to_owned()], says("open"), guarded).unwrap();
        assert_eq!(ask(&router, "/livez").await, (200, "open".to_owned()));
        let (code, body) = ask(&router, "/metrics").await;
        assert_eq!(code, 503, "{body}");
        assert!(body.contains("waiting for the API server"), "{body}");
        let start = async {
            tokio::time::sleep(MAX_WAIT / 2).await;
            sender.send_replace(Some(says("guarded")));
        };
        let (answer, ()) = futures::join!(ask(&router, "/metrics"), start);
        assert_eq!(answer, (200, "guarded".to_owned()));
        drop(sender);
        assert_eq!(ask(&router, "/livez").await, (200, "guarded".to_owned()));
    }
}
