//! What a request carries that no text about it may repeat.

use std::cmp::Reverse;

use cloudkeel_api::{REDACTED, Secret};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::redact::Redactor;
use crate::request::Request;

/// Shorter credentials are not searched for by value: they would blot out ordinary words.
const SHORTEST: usize = 4;

/// The credentials of one request, by value, for a cloud may repeat them anywhere.
#[derive(Clone, Default)]
pub(crate) struct Known(Vec<String>);

impl Known {
    /// The credential itself, and what stands under a secret name in headers, query and body.
    pub(crate) fn of(
        request: &Request,
        headers: &HeaderMap,
        credential: Option<&Secret>,
        redactor: &Redactor,
    ) -> Self {
        let headers = headers
            .iter()
            .filter_map(|header| carried_by(header, redactor));
        let credential = credential.map(|used| used.expose().to_owned());
        Self::new(
            headers
                .chain(credential)
                .chain(request.secrets(redactor))
                .collect(),
        )
    }

    pub(crate) fn new(mut values: Vec<String>) -> Self {
        values.retain(|value| value.len() >= SHORTEST);
        // One may be the beginning of another: what is left of that would show.
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

/// The credential in a header; a scheme such as `Bearer` in front of it is none.
fn carried_by((name, value): (&HeaderName, &HeaderValue), redactor: &Redactor) -> Option<String> {
    let secret = value.is_sensitive() || redactor.is_secret(name.as_str());
    let text = value.to_str().ok().filter(|_| secret)?;
    text.rsplit(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known(request: &Request) -> Known {
        let base = crate::BaseUrl::parse("https://api.example.com").unwrap();
        let wire = request.to_http(&base).unwrap();
        let credential = Secret::new("credential-1");
        let redactor = Redactor::with_fields(["pet_name"]);
        Known::of(request, wire.headers(), Some(&credential), &redactor)
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
        ] {
            let echo =
                "credential-1 header-hunter2 query-hunter2 json-hunter2 rex-hunter2 form-hunter2";
            let shown = known(&request).without(echo.to_owned());
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
        assert_eq!(known(&request).without(text.to_owned()), text);
    }

    #[test]
    fn a_credential_that_begins_like_another_leaves_no_rest_of_it() {
        let known = Known::new(vec![
            "token".to_owned(),
            "token-and-more".to_owned(),
            "ab".to_owned(),
        ]);
        let shown = known.without("token-and-more token ab".to_owned());
        assert_eq!(shown, "[redacted] [redacted] ab");
    }
}
