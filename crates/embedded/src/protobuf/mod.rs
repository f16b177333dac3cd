//! Kubernetes' protobuf: an envelope that names the kind, and the object inside it.
//!
//! Nodes, metadata alone and `Status` are spoken, which is what the controllers ask for; anything else is JSON.

mod decode;
mod encode;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use self::decode::Raw;
use crate::object::{put, text};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// An object in its envelope; `None` if its kind is spoken in JSON only.
pub(crate) fn encode_object(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
    let schema = schema::message_of(api_version, kind)?;
    let mut type_meta = Vec::new();
    encode::write_bytes(&mut type_meta, 1, api_version.as_bytes());
    encode::write_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut bytes = MAGIC.to_vec();
    encode::write_bytes(&mut bytes, 1, &type_meta);
    encode::write_bytes(&mut bytes, 2, &encode::message(schema, object));
    Some(bytes)
}

/// An event of a watch behind its length; `None` if the kind of its object is spoken in JSON only.
pub(crate) fn encode_event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let object = encode_object(object)?;
    let (mut raw, mut event) = (Vec::new(), Vec::new());
    encode::write_bytes(&mut raw, 1, &object);
    encode::write_bytes(&mut event, 1, kind.as_bytes());
    encode::write_bytes(&mut event, 2, &raw);
    let length = u32::try_from(event.len()).ok()?;
    Some([&length.to_be_bytes(), event.as_slice()].concat())
}

/// Whether a kind is spoken in protobuf.
pub(crate) fn speaks(api_version: &str, kind: &str) -> bool {
    schema::message_of(api_version, kind).is_some()
}

/// Reads the events of a watch, each behind its length: its type, and its object.
pub(crate) fn decode_events(mut bytes: &[u8]) -> Result<Vec<(String, Value)>, Unreadable> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_at_checked(4) {
        let length = length
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let parts = rest.split_at_checked(length);
        let cut_off = || Unreadable::Malformed("an event is cut off".to_owned());
        let (event, rest) = parts.ok_or_else(cut_off)?;
        events.push(decode_event(event)?);
        bytes = rest;
    }
    Ok(events)
}

fn decode_event(bytes: &[u8]) -> Result<(String, Value), Unreadable> {
    let (mut kind, mut object) = (String::new(), Value::Null);
    for (number, raw) in decode::fields(bytes)? {
        match (number, raw) {
            (1, Raw::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
            (2, Raw::Bytes(extension)) => {
                for (number, raw) in decode::fields(extension)? {
                    if let (1, Raw::Bytes(bytes)) = (number, raw) {
                        object = decode_object(bytes)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((kind, object))
}

/// Why bytes are no object in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// They are not protobuf.
    #[error("{0}")]
    Malformed(String),
    /// The kind is spoken in JSON only.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
}

impl From<prost::DecodeError> for Unreadable {
    fn from(error: prost::DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Reads an object out of its envelope.
pub(crate) fn decode_object(bytes: &[u8]) -> Result<Value, Unreadable> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        let why = "provided data does not appear to be a protobuf message";
        Unreadable::Malformed(format!("{why}, expected prefix [107 56 115 0]"))
    })?;
    let (mut type_meta, mut object) = (json!({}), &[][..]);
    for (number, raw) in decode::fields(envelope)? {
        match (number, raw) {
            (1, Raw::Bytes(bytes)) => type_meta = read_type_meta(bytes)?,
            (2, Raw::Bytes(bytes)) => object = bytes,
            _ => {}
        }
    }
    let (api_version, kind) = (
        text(&type_meta, &["apiVersion"]),
        text(&type_meta, &["kind"]),
    );
    let schema = schema::message_of(api_version, kind).ok_or_else(|| Unreadable::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })?;
    let mut decoded = decode::message(schema, object)?;
    put(&mut decoded, &["apiVersion"], api_version);
    put(&mut decoded, &["kind"], kind);
    Ok(decoded)
}

fn read_type_meta(bytes: &[u8]) -> Result<Value, prost::DecodeError> {
    let mut type_meta = json!({});
    for (number, raw) in decode::fields(bytes)? {
        if let (1 | 2, Raw::Bytes(value)) = (number, raw) {
            let key = if number == 1 { "apiVersion" } else { "kind" };
            let value = String::from_utf8_lossy(value).into_owned();
            put(&mut type_meta, &[key], value);
        }
    }
    Ok(type_meta)
}
