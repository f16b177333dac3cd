//! A request: who asks, for what, and how the answer should look.

mod accept;
mod path;
mod query;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use jiff::Timestamp;
use serde_json::Value;

pub(crate) use accept::{Accepted, Encoding, View};
pub(crate) use path::{Place, Target};
pub(crate) use query::{FieldValidation, Query, VersionMatch};

use crate::protobuf::{self, Unreadable};
use crate::refusal::Refusal;
use crate::store::Verb;

/// A request as it arrived.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) accepted: Accepted,
    pub(crate) body: Bytes,
    /// When the client sent it, which may be long before it arrives.
    pub(crate) sent_at: Timestamp,
}

impl Incoming {
    pub(crate) fn new(parts: &Parts, body: Bytes, sent_at: Timestamp) -> Self {
        let header = |name| header_text(&parts.headers, name);
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            content_type: header(header::CONTENT_TYPE),
            accepted: Accepted::parse(&header(header::ACCEPT)),
            body,
            sent_at,
        }
    }

    /// What the request wants of a resource.
    pub(crate) fn verb(&self, target: &Target) -> Result<Verb, Refusal> {
        let named = target.name.is_some();
        let part = target.subresource.as_deref();
        match (&self.method, named) {
            (&Method::POST, true) if part == Some("token") => Ok(Verb::Create),
            _ if part == Some("token") => Err(Refusal::method_not_allowed()),
            (&Method::GET, _) if self.query.watch => Ok(Verb::Watch),
            (&Method::GET, true) => Ok(Verb::Get),
            (&Method::GET, false) => Ok(Verb::List),
            (&Method::POST, false) => Ok(Verb::Create),
            (&Method::PUT, true) => Ok(Verb::Update),
            (&Method::PATCH, true) => Ok(Verb::Patch),
            (&Method::DELETE, true) if part.is_none() => Ok(Verb::Delete),
            (&Method::DELETE, false) => Ok(Verb::DeleteCollection),
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    /// The body as JSON, which it may have been sent as or not; null if there is none.
    pub(crate) fn json(&self) -> Result<Value, Refusal> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        if self.content_type.starts_with(protobuf::MEDIA_TYPE) {
            return protobuf::decode_object(&self.body).map_err(|error| match error {
                Unreadable::Malformed(why) => Refusal::bad_request(why),
                unknown @ Unreadable::UnknownKind { .. } => {
                    Refusal::unsupported_media_type(unknown.to_string())
                }
            });
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Refusal::bad_request(format!("the object provided is unrecognized: {error}"))
        })
    }
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
