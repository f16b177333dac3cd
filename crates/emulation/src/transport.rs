//! The way to the cloud that needs no socket.

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError, TransportErrorKind};
use http_body_util::BodyExt as _;
use tower_service::Service as _;

/// Hands requests straight to the cloud's router: one thread, no sockets, no tasks.
#[derive(Debug, Clone)]
pub struct InProcess {
    router: Router,
}

impl InProcess {
    /// The way to the cloud behind this router.
    pub const fn new(router: Router) -> Self {
        Self { router }
    }

    /// The base URL to configure; nothing listens there.
    pub const URL: &str = "http://simulated.invalid";
}

#[async_trait]
impl Transport for InProcess {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        // A router is always ready and never fails.
        let answer = self.router.clone().call(request.map(Body::from)).await;
        let (head, body) = match answer {
            Ok(answer) => answer.into_parts(),
            Err(never) => match never {},
        };
        let body = body.collect().await.map_err(|error| {
            TransportError::new(TransportErrorKind::Broken, "the connection broke")
                .with_source(error)
        })?;
        Ok(http::Response::from_parts(head, body.to_bytes()))
    }
}
