//! A client that remembers what was sent and how it was answered.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

/// One request: its method, and the forms in which it and its answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) asked: String,
    pub(crate) answered: String,
}

#[derive(Clone)]
pub(crate) struct Wire {
    inner: Client,
    /// Answers requests with this method by "forbidden".
    forbidden: Option<Method>,
    seen: Arc<Mutex<Vec<Exchange>>>,
}

impl Wire {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            inner: client,
            forbidden: None,
            seen: Arc::default(),
        }
    }

    pub(crate) fn forbidding(self, method: Method) -> Self {
        Self {
            forbidden: Some(method),
            ..self
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// What was seen since the last call.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, asked) = (request.method().clone(), form(request.headers()));
        let is_forbidden = self.forbidden.as_ref() == Some(&method);
        let (inner, seen) = (self.inner.clone(), Arc::clone(&self.seen));
        async move {
            let answer = if is_forbidden {
                forbidden()
            } else {
                inner.send(request).await?
            };
            let answered = form(answer.headers());
            let exchange = Exchange {
                method,
                asked,
                answered,
            };
            seen.lock().expect("no panic").push(exchange);
            Ok(answer)
        }
        .boxed()
    }
}

fn form(headers: &HeaderMap) -> String {
    let form = headers.get(CONTENT_TYPE).map(|form| form.to_str());
    let form = form.transpose().expect("in plain words");
    form.unwrap_or_default().to_owned()
}

fn forbidden() -> Response<Body> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "nodes \"n\" is forbidden: User \"u\" cannot update resource \"nodes\"",
    });
    let answer = Response::builder()
        .status(403)
        .header(CONTENT_TYPE, "application/json");
    let body = Body::from(status.to_string().into_bytes());
    answer.body(body).expect("an answer")
}
