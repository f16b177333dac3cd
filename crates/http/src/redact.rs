//! Keeps credentials out of logs and error texts.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use cloudkeel_api::REDACTED;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::sent_secrets::SentSecrets;

/// A name that contains one of these, whatever its case and punctuation, is secret.
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
    "soapsession",
    "token",
    "userdata",
];

/// Too short to be searched for inside longer names.
const WHOLE_NAMES: &[&str] = &["auth", "pass", "pwd", "sig"];

/// Larger bodies are not parsed for quoting: as JSON values they would take many times their size.
const MAX_PARSED_BYTES: usize = 256 * 1024;

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

    /// Whether a field, header or parameter of this name contains a credential.
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

    /// A body as bounded text, with secret fields and the `sent_secrets` credentials replaced; JSON or not,
    /// whole or cut off.
    pub(crate) fn body(&self, body: &[u8], sent_secrets: &SentSecrets, max_chars: usize) -> String {
        let small = Some(body).filter(|body| body.len() <= MAX_PARSED_BYTES);
        let shown = match small.map(serde_json::from_slice::<Value>) {
            Some(Ok(value)) => self.json(&value).to_string(),
            _ => self.text(&String::from_utf8_lossy(body)),
        };
        // Shortened last: half a credential must not be shown either.
        excerpt(&sent_secrets.without(shown), max_chars)
    }

    /// Free text: replaces user info in URLs and the value of every `name=value`, `"name": "value"` or
    /// `<name>value</name>` whose name is secret.
    pub fn text(&self, text: &str) -> String {
        let text = without_userinfo(text);
        let mut shown = String::with_capacity(text.len());
        let mut done = 0;
        for value in self.values(&text) {
            shown.push_str(&text[done..value.start]);
            shown.push_str(REDACTED);
            done = value.end;
        }
        shown.push_str(&text[done..]);
        shown
    }

    /// The values of secret names in a text, as a cloud may repeat them: also without nested tags, and without XML
    /// escapes.
    pub(crate) fn secrets_in(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for value in self.values(text) {
            let value = &text[value];
            let parts = value.split('<').filter_map(|part| part.split_once('>'));
            let parts = parts.map(|(_, part)| part).filter(|part| !part.is_empty());
            for secret in parts.chain([value]) {
                found.push(secret.to_owned());
                found.push(without_escapes(secret));
            }
        }
        found
    }

    /// The positions of the values of secret names, in their order.
    fn values(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut names = Names::default();
        while let Some(name) = names.next(text) {
            // Values are measured only where they are skipped, or long texts would take quadratic time.
            let is_secret = || {
                self.is_secret(&percent_decode_str(&text[name.start..name.end]).decode_utf8_lossy())
            };
            let value = if name.tag.is_some() && is_secret() {
                element_content(text, &name)
            } else if let Some(sign) = sign_after_name(&text[name.end..])
                && is_secret()
            {
                Some(assigned_value(text, name.end, sign))
            } else {
                None
            };
            if let Some(value) = value {
                names.at = value.end;
                found.push(value);
            }
        }
        found
    }

    /// A URL without user info, without the values of secret query parameters, and without its fragment, which only
    /// browsers use and which may contain a token.
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

    /// Text from a cloud: secret fields replaced, then `sent_secrets` credentials wherever they appear, then
    /// shortened.
    pub(crate) fn foreign(
        &self,
        text: &str,
        sent_secrets: &SentSecrets,
        max_chars: usize,
    ) -> String {
        excerpt(&sent_secrets.without(self.text(text)), max_chars)
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

/// Walks over the names in a text.
#[derive(Default)]
struct Names {
    at: usize,
    /// Where the tag begins whose namespace ends at `at`.
    namespace_of: Option<usize>,
}

/// A name that may be assigned a value.
struct Name {
    start: usize,
    end: usize,
    /// Where the whole name begins that opens an XML element, with its namespace.
    tag: Option<usize>,
}

impl Names {
    fn next(&mut self, text: &str) -> Option<Name> {
        let start = self.at + text[self.at..].find(is_name_char)?;
        let length = text[start..].find(|c| !is_name_char(c));
        let end = length.map_or(text.len(), |length| start + length);
        let tag = if text[..start].ends_with('<') {
            Some(start)
        } else {
            self.namespace_of.filter(|_| start == self.at)
        };
        let is_namespace = tag == Some(start) && text[end..].starts_with(':');
        self.namespace_of = tag.filter(|_| is_namespace);
        self.at = if is_namespace { end + 1 } else { end };
        Some(Name { start, end, tag })
    }
}

/// The text between the tags of an element. If a tag is cut off, everything that follows.
fn element_content(text: &str, name: &Name) -> Option<Range<usize>> {
    let Some(close) = text[name.end..].find('>') else {
        return Some(name.end..text.len());
    };
    let start = name.end + close + 1;
    if text[..start].ends_with("/>") {
        return None;
    }
    let tag = &text[name.tag?..name.end];
    let length = text[start..].find(&format!("</{tag}"));
    Some(start..length.map_or(text.len(), |length| start + length))
}

/// The value behind a sign that stands this far after the end of a name.
fn assigned_value(text: &str, name_end: usize, (sign, sign_char): (usize, char)) -> Range<usize> {
    let sign = name_end + sign;
    let value = text[sign..]
        .find(|c: char| !matches!(c, ':' | '=' | ' ' | '\\'))
        .map_or(text.len(), |length| sign + length);
    let escaped = text[sign..value].ends_with('\\');
    let (length, opening) = value_length(&text[value..], sign_char, escaped);
    value + opening..value + opening + length
}

fn without_escapes(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
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
        // A whole object or list under a secret name, in text that is not valid JSON: its end cannot be determined.
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
mod tests;
