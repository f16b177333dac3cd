//! The transport behind a trait, so that tests need no socket.

mod connect;
mod hyper;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::connect::{ProxyConnector, Routed};
pub use self::hyper::{HttpSettings, HyperTransport};
use crate::error::TransportError;

/// Sends one request and reads the whole response. It does not retry and does not interpret.
///
/// Dropping the future cancels the request.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends `request`. A truncated response is an error, never a short body.
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError>;
}
