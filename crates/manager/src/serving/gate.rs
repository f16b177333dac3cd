//! The gate in front of every endpoint: who are you, and may you?

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{AUTHORIZATION, CACHE_CONTROL};
use http::{HeaderValue, Version};
use percent_encoding::percent_decode_str;

use super::authentication::Authenticator;
use super::authorization::{Authorizer, Question};
use super::complaint::Complaints;
use super::connection::Peer;
use super::status::{forbidden, unauthorized, undecided};
use super::user::User;

/// Lets requests pass whose sender is known, or known to be unknown, and may do what they ask for.
pub struct Gate {
    authenticator: Authenticator,
    authorizer: Authorizer,
    complaints: Complaints,
}

impl Gate {
    /// A gate with this knowledge.
    pub fn new(authenticator: Authenticator, authorizer: Authorizer) -> Self {
        Self {
            authenticator,
            authorizer,
            complaints: Complaints::new(),
        }
    }

    /// Puts the gate in front of everything a router serves, including what it does not find.
    pub fn guard(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), pass))
    }
}

async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let peer = request
        .extensions_mut()
        .remove::<Peer>()
        .unwrap_or_default();
    let is_http2 = request.version() == Version::HTTP_2;
    let authenticated = gate
        .authenticator
        .authenticate(&peer.certificates, request.headers())
        .await;
    // From here on, nobody needs to see it.
    request.headers_mut().remove(AUTHORIZATION);

    // HTTP/2 lets one connection ask for much at once, so strangers get one request at a time.
    let is_stranger = authenticated.as_ref().map_or(true, User::is_anonymous);
    if is_http2 && is_stranger {
        peer.hang_up.cancel();
    }
    let mut response = match authenticated {
        Ok(user) => {
            let question = Question {
                user,
                verb: request.method().as_str().to_ascii_lowercase(),
                path: percent_decode_str(request.uri().path())
                    .decode_utf8_lossy()
                    .into_owned(),
            };
            gate.decide(question, request, next).await
        }
        Err(doubts) => {
            tracing::debug!(doubts, "a request could not be authenticated");
            unauthorized()
        }
    };
    // What was for this user is not for others.
    let headers = response.headers_mut();
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    response
}

impl Gate {
    async fn decide(&self, question: Question, request: Request, next: Next) -> Response {
        match self.authorizer.decide(question.clone()).await {
            Ok(answer) if answer.allowed => next.run(request).await,
            Ok(answer) => {
                tracing::debug!(user = question.user.name, path = question.path, "forbidden");
                forbidden(&question, &answer.reason)
            }
            Err(error) => {
                if self.complaints.is_new(&error.to_string()) {
                    tracing::warn!(%error, "nobody could say whether a request is allowed");
                }
                undecided(&question.path)
            }
        }
    }
}
