//! A bearer token that changes while clients use it.

use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

use cloudkeel_api::Secret;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;
use tower_service::Service;
use tracing::warn;

use super::service_account::{AccountError, AccountToken};
use crate::log_messages::TOKEN_REQUEST_FAILED;

/// Adds the current token to every request.
#[derive(Debug, Clone)]
pub struct BearerToken {
    token: Option<watch::Receiver<Secret>>,
}

impl BearerToken {
    /// A layer with this token; without one it does nothing.
    pub const fn new(token: Option<watch::Receiver<Secret>>) -> Self {
        Self { token }
    }
}

impl<S> Layer<S> for BearerToken {
    type Service = Authorized<S>;

    fn layer(&self, inner: S) -> Authorized<S> {
        Authorized {
            inner,
            token: self.token.clone(),
        }
    }
}

/// A client that sends a token.
#[derive(Debug, Clone)]
pub struct Authorized<S> {
    inner: S,
    token: Option<watch::Receiver<Secret>>,
}

impl<S, A> Service<Request<A>> for Authorized<S>
where
    S: Service<Request<A>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> S::Future {
        if let Some(token) = &self.token {
            let bearer = format!("Bearer {}", token.borrow().expose());
            if let Ok(mut value) = HeaderValue::from_str(&bearer) {
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        self.inner.call(request)
    }
}

/// Requests a new token after 80 % of the current one's lifetime, until `stop`. A failure is logged and retried; the
/// current token stays in use meanwhile.
pub async fn keep_token_fresh<F, R>(
    first: AccountToken,
    sender: watch::Sender<Secret>,
    stop: CancellationToken,
    mut renew: F,
) where
    F: FnMut() -> R + Send,
    R: Future<Output = Result<AccountToken, AccountError>> + Send,
{
    const SHORTEST: Duration = Duration::from_secs(10);
    let mut pause = first.renew_after();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause.max(SHORTEST)) => {}
        }
        match renew().await {
            Ok(token) => {
                pause = token.renew_after();
                sender.send_replace(token.token);
            }
            Err(error) => {
                warn!(err = %error, "{TOKEN_REQUEST_FAILED}");
                pause = SHORTEST;
            }
        }
    }
}
