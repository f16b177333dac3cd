//! Values of annotations, flags, variables and configuration keys.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use serde_json::Value;

use super::duration::parse_go_duration;
use crate::Secret;

/// The type of a key. The error is what would be right, as in "expected …".
pub trait KeyValue: Sized {
    /// The name of the type in the reference.
    const TYPE: &'static str;

    /// The words that it may be, if it is one of a few.
    const CHOICES: &'static [&'static str] = &[];

    /// Whether the value must not be printed.
    const SECRET: bool = false;

    /// Parses a text. On failure: what would be right.
    fn parse(text: &str) -> Result<Self, String>;

    /// Parses a JSON value. Scalars are read as their text, so `5` and `"5"` are the same.
    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Bool(_) | Value::Number(_) => Self::parse(&value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(format!("a single {}", Self::TYPE))
            }
        }
    }
}

/// A field of settings: a value that is always there, or one that may be absent.
pub trait KeyField: Sized {
    /// What is read for it.
    type Value: KeyValue;

    /// The field for what was read. Without a value, and where something is wrong with it, the type's own
    /// default stands in: the problem is reported elsewhere.
    fn of(read: Option<Self::Value>) -> Self;
}

impl<T: KeyValue + Default> KeyField for T {
    type Value = T;

    fn of(read: Option<T>) -> Self {
        read.unwrap_or_default()
    }
}

impl<T: KeyValue> KeyField for Option<T> {
    type Value = T;

    fn of(read: Self) -> Self {
        read
    }
}

impl KeyValue for String {
    const TYPE: &'static str = "text";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl KeyValue for Secret {
    const TYPE: &'static str = "secret";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::new(text))
    }
}

/// The spellings that Go's `strconv.ParseBool` accepts, because the Go CCMs accept them.
impl KeyValue for bool {
    const TYPE: &'static str = "bool";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            _ => Err("`true` or `false`".to_owned()),
        }
    }
}

macro_rules! integer_value {
    ($($type:ty),*) => {$(
        impl KeyValue for $type {
            const TYPE: &'static str = "integer";

            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| {
                    format!("a whole number from {} to {}", Self::MIN, Self::MAX)
                })
            }
        }
    )*};
}
integer_value!(u8, u16, u32, u64, i32, i64);

impl KeyValue for f64 {
    const TYPE: &'static str = "number";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .filter(|number: &Self| number.is_finite())
            .ok_or_else(|| "a number".to_owned())
    }
}

impl KeyValue for Duration {
    const TYPE: &'static str = "duration";

    fn parse(text: &str) -> Result<Self, String> {
        parse_go_duration(text)
            .ok_or_else(|| "a duration such as `10s`, `1m30s` or `500ms`".to_owned())
    }
}

impl KeyValue for IpAddr {
    const TYPE: &'static str = "IP address";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "an IPv4 or IPv6 address".to_owned())
    }
}

impl KeyValue for Ipv4Addr {
    const TYPE: &'static str = "IPv4 address";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "an IPv4 address such as `10.0.0.5`".to_owned())
    }
}

impl KeyValue for IpNet {
    const TYPE: &'static str = "CIDR";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "a network such as `10.0.0.0/16`".to_owned())
    }
}

/// A comma list. Items are trimmed; an empty text is an empty list, an empty item is an error.
impl<T: KeyValue> KeyValue for Vec<T> {
    const TYPE: &'static str = "comma list";
    const SECRET: bool = T::SECRET;

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::new());
        }
        text.split(',')
            .map(str::trim)
            .map(|item| match item {
                "" => Err("a comma list without empty items".to_owned()),
                item => {
                    T::parse(item).map_err(|expected| format!("{expected} in place of {item:?}"))
                }
            })
            .collect()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => items.iter().map(T::from_json).collect(),
            Value::String(text) => Self::parse(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                Err("a list".to_owned())
            }
        }
    }
}

/// `key=value` pairs, separated by commas.
impl KeyValue for BTreeMap<String, String> {
    const TYPE: &'static str = "key=value list";

    fn parse(text: &str) -> Result<Self, String> {
        Vec::<String>::parse(text)?
            .iter()
            .map(|pair| {
                pair.split_once('=')
                    .filter(|(key, _)| !key.is_empty())
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .ok_or_else(|| format!("`key=value` in place of {pair:?}"))
            })
            .collect()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| Ok((key.clone(), String::from_json(value)?)))
                .collect(),
            Value::String(text) => Self::parse(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err("a map of text".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn booleans_are_read_like_go_reads_them() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(bool::parse(text), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(bool::parse(text), Ok(false), "{text}");
        }
        for text in ["", "yes", "on", "tRUE", " true"] {
            assert!(bool::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_would_be_right() {
        assert_eq!(
            u16::parse("70000"),
            Err("a whole number from 0 to 65535".into())
        );
        assert_eq!(
            Duration::parse("10").unwrap_err(),
            "a duration such as `10s`, `1m30s` or `500ms`"
        );
        assert_eq!(
            Vec::<u16>::parse("80,x").unwrap_err(),
            "a whole number from 0 to 65535 in place of \"x\""
        );
        assert_eq!(
            BTreeMap::parse("a=1,b").unwrap_err(),
            "`key=value` in place of \"b\""
        );
    }

    #[test]
    fn json_scalars_lists_and_maps_are_read_as_they_are_or_as_text() {
        assert_eq!(u16::from_json(&json!(80)), Ok(80));
        assert_eq!(u16::from_json(&json!("80")), Ok(80));
        assert_eq!(bool::from_json(&json!(true)), Ok(true));
        assert_eq!(String::from_json(&json!(7)), Ok("7".into()));
        assert_eq!(
            Vec::<u16>::from_json(&json!([80, "443"])),
            Ok(vec![80, 443])
        );
        assert_eq!(Vec::<u16>::from_json(&json!("80, 443")), Ok(vec![80, 443]));
        let list = u16::from_json(&json!([80])).unwrap_err();
        assert_eq!(list, "a single integer");
        let map = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        assert_eq!(BTreeMap::from_json(&json!({"a": 1})), Ok(map.clone()));
        assert_eq!(BTreeMap::from_json(&json!("a=1")), Ok(map));
    }

    #[test]
    fn empty_lists_are_lists_and_empty_items_are_errors() {
        assert_eq!(Vec::<String>::parse(" "), Ok(vec![]));
        assert!(Vec::<String>::parse("a,,b").is_err());
    }
}
