//! The credentials of a request, which no message about it may repeat.

use std::cmp::Reverse;

use bytes::Bytes;
use cloudkeel_api::REDACTED;
use http::header::COOKIE;
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::redact::Redactor;
use crate::request::Request;

/// Shorter credentials are not replaced by value: that would remove ordinary words.
const MIN_SECRET_LENGTH: usize = 4;

/// The credentials of one request, by value, because a cloud may repeat them anywhere.
#[derive(Clone, Default)]
pub(crate) struct SentSecrets(Vec<String>);

impl SentSecrets {
    /// The values of secret names in headers, query and body, and of sensitive headers.
    pub(crate) fn of(request: &Request, wire: &http::Request<Bytes>, redactor: &Redactor) -> Self {
        let headers = wire.headers().iter();
        let mut values: Vec<_> = headers
            .flat_map(|header| carried_by(header, redactor))
            .collect();
        let query = wire.uri().query().unwrap_or_default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            if redactor.is_secret(&percent_decode_str(name).decode_utf8_lossy()) {
                values.push(percent_decode_str(value).decode_utf8_lossy().into_owned());
                values.push(value.to_owned());
            }
        }
        values.extend(request.secrets(redactor));
        Self::new(values)
    }

    pub(crate) fn new(mut values: Vec<String>) -> Self {
        values.retain(|value| value.len() >= MIN_SECRET_LENGTH);
        // One may be the prefix of another, whose rest would then be shown.
        values.sort_by_key(|value| Reverse(value.len()));
        values.dedup();
        Self(values)
    }

    /// The text with every occurrence replaced.
    pub(crate) fn without(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }
}

/// The credentials in a header, without a scheme such as `Bearer`.
fn carried_by((name, value): (&HeaderName, &HeaderValue), redactor: &Redactor) -> Vec<String> {
    let secret = value.is_sensitive() || redactor.is_secret(name.as_str());
    let Some(text) = value.to_str().ok().filter(|_| secret) else {
        return Vec::new();
    };
    if name == COOKIE {
        let cookies = text.split(';').filter_map(|cookie| cookie.split_once('='));
        return cookies
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .collect();
    }
    let mut values = redactor.secrets_in(text);
    values.extend(text.rsplit(' ').next().map(str::to_owned));
    values
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent_secrets(request: &Request) -> SentSecrets {
        let base = crate::BaseUrl::parse("https://api.example.com").unwrap();
        let mut wire = request.to_http(&base).unwrap();
        let credential = HeaderValue::from_static("Bearer credential-1");
        wire.headers_mut().insert("authorization", credential);
        let redactor = Redactor::with_fields(["pet_name"]);
        SentSecrets::of(request, &wire, &redactor)
    }

    #[test]
    fn what_was_sent_under_a_secret_name_is_hidden_wherever_it_comes_back() {
        let login = json!({"auth": {"methods": ["password"], "user": {"name": "joe-the-user",
            "password": "json-hunter2", "pet_name": ["rex-hunter2"]}}});
        for (case, request) in [
            ("the credential", Request::get("/")),
            (
                "a header",
                Request::get("/").header("X-Subject-Token", "header-hunter2"),
            ),
            (
                "a parameter",
                Request::get("/").query("api_key", "query-hunter2"),
            ),
            ("JSON", Request::post("/").json(login)),
            (
                "a form",
                Request::post("/").form([("client_secret", "form-hunter2")]),
            ),
            (
                "XML",
                Request::post("/").body(crate::Body::Raw {
                    content_type: "text/xml",
                    bytes: Bytes::from("<v:password>xml-hunter2</v:password>"),
                }),
            ),
            (
                "a cookie",
                Request::get("/").header("Cookie", "a=\"cookie-hunter2\"; b=c"),
            ),
            (
                "a signature",
                Request::get("/").header("X-Signature", "v=1,signature=\"sign-hunter2\", x"),
            ),
        ] {
            let echo = "credential-1 header-hunter2 query-hunter2 json-hunter2 rex-hunter2 form-hunter2 \
                        xml-hunter2 cookie-hunter2 sign-hunter2";
            let shown = sent_secrets(&request).without(echo.to_owned());
            assert!(!shown.contains("credential-1"), "{case}: {shown}");
            let hidden = echo.matches("hunter2").count() - shown.matches("hunter2").count();
            let expected = match case {
                "the credential" => 0,
                "JSON" => 2,
                _ => 1,
            };
            assert_eq!(hidden, expected, "{case}: {shown}");
        }
    }

    #[test]
    fn ordinary_words_of_a_request_stay_readable() {
        let login = json!({"auth": {"methods": ["password"], "user": {"name": "joe-the-user"}}});
        let request = Request::post("/").json(login).header("X-Harmless", "shown");
        let text = "the password of joe-the-user is wrong, shown";
        assert_eq!(sent_secrets(&request).without(text.to_owned()), text);
    }

    #[test]
    fn a_credential_that_begins_like_another_leaves_no_rest_of_it() {
        let sent_secrets = SentSecrets::new(vec![
            "token".to_owned(),
            "token-and-more".to_owned(),
            "ab".to_owned(),
        ]);
        let shown = sent_secrets.without("token-and-more token ab".to_owned());
        assert_eq!(shown, "[redacted] [redacted] ab");
    }
}
