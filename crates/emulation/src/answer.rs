//! What a cloud answers.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::fault::CommonFault;
use super::list_shape::ListShape;
use super::xml::to_xml;

const JSON: &str = "application/json";
const XML: &str = "text/xml;charset=UTF-8";
const HTML: &str = "text/html";

/// An answer on its way out.
#[derive(Debug, Clone)]
pub struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
    content_type: &'static str,
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

    /// A status and XML: an element of this name with these fields inside.
    pub fn xml(status: StatusCode, root: &str, fields: &Value) -> Self {
        Self {
            content_type: XML,
            ..Self::of(status, to_xml(root, fields).into_bytes())
        }
    }

    /// A status and a body that is JSON already.
    pub const fn of(status: StatusCode, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            content_type: JSON,
        }
    }

    /// What a proxy says, in no form of the API.
    pub fn html(status: StatusCode) -> Self {
        let page = b"<html><body>something is wrong here</body></html>";
        Self {
            content_type: HTML,
            ..Self::of(status, page.to_vec())
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

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The answer as a fault lets it through. Faults about lists leave other answers alone.
    pub(super) fn corrupted(self, shape: &ListShape, fault: &CommonFault) -> Self {
        match fault {
            CommonFault::MalformedJson => {
                let half = self.body.len() / 2;
                let mut answer = self;
                answer.body.truncate(half);
                answer
            }
            CommonFault::Html => Self {
                headers: self.headers,
                ..Self::html(StatusCode::OK)
            },
            CommonFault::EmptyBody => Self {
                status: StatusCode::OK,
                body: Vec::new(),
                ..self
            },
            fault => match fault
                .list_fault()
                .and_then(|how| shape.corrupt(&self.body, how))
            {
                Some(body) => Self { body, ..self },
                None => self,
            },
        }
    }

    /// The answer as HTTP sends it.
    pub fn into_parts(self) -> (StatusCode, Vec<(HeaderName, HeaderValue)>, Vec<u8>) {
        let mut headers = self.headers;
        if !self.body.is_empty() {
            let content_type = HeaderValue::from_static(self.content_type);
            headers.push((CONTENT_TYPE, content_type));
        }
        (self.status, headers, self.body)
    }

    pub(super) fn into_response(self) -> Response {
        let (status, headers, body) = self.into_parts();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().extend(headers);
        response
    }
}
