//! The client.

use std::fmt;
use std::sync::Arc;

use cloudkeel_api::{Clock, CloudError, SharedObserver};
use http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use crate::authorize::Authorizer;
use crate::backoff::Jitter;
use crate::builder::ClientBuilder;
use crate::call::Call;
use crate::error::ErrorMap;
use crate::limit::Limiter;
use crate::page::Pager;
use crate::redact::Redactor;
use crate::request::Request;
use crate::response::Response;
use crate::retry::RetryPolicy;
use crate::transport::Transport;
use crate::url::{BaseUrl, LinkPolicy};

/// Sends requests to one API. Cheap to clone; clones share connections, credential and budget.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) base: BaseUrl,
    pub(crate) links: LinkPolicy,
    pub(crate) headers: HeaderMap,
    pub(crate) request_ids: Vec<HeaderName>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) errors: Arc<dyn ErrorMap>,
    pub(crate) reads: Limiter,
    pub(crate) writes: Limiter,
    pub(crate) observer: SharedObserver,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) retry: RetryPolicy,
    pub(crate) jitter: Arc<Jitter>,
    pub(crate) redactor: Redactor,
    /// The settings that the client was built from, to derive others from it.
    pub(crate) parts: ClientBuilder,
}

impl Client {
    /// Starts a client for an API at this address, such as `https://api.hetzner.cloud/v1`.
    pub fn builder(base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(base_url.into())
    }

    /// Starts another client that shares everything with this one but what is set anew, such as the
    /// base URL of another service that takes the same token.
    pub fn derive(&self) -> ClientBuilder {
        self.inner.parts.clone()
    }

    /// The base URL of this client.
    pub fn base_url(&self) -> &BaseUrl {
        &self.inner.base
    }

    /// Sends a request, again if that is safe and useful, and gives back an accepted answer.
    ///
    /// Any other answer is an error of the kind that the client's [`ErrorMap`] says. If the request
    /// budget does not allow the call in time, it is
    /// [`Throttled`](cloudkeel_api::ErrorKind::Throttled) without anything being sent.
    /// Dropping the future cancels the call.
    pub async fn send(&self, request: Request) -> Result<Response, CloudError> {
        self.send_ref(&request).await
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn fetch<T: DeserializeOwned>(&self, request: Request) -> Result<T, CloudError> {
        self.send_ref(&request).await?.json()
    }

    /// All items of a listing that comes in pages.
    pub fn pages(&self, first: Request) -> Pager<'_> {
        Pager::new(self, first)
    }

    pub(crate) async fn send_ref(&self, request: &Request) -> Result<Response, CloudError> {
        Call::begin(&self.inner, request).run().await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.inner.base)
    }
}

#[cfg(test)]
mod tests;
