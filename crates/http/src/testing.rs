//! A scripted transport, for tests without sockets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use crate::error::{TransportError, TransportErrorKind};
use crate::transport::Transport;

/// One answer of the script.
#[derive(Debug, Clone)]
pub struct Reply {
    delay: Duration,
    result: Result<http::Response<Bytes>, TransportErrorKind>,
}

impl Reply {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string())
    }

    /// An answer without a body.
    pub fn status(status: u16) -> Self {
        Self::text(status, "")
    }

    /// An answer with any body.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        let mut response = http::Response::new(Bytes::from(body.into()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
        Self {
            delay: Duration::ZERO,
            result: Ok(response),
        }
    }

    /// No response.
    pub const fn broken(kind: TransportErrorKind) -> Self {
        Self {
            delay: Duration::ZERO,
            result: Err(kind),
        }
    }

    /// With this header. An invalid name or value is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        if let (Ok(response), Ok(name), Ok(value)) = (
            &mut self.result,
            name.parse::<HeaderName>(),
            HeaderValue::from_str(&value.to_string()),
        ) {
            response.headers_mut().append(name, value);
        }
        self
    }

    /// After this long.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Responds to requests in the order of the script and records them. A request beyond the script fails, and is not
/// retried.
#[derive(Debug, Default)]
pub struct Script {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<http::Request<Bytes>>>,
}

impl Script {
    /// A script of these answers.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self {
            replies: Mutex::new(replies.into_iter().collect()),
            seen: Mutex::default(),
        })
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<http::Request<Bytes>> {
        lock(&self.seen).clone()
    }

    /// The requests so far, as method and URL.
    pub fn seen_lines(&self) -> Vec<String> {
        let seen = self.seen();
        let lines = seen
            .iter()
            .map(|request| format!("{} {}", request.method(), request.uri()));
        lines.collect()
    }

    /// How many responses were not requested.
    pub fn left(&self) -> usize {
        lock(&self.replies).len()
    }
}

#[async_trait]
impl Transport for Script {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let line = format!("{} {}", request.method(), request.uri());
        lock(&self.seen).push(request);
        let reply = lock(&self.replies).pop_front();
        let Some(reply) = reply else {
            let message = format!("the script has no answer for {line}");
            return Err(TransportError::new(TransportErrorKind::Untrusted, message));
        };
        tokio::time::sleep(reply.delay).await;
        reply
            .result
            .map_err(|kind| TransportError::new(kind, "broken as scripted"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
