//! From protobuf to JSON.

use bytes::Buf as _;
use jiff::Timestamp;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde_json::{Map, Value, json};

use super::schema::{Field, Shape, Type};

/// What a field of a message holds.
pub(super) enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in order. Those of types that Kubernetes does not use are skipped.
pub(super) fn fields(mut bytes: &[u8]) -> Result<Vec<(u32, Raw<'_>)>, DecodeError> {
    let mut found = Vec::new();
    while bytes.has_remaining() {
        let (number, wire_type) = decode_key(&mut bytes)?;
        match wire_type {
            WireType::Varint => found.push((number, Raw::Number(decode_varint(&mut bytes)?))),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut bytes)?).ok();
                let parts = length.and_then(|length| bytes.split_at_checked(length));
                let Some((value, rest)) = parts else {
                    // A field that skips past the end is reported in prost's own words.
                    skip_field(wire_type, number, &mut &[][..], DecodeContext::default())?;
                    break;
                };
                found.push((number, Raw::Bytes(value)));
                bytes = rest;
            }
            other => skip_field(other, number, &mut bytes, DecodeContext::default())?,
        }
    }
    Ok(found)
}

/// A message as JSON, without the fields that the schema does not know. What is empty is left out, as Go's `omitempty`
/// does, because Kubernetes writes empty text where nothing is said.
pub(super) fn message(schema: &[Field], bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut object = Map::new();
    for (number, raw) in fields(bytes)? {
        let Some(field) = schema.iter().find(|field| field.number == number) else {
            continue;
        };
        match field.shape {
            Shape::One => {
                let one = value(field.kind, &raw)?;
                if !is_empty(&one) {
                    object.insert(field.name.to_owned(), one);
                }
            }
            Shape::Many => {
                let all = object.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(all) = all {
                    all.push(value(field.kind, &raw)?);
                }
            }
            Shape::Map => {
                let (key, one) = map_entry(field.kind, &raw)?;
                let all = object.entry(field.name).or_insert_with(|| json!({}));
                if let Value::Object(all) = all {
                    all.insert(key, one);
                }
            }
        }
    }
    Ok(Value::Object(object))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    }
}

fn map_entry(kind: Type, raw: &Raw<'_>) -> Result<(String, Value), DecodeError> {
    let (mut key, mut found) = (String::new(), Value::Null);
    if let Raw::Bytes(bytes) = raw {
        for (number, raw) in fields(bytes)? {
            match number {
                1 => key = text(&raw),
                2 => found = value(kind, &raw)?,
                _ => {}
            }
        }
    }
    if found.is_null() {
        found = Value::from("");
    }
    Ok((key, found))
}

fn value(kind: Type, raw: &Raw<'_>) -> Result<Value, DecodeError> {
    Ok(match (kind, raw) {
        (Type::Text, raw) => Value::from(text(raw)),
        (Type::Flag, Raw::Number(number)) => Value::from(*number != 0),
        (Type::Integer, Raw::Number(number)) => Value::from(number.cast_signed()),
        (Type::Time, Raw::Bytes(bytes)) => time(bytes)?,
        (Type::Quantity, Raw::Bytes(bytes)) => {
            let parts = fields(bytes)?;
            let first = parts.iter().find(|(number, _)| *number == 1);
            Value::from(first.map(|(_, raw)| text(raw)).unwrap_or_default())
        }
        (Type::Message(schema), Raw::Bytes(bytes)) => message(schema, bytes)?,
        _ => Value::Null,
    })
}

fn text(raw: &Raw<'_>) -> String {
    match raw {
        Raw::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Raw::Number(_) => String::new(),
    }
}

/// A moment; null for the empty one, which Kubernetes writes where there is none.
fn time(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut seconds, mut nanos) = (0, 0);
    for (number, raw) in fields(bytes)? {
        match (number, raw) {
            (1, Raw::Number(number)) => seconds = number.cast_signed(),
            (2, Raw::Number(number)) => nanos = i32::try_from(number).unwrap_or_default(),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanos);
    Ok(time.map_or(Value::Null, |time| Value::from(time.to_string())))
}
