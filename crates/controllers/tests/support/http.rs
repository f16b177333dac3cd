//! The API server as what a client sends its requests to.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use super::api::{FakeApi, What};

const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    fn answer(&self, parts: &Parts, body: &Value) -> (u16, Value) {
        let (method, path) = (&parts.method, parts.uri.path());
        let kind = parts.headers.get(CONTENT_TYPE);
        let is_strategic = kind.is_some_and(|kind| kind == STRATEGIC);
        let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
        let mut world = self.world();
        match parts.as_slice() {
            ["api", "v1", "nodes", name] => match *method {
                Method::GET => world.ask_node(What::Read, name, body),
                Method::PATCH => world.ask_node(What::Write, name, body),
                Method::DELETE => world.ask_node(What::Delete, name, body),
                _ => (405, Value::Null),
            },
            ["api", "v1", "nodes", name, "status"] if *method == Method::PATCH => {
                let what = if is_strategic {
                    What::WriteConditions
                } else {
                    What::WriteStatus
                };
                world.ask_node(what, name, body)
            }
            [
                "apis",
                "coordination.k8s.io",
                "v1",
                "namespaces",
                "kube-node-lease",
                "leases",
                name,
            ] if *method == Method::GET => world.lease(name),
            ["api", "v1", "namespaces", "default", "events", name @ ..] => {
                world.tell(method, name.first().copied(), body)
            }
            _ => panic!("nobody should ask for {method} {path}"),
        }
    }
}

impl Service<Request<Body>> for FakeApi {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let body = match body.as_ref() {
                [] => Value::Null,
                bytes => serde_json::from_slice(bytes)?,
            };
            let (code, answer) = api.answer(&parts, &body);
            let answer = if code < 400 {
                answer
            } else {
                json!({"kind": "Status", "status": "Failure", "code": code, "details": answer})
            };
            let mut response = Response::new(Body::from(serde_json::to_vec(&answer)?));
            *response.status_mut() = StatusCode::from_u16(code).map_err(io::Error::other)?;
            Ok(response)
        })
    }
}
