//! Rejects writes after the lease is lost, in the client itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use cloudkeel_controllers::planted::Bug;
use http::{Method, Request};
use tower_layer::Layer;
use tower_service::Service;

use crate::election::Fence;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A write was rejected because this replica no longer holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not written: this replica no longer holds the lease")]
pub struct FenceClosed;

/// Rejects writes as soon as the fence is closed. Reads pass.
#[derive(Debug, Clone)]
pub struct FenceWrites {
    fence: Fence,
}

impl FenceWrites {
    /// A layer that checks this fence before every write.
    pub const fn new(fence: Fence) -> Self {
        Self { fence }
    }
}

impl<S> Layer<S> for FenceWrites {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced {
            inner,
            fence: self.fence.clone(),
        }
    }
}

/// A client that cannot write behind a closed fence.
#[derive(Debug, Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S, A> Service<Request<A>> for Fenced<S>
where
    S: Service<Request<A>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let is_open = self.fence.is_open() || Bug::IgnoreLeaseLoss.is_planted();
        if is_write(request.method()) && !is_open {
            return Box::pin(async { Err(FenceClosed.into()) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

pub(super) fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
