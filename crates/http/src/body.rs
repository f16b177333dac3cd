//! The body of a request.

use std::fmt;

use bytes::Bytes;
use cloudkeel_api::Secret;
use http::HeaderValue;
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use crate::path::STRICT;
use crate::redact::{Redactor, excerpt};

/// The body of a request.
#[derive(Clone, PartialEq)]
pub enum Body {
    /// JSON, as almost every API wants it.
    Json(Value),
    /// URL-encoded pairs, as OAuth token endpoints want them. The values are treated as secrets.
    Form(Vec<(String, Secret)>),
    /// Anything else, such as XML.
    Raw {
        /// Its media type, such as `application/merge-patch+json`.
        content_type: &'static str,
        /// Its bytes.
        bytes: Bytes,
    },
}

impl Body {
    pub(crate) fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json(_) => "application/json",
            Self::Form(_) => "application/x-www-form-urlencoded",
            Self::Raw { content_type, .. } => content_type,
        })
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        match self {
            Self::Json(value) => Bytes::from(value.to_string()),
            Self::Form(pairs) => Bytes::from(form(pairs)),
            Self::Raw { bytes, .. } => bytes.clone(),
        }
    }

    /// The values directly under a secret name. Not those deeper under one: `auth` of OpenStack contains names that
    /// error messages need.
    pub(crate) fn secrets(&self, redactor: &Redactor) -> Vec<String> {
        match self {
            Self::Json(value) => {
                let mut found = Vec::new();
                gather(value, false, redactor, &mut found);
                found
            }
            Self::Form(pairs) => pairs
                .iter()
                .filter(|(name, _)| redactor.is_secret(name))
                .map(|(_, value)| value.expose().to_owned())
                .collect(),
            Self::Raw { bytes, .. } => redactor.secrets_in(&String::from_utf8_lossy(bytes)),
        }
    }

    /// The body as it may be logged.
    pub(crate) fn shown(&self, redactor: &Redactor, max_chars: usize) -> String {
        match self {
            Self::Json(value) => excerpt(&redactor.json(value).to_string(), max_chars),
            Self::Form(pairs) => {
                let names: Vec<_> = pairs.iter().map(|(name, _)| name.as_str()).collect();
                format!("form with {}", names.join(", "))
            }
            Self::Raw {
                content_type,
                bytes,
            } => format!("{} bytes of {content_type}", bytes.len()),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(&Redactor::default(), 1000))
    }
}

fn gather(value: &Value, is_secret: bool, redactor: &Redactor, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_secret => found.push(text.clone()),
        Value::Array(items) => {
            for item in items {
                gather(item, is_secret, redactor, found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                gather(value, redactor.is_secret(name), redactor, found);
            }
        }
        _ => {}
    }
}

fn form(pairs: &[(String, Secret)]) -> String {
    let encoded: Vec<_> = pairs
        .iter()
        .map(|(name, value)| {
            format!(
                "{}={}",
                utf8_percent_encode(name, STRICT),
                utf8_percent_encode(value.expose(), STRICT)
            )
        })
        .collect();
    encoded.join("&")
}
