//! A finished client as the innermost part of another one.

use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

/// Sends what it gets through a client that somebody else made.
#[derive(Clone)]
pub struct GivenClient(Client);

impl GivenClient {
    /// Sends through this client.
    pub const fn new(client: Client) -> Self {
        Self(client)
    }
}

impl Service<Request<Body>> for GivenClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        async move { client.send(request).await }.boxed()
    }
}
