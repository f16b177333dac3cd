//! What a cloud says.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use super::fault::{Mishap, ScriptedFault};
use super::{Emulated, ListFault};

/// An answer on its way out.
#[derive(Debug, Clone)]
pub struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
    html: bool,
}

impl Answer {
    /// A status, and nothing else.
    pub fn empty(status: StatusCode) -> Self {
        Self::of(status, Vec::new())
    }

    /// A status and JSON.
    pub fn json(status: StatusCode, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self::of(status, body),
            // Only what is no JSON at all cannot be written, such as a map with keys that are no texts.
            Err(_) => Self::empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// A status and a body that is JSON already.
    pub fn of(status: StatusCode, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            html: false,
        }
    }

    /// What a proxy says, without any JSON.
    pub fn html(status: StatusCode) -> Self {
        Self {
            html: true,
            ..Self::of(
                status,
                b"<html><body>something is wrong here</body></html>".to_vec(),
            )
        }
    }

    /// The same with one header more. What cannot be a header is left out.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// The HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer as a fault lets it through. Faults about lists leave other answers alone.
    pub(super) fn spoilt<C: Emulated>(self, cloud: &C, fault: Option<&C::Fault>) -> Self {
        match fault.and_then(ScriptedFault::mishap) {
            Some(Mishap::List(how)) => self.with_spoilt_list(cloud, how),
            Some(Mishap::MalformedJson) => {
                let mut answer = self;
                answer.body.truncate(answer.body.len() / 2);
                answer
            }
            Some(Mishap::Html) => Self {
                headers: self.headers,
                ..Self::html(StatusCode::OK)
            },
            Some(Mishap::EmptyBody) => Self {
                status: StatusCode::OK,
                body: Vec::new(),
                ..self
            },
            _ => self,
        }
    }

    fn with_spoilt_list<C: Emulated>(mut self, cloud: &C, how: ListFault) -> Self {
        if let Ok(mut list) = serde_json::from_slice(&self.body) {
            cloud.spoil_list(&mut list, how);
            self.body = serde_json::to_vec(&list).unwrap_or_default();
        }
        self
    }

    pub(super) fn into_response(self) -> Response {
        let kind = match (self.html, self.body.is_empty()) {
            (true, _) => Some("text/html"),
            (false, false) => Some("application/json"),
            (false, true) => None,
        };
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        if let Some(kind) = kind {
            let kind = HeaderValue::from_static(kind);
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        response
    }
}
