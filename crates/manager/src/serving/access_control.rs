//! Authentication and authorization in front of every endpoint.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{AUTHORIZATION, CACHE_CONTROL};
use http::{HeaderValue, Version};
use percent_encoding::percent_decode_str;

use super::authentication::Authenticator;
use super::authorization::{AccessRequest, Authorizer};
use super::connection::Peer;
use super::responses::{forbidden, review_failed, unauthorized};
use super::user::User;
use super::warning_limiter::WarningLimiter;
use crate::log_messages::SUBJECT_ACCESS_REVIEW_FAILED;

/// Lets a request through if its user is known or anonymous and authorized for the path.
pub struct AccessControl {
    authenticator: Authenticator,
    authorizer: Authorizer,
    warnings: WarningLimiter,
}

impl AccessControl {
    /// Access control with this authenticator and authorizer.
    pub fn new(authenticator: Authenticator, authorizer: Authorizer) -> Self {
        Self {
            authenticator,
            authorizer,
            warnings: WarningLimiter::new(),
        }
    }

    /// Puts access control in front of everything a router serves, including its 404.
    pub fn protect(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), check_access))
    }
}

async fn check_access(
    State(access_control): State<Arc<AccessControl>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request
        .extensions_mut()
        .remove::<Peer>()
        .unwrap_or_default();
    let is_http2 = request.version() == Version::HTTP_2;
    let authenticated = access_control
        .authenticator
        .authenticate(&peer.certificates, request.headers())
        .await;
    // No handler needs the credential.
    request.headers_mut().remove(AUTHORIZATION);

    // HTTP/2 allows many concurrent requests per connection, so anonymous clients get one request per connection.
    let is_anonymous = authenticated.as_ref().map_or(true, User::is_anonymous);
    if is_http2 && is_anonymous {
        peer.close.cancel();
    }
    let mut response = match authenticated {
        Ok(user) => {
            let access = AccessRequest {
                user,
                verb: request.method().as_str().to_ascii_lowercase(),
                path: percent_decode_str(request.uri().path())
                    .decode_utf8_lossy()
                    .into_owned(),
            };
            access_control.decide(access, request, next).await
        }
        Err(error) => {
            tracing::debug!(err = error, "unable to authenticate the request");
            unauthorized()
        }
    };
    // A response for this user must not be cached for others.
    let headers = response.headers_mut();
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    response
}

impl AccessControl {
    async fn decide(&self, access: AccessRequest, request: Request, next: Next) -> Response {
        match self.authorizer.decide(access.clone()).await {
            Ok(decision) if decision.allowed => next.run(request).await,
            Ok(decision) => {
                tracing::debug!(user = access.user.name, path = access.path, "forbidden");
                forbidden(&access, &decision.reason)
            }
            Err(error) => {
                if self.warnings.should_log(&error.to_string()) {
                    tracing::warn!(err = %error, "{SUBJECT_ACCESS_REVIEW_FAILED}");
                }
                review_failed(&access.path)
            }
        }
    }
}
