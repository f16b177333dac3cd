//! An API server that returns given responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower_service::Service;

/// A status and a body, or `None`: it accepts the request and never responds.
type Answer = Option<(u16, String)>;

/// Returns these responses one after the other, and then the last one for ever.
#[derive(Clone)]
pub(crate) struct ApiServer(Arc<Mutex<VecDeque<Answer>>>);

impl ApiServer {
    pub(crate) fn answering(answers: &[Option<(u16, &str)>]) -> Self {
        let owned =
            |answer: &Option<(u16, &str)>| answer.map(|(code, body)| (code, body.to_owned()));
        Self(Arc::new(Mutex::new(answers.iter().map(owned).collect())))
    }

    pub(crate) fn client(self) -> Client {
        Client::new(self, "default")
    }

    fn next(&self) -> Answer {
        let mut answers = self.0.lock().unwrap();
        if answers.len() > 1 {
            answers.pop_front().flatten()
        } else {
            answers.front().cloned().flatten()
        }
    }
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        let Some((status, body)) = self.next() else {
            return Box::pin(std::future::pending());
        };
        let answer = Response::builder().status(status);
        let answer = answer.body(Body::from(body.into_bytes())).unwrap();
        Box::pin(async { Ok(answer) })
    }
}

/// The body of an error with this code.
pub(crate) fn failure(code: u16) -> String {
    let reason = if code == 404 { "NotFound" } else { "Because" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
        "reason": reason, "code": code,
    });
    status.to_string()
}
