//! From JSON to protobuf.

use jiff::Timestamp;
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Value;

use super::schema::{Field, Shape, Type};

/// A message with the fields that the schema knows.
pub(super) fn message(schema: &[Field], value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in schema {
        write_field(&mut bytes, field, &value[field.name]);
    }
    bytes
}

fn write_field(bytes: &mut Vec<u8>, field: &Field, value: &Value) {
    match (field.shape, value) {
        (_, Value::Null) => {}
        (Shape::One, one) => write_value(bytes, field.number, field.kind, one),
        (Shape::Many, many) => {
            for one in many.as_array().into_iter().flatten() {
                write_value(bytes, field.number, field.kind, one);
            }
        }
        (Shape::Map, map) => {
            for (key, value) in map.as_object().into_iter().flatten() {
                let mut entry = Vec::new();
                write_bytes(&mut entry, 1, key.as_bytes());
                write_value(&mut entry, 2, field.kind, value);
                write_bytes(bytes, field.number, &entry);
            }
        }
    }
}

fn write_value(bytes: &mut Vec<u8>, number: u32, kind: Type, value: &Value) {
    match kind {
        Type::Text => {
            let text = value.as_str().unwrap_or_default();
            write_bytes(bytes, number, text.as_bytes());
        }
        Type::Flag => write_varint(
            bytes,
            number,
            u64::from(value.as_bool().unwrap_or_default()),
        ),
        Type::Integer => write_varint(bytes, number, integer(value)),
        Type::Time => {
            let text = value.as_str().unwrap_or_default();
            if let Ok(time) = text.parse::<Timestamp>() {
                let mut message = Vec::new();
                write_varint(&mut message, 1, time.as_second().cast_unsigned());
                let nanos = i64::from(time.subsec_nanosecond());
                write_varint(&mut message, 2, nanos.cast_unsigned());
                write_bytes(bytes, number, &message);
            }
        }
        Type::Quantity => {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let mut message = Vec::new();
            write_bytes(&mut message, 1, text.as_bytes());
            write_bytes(bytes, number, &message);
        }
        Type::Message(schema) => write_bytes(bytes, number, &message(schema, value)),
    }
}

/// Protobuf writes negative numbers as the unsigned number with the same bits.
fn integer(value: &Value) -> u64 {
    value.as_i64().unwrap_or_default().cast_unsigned()
}

fn write_varint(bytes: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, bytes);
    encode_varint(value, bytes);
}

/// Writes a field that is preceded by its length.
pub(super) fn write_bytes(bytes: &mut Vec<u8>, number: u32, value: &[u8]) {
    encode_key(number, WireType::LengthDelimited, bytes);
    encode_varint(value.len() as u64, bytes);
    bytes.extend_from_slice(value);
}
