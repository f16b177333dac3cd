//! Bodies of requests.

use std::fmt;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

use super::super::refusal::Refusal;

/// Reads a body; a missing one counts as an empty object.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let value: Value = match body {
        [] => Value::Object(serde_json::Map::new()),
        body => serde_json::from_slice(body)
            .map_err(|error| Refusal::new("json_error", format!("invalid JSON: {error}")))?,
    };
    serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        // serde names the field in backticks, if it knows it.
        let field = text.split('`').nth(1).unwrap_or("body").to_owned();
        Refusal::invalid(&field, text)
    })
}

/// A number, or a name. Numbers may come as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdOrName(pub(super) String);

impl<'de> Deserialize<'de> for IdOrName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(name) => Ok(Self(name)),
            Value::Number(id) => Ok(Self(id.to_string())),
            other => Err(D::Error::custom(format!(
                "{other}: expected an ID or a name"
            ))),
        }
    }
}

impl fmt::Display for IdOrName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads an IPv4 address in a field.
pub(super) fn address(field: &str, text: &str) -> Result<Ipv4Addr, Refusal> {
    text.parse()
        .map_err(|_| Refusal::invalid(field, format!("{text:?} is not an IPv4 address")))
}

/// Reads an IPv4 network in a field.
pub(super) fn range(field: &str, text: &str) -> Result<Ipv4Net, Refusal> {
    let range = text
        .parse::<Ipv4Net>()
        .ok()
        .filter(|range| range.trunc() == *range);
    range.ok_or_else(|| Refusal::invalid(field, format!("{text:?} is not an IPv4 network")))
}
