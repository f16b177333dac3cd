//! The API server as what a client sends its requests to: Services here, the rest as for Nodes.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use crate::services::Services;
use crate::support::api::FakeApi;

/// Nodes, events and Services. Clones are the same server.
#[derive(Clone)]
pub(crate) struct ApiServer {
    pub(crate) nodes: FakeApi,
    pub(crate) services: Services,
}

impl ApiServer {
    pub(crate) fn new() -> Self {
        Self {
            nodes: FakeApi::new(),
            services: Services::new(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    fn answer(&self, method: &Method, place: &[&str], query: &str, body: &Value) -> (u16, Value) {
        match (method, place) {
            (&Method::PATCH, [name, "status"]) => self.services.patch_status(name, body),
            (&Method::GET, []) => {
                let name = query
                    .split('&')
                    .find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
                self.services.list(name.expect("only a list of one name"))
            }
            _ => panic!("nobody should ask for {method} of Service {place:?}"),
        }
    }
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let Some(place) = path.strip_prefix("/api/v1/namespaces/default/services") else {
            return self.nodes.call(request);
        };
        let api = self.clone();
        let place: Vec<String> = place
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let body = match body.as_ref() {
                [] => Value::Null,
                bytes => serde_json::from_slice(bytes)?,
            };
            let place: Vec<_> = place.iter().map(String::as_str).collect();
            let query = parts.uri.query().unwrap_or_default();
            let (code, answer) = api.answer(&parts.method, &place, query, &body);
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
