//! A cloud's response.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{CloudError, ErrorKind, REDACTED};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::limit::headers;
use crate::redact::{Redactor, excerpt};
use crate::sent_secrets::SentSecrets;

/// How much of an unreadable body an error quotes.
const QUOTED_CHARS: usize = 200;

/// An accepted response.
#[derive(Clone)]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) request_id: Option<String>,
    pub(crate) operation: String,
    pub(crate) received: Timestamp,
    pub(crate) redactor: Redactor,
    /// The credentials that the request carried, kept out of every message about the response.
    pub(crate) sent_secrets: SentSecrets,
    pub(crate) confidential: bool,
}

impl Response {
    /// The HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// One header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The whole body.
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The ID under which the cloud's support can find the request.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// How long the cloud asks to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        headers::retry_after(&self.headers, self.received)
    }

    /// Parses the body as JSON.
    ///
    /// A mismatch is [`ErrorKind::Malformed`] and names the operation, the position in the JSON and the beginning of
    /// the body, without secrets.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, CloudError> {
        self.check_document()?;
        let mut reader = serde_json::Deserializer::from_slice(&self.body);
        let value = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| self.malformed(&self.mismatch(&error)))?;
        reader
            .end()
            .map_err(|error| self.malformed(&format!("something follows the JSON: {error}")))?;
        Ok(value)
    }

    /// Parses the body with a function of the provider, such as one that calls an XML library.
    ///
    /// A failure is [`ErrorKind::Malformed`], as with [`json`](Self::json). The function never gets an empty body or
    /// an HTML page: some libraries read those as a document without items.
    pub fn decode<T, E: fmt::Display>(
        &self,
        read: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<T, CloudError> {
        self.check_document()?;
        read(&self.body).map_err(|error| {
            let why = without_quoted(&error.to_string());
            self.malformed(&self.quoted(&why))
        })
    }

    fn check_document(&self) -> Result<(), CloudError> {
        let start = self.body.trim_ascii_start();
        let begins_with = |tag: &str| {
            let start = start.get(..tag.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()))
        };
        if start.is_empty() {
            return Err(self.malformed("it is empty"));
        }
        if ["<!doctype html", "<html"].into_iter().any(begins_with) {
            return Err(self.malformed("it is a page of HTML"));
        }
        Ok(())
    }

    /// An error about this response, such as an invalid field.
    pub fn malformed(&self, why: &str) -> CloudError {
        let why = excerpt(&self.sent_secrets.without(why.to_owned()), QUOTED_CHARS);
        let body = self.shown_body(QUOTED_CHARS);
        let status = self.status.as_u16();
        let message = format!("the answer (HTTP {status}) cannot be understood: {why}");
        let error = self.error(ErrorKind::Malformed, message);
        error.with_details(format!("it begins with {body:?}"))
    }

    /// An error of another kind about this response.
    pub fn error(&self, kind: ErrorKind, message: impl Into<String>) -> CloudError {
        let error = CloudError::new(self.operation.clone(), kind, message);
        match &self.request_id {
            Some(request_id) => error.with_request_id(request_id),
            None => error,
        }
    }

    pub(crate) fn shown_headers(&self) -> String {
        self.sent_secrets
            .without(self.redactor.headers(&self.headers))
    }

    /// Text from the response, as an error may quote it.
    pub(crate) fn quoted(&self, text: &str) -> String {
        self.redactor
            .foreign(text, &self.sent_secrets, QUOTED_CHARS)
    }

    pub(crate) fn shown_body(&self, max_chars: usize) -> String {
        if self.confidential {
            return REDACTED.to_owned();
        }
        self.redactor
            .body(&self.body, &self.sent_secrets, max_chars)
    }

    fn mismatch(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
        let path = error.path().to_string();
        if path
            .split(['.', '['])
            .any(|step| self.redactor.is_secret(step))
        {
            return format!("at {path}: not what was expected");
        }
        let text = without_quoted(&error.inner().to_string());
        format!("at {path}: {}", without_type_names(&text))
    }
}

/// Serde names the Rust type, which means nothing to a reader.
fn without_type_names(text: &str) -> String {
    let mut plain = Vec::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let what = match word {
            "struct" => "an object",
            "enum" => "one of some words",
            _ => {
                plain.push(word);
                continue;
            }
        };
        plain.push(what);
        words.next_if(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    }
    plain.join(" ")
}

/// Serde quotes the value that did not fit; it may be a secret under an innocent name.
fn without_quoted(text: &str) -> String {
    match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            let (before, rest) = text.split_at(first);
            let (_, after) = rest.split_at(last + 1 - first);
            format!("{before}\"…\"{after}")
        }
        _ => text.to_owned(),
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("operation", &self.operation)
            .field("status", &self.status)
            .field("request_id", &self.request_id)
            .field("headers", &self.shown_headers())
            .field("body", &self.shown_body(1000))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Servers {
        servers: Vec<Server>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading is tested")]
    struct Server {
        id: u64,
        #[serde(default)]
        admin_pass: Option<u64>,
    }

    fn answer(body: &str) -> Response {
        Response {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            request_id: Some("req-7".to_owned()),
            operation: "GET /servers".to_owned(),
            received: Timestamp::UNIX_EPOCH,
            redactor: Redactor::default(),
            sent_secrets: SentSecrets::new(vec!["s3cr3t-token".to_owned()]),
            confidential: false,
        }
    }

    #[test]
    fn a_mismatch_is_reported_without_type_names() {
        let error = answer(r#"{"servers":[7]}"#).json::<Servers>();
        let text = error.unwrap_err().message().to_owned();
        assert!(text.contains("expected an object"), "{text}");
        for name in ["struct", "Server "] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn a_mismatch_names_operation_place_and_request() {
        let error = answer(r#"{"servers":[{"id":1},{"id":"hunter2"}]}"#)
            .json::<Servers>()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(error.operation(), "GET /servers");
        assert_eq!(error.request_id(), Some("req-7"));
        for part in ["servers[1].id", "line 1 column", "expected u64", "\"…\""] {
            assert!(error.message().contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn whatever_comes_is_an_error_and_never_a_panic() {
        for (case, body) in [
            ("empty", ""),
            ("cut off", r#"{"servers":[{"id":1},{"#),
            ("a page of HTML", "<html>Bad Gateway</html>"),
            ("another shape", "[1,2]"),
            ("not UTF-8", "\u{fffd}\u{0}"),
            ("two documents", r#"{"servers":[]}{"servers":[]}"#),
        ] {
            let error = answer(body).json::<Servers>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{case}");
        }
    }

    #[test]
    fn a_decoder_of_the_provider_never_sees_what_is_no_document() {
        for (case, body, why) in [
            ("empty", "", "it is empty"),
            ("blanks", " \r\n ", "it is empty"),
            ("a page of HTML", "<HTML><body/></HTML>", "a page of HTML"),
            ("another", " <!doctype html><p>", "a page of HTML"),
        ] {
            let read = |_: &[u8]| -> Result<(), String> { panic!("{case}") };
            let error = answer(body).decode(read).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{case}");
            assert!(error.to_string().contains(why), "{case}: {error}");
        }
    }

    #[test]
    fn the_error_of_a_decoder_is_quoted_without_secrets() {
        let answer = answer("<a><password>hunter2</password>s3cr3t-token</a>");
        let read = |_: &[u8]| Err::<(), _>("no number: \"hunter2\", password=hunter2 s3cr3t-token");
        let error = answer.decode(read).unwrap_err();
        assert_eq!(error.request_id(), Some("req-7"));
        let text = error.to_string();
        assert!(text.contains("no number"), "{text}");
        assert!(
            text.contains("<a><password>[redacted]</password>"),
            "{text}"
        );
        assert!(
            !text.contains("hunter2") && !text.contains("s3cr3t"),
            "{text}"
        );

        let confidential = Response {
            confidential: true,
            ..answer
        };
        let text = format!(
            "{confidential:?} {}",
            confidential.decode(read).unwrap_err()
        );
        assert!(!text.contains("<a>"), "{text}");
    }

    #[test]
    fn the_quoted_body_is_short_and_shows_no_secret() {
        let long = format!(r#"{{"servers":0,"pad":"{}"}}"#, "x".repeat(10_000));
        let text = answer(&long).json::<Servers>().unwrap_err().to_string();
        assert!(text.len() < 1000, "{} bytes", text.len());

        for (case, body) in [
            ("a secret field", r#"{"servers":1,"password":"hunter2"}"#),
            (
                "the misfit itself",
                r#"{"servers":[{"id":1,"admin_pass":"hunter2"}]}"#,
            ),
            (
                "a deep field",
                r#"{"servers":1,"a":[{"clientSecret":{"x":"hunter2"}}]}"#,
            ),
            ("cut off", r#"{"a":1,"token":"hunter2"#),
            ("not JSON", "password=hunter2&x=y"),
            ("known by value", "<p>s3cr3t-token</p>"),
            (
                "known by value, at the cut",
                &format!("{}s3cr3t-token", "x".repeat(192)),
            ),
        ] {
            let text = answer(body).json::<Servers>().unwrap_err().to_string();
            assert!(!text.contains("hunter2"), "{case}: {text}");
            assert!(!text.contains("s3cr3t"), "{case}: {text}");
        }
    }

    #[test]
    fn a_good_answer_is_read() {
        let servers: Servers = answer(r#" {"servers":[{"id":1}]} "#).json().unwrap();
        assert_eq!(servers.servers.len(), 1);
    }
}
