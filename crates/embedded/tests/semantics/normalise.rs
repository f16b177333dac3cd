//! Placeholders in place of what no two servers share.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde_json::{Map, Value, json};

/// Replaces values by placeholders, the same value by the same placeholder.
#[derive(Default)]
pub(crate) struct Placeholders {
    known: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
}

impl Placeholders {
    fn placeholder(&mut self, what: &'static str, value: &str) -> String {
        if let Some(placeholder) = self.known.get(value) {
            return placeholder.clone();
        }
        let count = self.counts.entry(what).or_default();
        *count += 1;
        let placeholder = format!("<{what}-{count}>");
        self.known.insert(value.to_owned(), placeholder.clone());
        placeholder
    }

    /// An answer with placeholders, and without what the embedded API does not have on purpose.
    pub(crate) fn normalise(&mut self, value: &Value) -> Value {
        self.value("", value)
    }

    fn value(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.fields(fields),
            Value::Array(items) => {
                let mut items: Vec<_> = items.iter().map(|item| self.value(key, item)).collect();
                if key == "causes" {
                    // The real server checks some fields twice.
                    items.dedup();
                }
                items.into()
            }
            Value::String(text) => json!(self.text(key, text)),
            Value::Number(number)
                if number
                    .as_u64()
                    .is_some_and(|n| (30_000..32_768).contains(&n)) =>
            {
                json!(self.placeholder("port", &number.to_string()))
            }
            other => other.clone(),
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>) -> Value {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("kind").ends_with("List") {
            return self.list(fields);
        }
        let code = fields.get("code").and_then(Value::as_u64);
        // So are those about a patch, with the object in them.
        let is_about_patch = fields
            .get("details")
            .is_some_and(|details| details["causes"][0]["field"] == "patch");
        let is_failure = fields
            .get("status")
            .is_some_and(|status| status == "Failure");
        let kept = fields.iter().filter(|(key, value)| match key.as_str() {
            "managedFields" => false,
            // The words of a decoder are its own.
            "details" | "message" if is_about_patch => false,
            "message" if is_failure => !matches!(code, Some(400 | 415)),
            _ => !value.is_null(),
        });
        kept.map(|(key, value)| (key.clone(), self.value(key, value)))
            .collect()
    }

    /// A list without its own version: on the real server others write at the same time.
    fn list(&mut self, fields: &Map<String, Value>) -> Value {
        let mut metadata = fields.get("metadata").cloned().unwrap_or_default();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let kept = fields.iter().filter(|(key, _)| *key != "metadata");
        let mut list: Map<_, _> = kept
            .map(|(key, value)| (key.clone(), self.value(key, value)))
            .collect();
        list.insert("metadata".to_owned(), self.value("metadata", &metadata));
        list.into()
    }

    fn text(&mut self, key: &str, text: &str) -> String {
        match key {
            "uid" => self.placeholder("uid", text),
            "resourceVersion" if text.parse::<u64>().is_ok() => self.placeholder("version", text),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            _ if is_now(text) => "<time>".to_owned(),
            _ if text.starts_with("10.0.") && text.split('.').count() == 4 => {
                self.placeholder("address", text)
            }
            _ if text.starts_with("fd00:10::") && text.parse::<Ipv6Addr>().is_ok() => {
                self.placeholder("address6", text)
            }
            _ => match text.strip_prefix("made-") {
                Some(_) => self.placeholder("name", text),
                None => self.words(text),
            },
        }
    }

    /// A message in which known values are placeholders too.
    fn words(&self, text: &str) -> String {
        // How its storage words it is of no interest.
        let text = match (
            text.split_once("StorageError"),
            text.split_once("AdditionalErrorMsg: "),
        ) {
            (Some((before, _)), Some((_, after))) => &format!("{before}{after}"),
            _ => text,
        };
        let is_inside = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let mut words = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .find(|sign: char| !is_inside(sign))
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let known = self.known.get(word).map(String::as_str);
            let is_telling = word.len() > 2 || words.ends_with('(');
            words.push_str(known.filter(|_| is_telling).unwrap_or(word));
            let separator = after.chars().next().map_or(0, char::len_utf8);
            words.push_str(&after[..separator]);
            rest = &after[separator..];
        }
        words
    }
}

/// A moment that the server read from its clock. Those that cases write are of 2020.
fn is_now(text: &str) -> bool {
    !text.starts_with("2020-") && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}
