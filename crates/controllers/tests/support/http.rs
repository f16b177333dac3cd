//! The API server as what a client sends its requests to.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use super::api::{FakeApi, What};

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    fn answer(&self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
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
                world.ask_node(What::WriteStatus, name, body)
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
            let (code, answer) = api.answer(&parts.method, parts.uri.path(), &body);
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
