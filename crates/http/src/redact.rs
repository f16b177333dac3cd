//! Keeps credentials out of logs and error texts.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use cloudkeel_api::REDACTED;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::known::Known;

/// A name that contains one of these, whatever its case and punctuation, carries a credential.
const WORDS: &[&str] = &[
    "accesskey",
    "adminpass",
    "apikey",
    "assertion",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "kubeconfig",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "sessionid",
    "signature",
    "token",
    "userdata",
];

/// Too short to be looked for inside longer names.
const WHOLE_NAMES: &[&str] = &["auth", "pass", "pwd", "sig"];

/// Bigger bodies are not parsed to be quoted: as JSON values they would take many times their size.
const LARGEST_PARSED: usize = 256 * 1024;

/// Knows which headers, JSON fields and query parameters are secret.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    extra: Arc<[String]>,
}

impl Redactor {
    /// Also treats fields, headers and parameters whose name contains one of `names` as secret.
    pub fn with_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            extra: names.into_iter().map(normalized).collect(),
        }
    }

    /// Whether a field, header or parameter of this name carries a credential.
    pub fn is_secret(&self, name: &str) -> bool {
        let name = normalized(name);
        WHOLE_NAMES.contains(&name.as_str())
            || WORDS.iter().any(|word| name.contains(word))
            || self.extra.iter().any(|word| name.contains(word.as_str()))
    }

    /// All headers, one `name: value` per entry, credentials replaced.
    pub fn headers(&self, headers: &HeaderMap) -> String {
        let mut printed = String::new();
        for (name, value) in headers {
            let separator = if printed.is_empty() { "" } else { ", " };
            let _ = write!(printed, "{separator}{name}: {}", self.header(name, value));
        }
        printed
    }

    fn header(&self, name: &HeaderName, value: &HeaderValue) -> String {
        if value.is_sensitive() || self.is_secret(name.as_str()) {
            return REDACTED.to_owned();
        }
        self.text(&String::from_utf8_lossy(value.as_bytes()))
    }

    /// The same JSON with every secret field replaced, however deep it lies.
    pub fn json(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| {
                    let shown = if self.is_secret(name) {
                        Value::from(REDACTED)
                    } else {
                        self.json(value)
                    };
                    (name.clone(), shown)
                })
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            Value::String(text) => Value::from(self.text(text)),
            other => other.clone(),
        }
    }

    /// A body as bounded text, with secret fields and the `known` credentials replaced; JSON or not,
    /// whole or cut off.
    pub(crate) fn body(&self, body: &[u8], known: &Known, max_chars: usize) -> String {
        let small = Some(body).filter(|body| body.len() <= LARGEST_PARSED);
        let shown = match small.map(serde_json::from_slice::<Value>) {
            Some(Ok(value)) => self.json(&value).to_string(),
            _ => self.text(&String::from_utf8_lossy(body)),
        };
        // Shortened last: half a credential is still too much.
        excerpt(&known.without(shown), max_chars)
    }

    /// Free text: replaces user info in URLs and the value of every `name=value` or
    /// `"name": "value"` whose name is secret.
    pub fn text(&self, text: &str) -> String {
        let text = without_userinfo(text);
        let mut shown = String::with_capacity(text.len());
        let mut rest = text.as_ref();
        while let Some(start) = rest.find(is_name_char) {
            let (before, from_name) = rest.split_at(start);
            let end = from_name
                .find(|c| !is_name_char(c))
                .unwrap_or(from_name.len());
            let (name, after) = from_name.split_at(end);
            shown.push_str(before);
            shown.push_str(name);
            rest = after;
            // Values are measured only where they are skipped, else long texts cost their square.
            if let Some(sign) = sign_after_name(after)
                && self.is_secret(&percent_decode_str(name).decode_utf8_lossy())
            {
                let value = Assigned::at_sign(after, sign);
                shown.push_str(value.before);
                shown.push_str(REDACTED);
                rest = value.after;
            }
        }
        shown.push_str(rest);
        shown
    }

    /// A URL without user info, without the values of secret query parameters, and without its fragment,
    /// which is nobody's but a browser's and may hold a token.
    pub fn url(&self, url: &str) -> String {
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let url = without_userinfo(url);
        let Some((place, query)) = url.split_once('?') else {
            return url.into_owned();
        };
        let pairs: Vec<_> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, _))
                    if self.is_secret(&percent_decode_str(name).decode_utf8_lossy()) =>
                {
                    Cow::Owned(format!("{name}={REDACTED}"))
                }
                _ => Cow::Borrowed(pair),
            })
            .collect();
        format!("{place}?{}", pairs.join("&"))
    }

    /// Text that came from a cloud: secret fields replaced, then `known` credentials wherever
    /// they appear, then shortened.
    pub(crate) fn foreign(&self, text: &str, known: &Known, max_chars: usize) -> String {
        excerpt(&known.without(self.text(text)), max_chars)
    }
}

/// At most `max_chars` characters on one line.
pub(crate) fn excerpt(text: &str, max_chars: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = chars.by_ref().take(max_chars).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

fn normalized(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '%' | '$')
}

/// What follows a name that is assigned a value.
struct Assigned<'a> {
    before: &'a str,
    after: &'a str,
}

impl<'a> Assigned<'a> {
    fn at_sign(text: &'a str, (sign, sign_char): (usize, char)) -> Self {
        let (_, from_sign) = text.split_at(sign);
        let value = from_sign
            .find(|c: char| !matches!(c, ':' | '=' | ' ' | '\\'))
            .unwrap_or(from_sign.len());
        let escaped = from_sign[..value].ends_with('\\');
        let value = sign + value;
        let (length, opening) = value_length(&text[value..], sign_char, escaped);
        Self {
            before: &text[..value + opening],
            after: &text[value + opening + length..],
        }
    }
}

/// The sign that assigns a value to a name, and where it stands in the text after the name.
fn sign_after_name(text: &str) -> Option<(usize, char)> {
    let (at, sign) = text
        .char_indices()
        .find(|(_, c)| !is_quoting(*c) && *c != ' ')?;
    matches!(sign, ':' | '=').then_some((at, sign))
}

fn is_quoting(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\')
}

/// The length of the value at the start of `text`, and that of its opening quote.
fn value_length(text: &str, sign: char, escaped: bool) -> (usize, usize) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => (quoted_length(&text[1..], quote, escaped), 1),
        // A whole object or list under a secret name, in text that is not valid JSON: its end is
        // anybody's guess.
        Some('{' | '[') => (text.len(), 0),
        _ if sign == ':' => (text.find(['\n', '\r']).unwrap_or(text.len()), 0),
        _ => (
            text.find(|c: char| {
                c.is_whitespace() || matches!(c, '&' | ';' | ',' | '"' | '\'' | '}')
            })
            .unwrap_or(text.len()),
            0,
        ),
    }
}

fn quoted_length(text: &str, quote: char, escaped: bool) -> usize {
    let mut skip = false;
    for (at, c) in text.char_indices() {
        if skip {
            skip = false;
        } else if c == quote {
            return at;
        } else if c == '\\' {
            if escaped {
                return at;
            }
            skip = true;
        }
    }
    text.len()
}

fn without_userinfo(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let authority = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''))
            .unwrap_or(after.len());
        rest = after;
        if let Some(user) = after[..authority].rfind('@') {
            shown.push_str(REDACTED);
            rest = &after[user..];
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Found by the fuzzer: with the square of its length, this text takes minutes.
    #[test]
    fn a_long_text_of_many_assignments_is_read_once() {
        let text = "a: ".repeat(100_000);
        assert_eq!(Redactor::default().text(&text), text);
    }

    #[test]
    fn names_are_judged_whatever_their_spelling() {
        let redactor = Redactor::with_fields(["recovery_phrase"]);
        for name in [
            "password",
            "X-Auth-Token",
            "x-subject-token",
            "clientSecret",
            "client_secret",
            "Authorization",
            "Proxy-Authorization",
            "Set-Cookie",
            "api-key",
            "sig",
            "adminPass",
            "application_credential",
            "RecoveryPhrase",
        ] {
            assert!(redactor.is_secret(name), "{name}");
        }
        for name in [
            "id",
            "name",
            "key",
            "design",
            "status",
            "author",
            "passenger",
            "X-Request-Id",
        ] {
            assert!(!redactor.is_secret(name), "{name}");
        }
    }

    #[test]
    fn json_is_redacted_however_deep() {
        let shown = Redactor::default().json(&json!({
            "auth": 1,
            "server": {"id": 7, "adminPass": "hunter2", "meta": [{"token": {"deep": "hunter2"}}]},
            "note": "password=hunter2&user=joe",
        }));
        assert_eq!(
            shown,
            json!({
                "auth": REDACTED,
                "server": {"id": 7, "adminPass": REDACTED, "meta": [{"token": REDACTED}]},
                "note": "password=[redacted]&user=joe",
            })
        );
    }

    #[test]
    fn text_is_redacted_in_every_notation() {
        for (given, expected) in [
            ("password=hunter2&a=b", "password=[redacted]&a=b"),
            (
                r#"{"password":"hunter2","a":"b"}"#,
                r#"{"password":"[redacted]","a":"b"}"#,
            ),
            (
                r#"{"password" : "hun\"ter2","a":1}"#,
                r#"{"password" : "[redacted]","a":1}"#,
            ),
            (r#"{"password":"hunter2"#, r#"{"password":"[redacted]"#),
            (r#"{"token":{"id":"hunter2"},"#, r#"{"token":[redacted]"#),
            (
                r#"{"m":"{\"secret\":\"hunter2\",\"a\":1}"#,
                r#"{"m":"{\"secret\":\"[redacted]\",\"a\":1}"#,
            ),
            ("Authorization: Bearer hunter2", "Authorization: [redacted]"),
            (
                "X-Auth-Token: hunter2\nAccept: x",
                "X-Auth-Token: [redacted]\nAccept: x",
            ),
            (
                "see https://joe:hunter2@host/x",
                "see https://[redacted]@host/x",
            ),
            ("no secret here: x=1", "no secret here: x=1"),
            ("", ""),
        ] {
            assert_eq!(Redactor::default().text(given), expected, "{given}");
        }
    }

    #[test]
    fn urls_are_redacted_but_stay_readable() {
        for (given, expected) in [
            (
                "https://token:5000/v3?page=2",
                "https://token:5000/v3?page=2",
            ),
            ("https://joe:hunter2@host/", "https://[redacted]@host/"),
            (
                "https://h/x?sig=hunter2&a=b",
                "https://h/x?sig=[redacted]&a=b",
            ),
            ("/x?api%5Fkey=hunter2", "/x?api%5Fkey=[redacted]"),
            ("https://h/x?a=b#access_token=hunter2", "https://h/x?a=b"),
            ("not a url", "not a url"),
        ] {
            assert_eq!(Redactor::default().url(given), expected);
        }
    }

    #[test]
    fn a_body_that_is_too_big_to_be_parsed_is_redacted_as_text() {
        let numbers = "0,".repeat(LARGEST_PARSED);
        let body = format!(r#"{{"pad":[{numbers}0],"password":"hunter2"}}"#);
        let (redactor, known) = (Redactor::default(), Known::new(vec!["s3cr3t".to_owned()]));
        let shown = redactor.body(body.as_bytes(), &known, usize::MAX);
        assert!(shown.starts_with(r#"{"pad":[0,0"#), "{}", &shown[..50]);
        assert!(!shown.contains("hunter2"));
        let shown = redactor.body(format!("s3cr3t {body}").as_bytes(), &known, 20);
        assert_eq!(shown, "[redacted] {\"pad\":[0…");
    }

    #[test]
    fn excerpts_are_short_and_on_one_line() {
        assert_eq!(excerpt("a\nb\u{7}", 10), "a b ");
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!(excerpt("äöü", 3), "äöü");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_redactor_panic(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let redactor = Redactor::default();
            redactor.text(&text);
            redactor.url(&text);
            prop_assert!(redactor.body(&bytes, &Known::default(), 50).chars().count() <= 51);
        }

        #[test]
        fn a_secret_never_survives_between_arbitrary_text(
            before in "[a-z {}:,\"\\\\=&?/@]{0,30}",
            after in "[a-z {}:,\"\\\\=&?/@]{0,30}",
            notation in prop::sample::select(vec![
                "password=HUNTER2&", "\"token\":\"HUNTER2\"", "secret: HUNTER2\n", "'api_key': 'HUNTER2'",
            ]),
        ) {
            // A quoting or naming character before the name would make it part of another word.
            let text = format!("{before} {notation}{after}");
            let shown = Redactor::default().text(&text);
            prop_assert!(!shown.contains("HUNTER2"), "{text} became {shown}");
        }
    }
}
