//! Logs everything that goes over the wire, without credentials.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Redactor, Transport, TransportError};
use http::HeaderMap;

/// A transport that logs requests and answers, without the credential.
pub(super) struct RequestDump(pub(super) Arc<dyn Transport>);

#[async_trait]
impl Transport for RequestDump {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let line = format!("{} {}", request.method(), request.uri());
        tracing::info!(
            "{}",
            text_of(&line, request.headers(), request.body(), "request")
        );
        let answer = self.0.send(request).await?;
        let line = format!("{} to {line}", answer.status());
        tracing::info!(
            "{}",
            text_of(&line, answer.headers(), answer.body(), "answer")
        );
        Ok(answer)
    }
}

fn text_of(line: &str, headers: &HeaderMap, body: &Bytes, what: &str) -> String {
    let redactor = Redactor::default();
    let mut text = format!("{what}: {line}\n");
    for (name, value) in headers {
        let value = if value.is_sensitive() || redactor.is_secret(name.as_str()) {
            "REDACTED".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {value}");
    }
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(body));
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{AUTHORIZATION, SET_COOKIE};

    use super::*;

    #[test]
    fn all_is_logged_but_the_credential() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"));
        headers.insert(SET_COOKIE, HeaderValue::from_static("session=hunter2"));
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let text = text_of("GET /v1/servers", &headers, &Bytes::from("{}"), "request");
        assert_eq!(
            text,
            "request: GET /v1/servers\nauthorization: REDACTED\nset-cookie: REDACTED\n\
             accept: application/json\n\n{}"
        );
    }
}
