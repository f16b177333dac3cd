//! A finished client as the innermost part of another one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

/// Sends what it gets through a client that somebody else made.
#[derive(Clone)]
pub(super) struct GivenClient(Client);

impl GivenClient {
    pub(super) const fn new(client: Client) -> Self {
        Self(client)
    }
}

impl Service<Request<Body>> for GivenClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = kube::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}
